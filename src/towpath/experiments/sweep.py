"""One setting over several values: how the metrics of a method depend on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from towpath.errors import ConfigError
from towpath.evaluation.comparison import Comparison
from towpath.methods.recipe import Recipe
from towpath.stats.estimate import Estimate

Value = str | int | float | bool | None  # of a setting


# The value of the setting, and the mean ± standard deviation over seeds there.
Point = tuple[Value, Estimate]


@dataclass(frozen=True)
class SweepResult:
    """The metrics at every value, and those of methods drawn for reference."""

    recipe: Recipe  # without the setting
    setting: str
    values: tuple[Value, ...]
    references: tuple[str, ...]
    comparison: Comparison

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols, in the order in which they were given."""
        return tuple(dict.fromkeys(row.protocol for row in self.comparison.rows))

    def points(self, protocol: str, metric: str) -> tuple[Point, ...]:
        """A metric under a protocol at every value."""
        return tuple((v, self._mean(label_of(self.setting, v), protocol, metric)) for v in self.values)

    def reference(self, protocol: str, metric: str) -> dict[str, float]:
        """The mean of each method that is drawn for reference."""
        return {name: self._mean(name, protocol, metric).mean for name in self.references}

    def _mean(self, label: str, protocol: str, metric: str) -> Estimate:
        wanted = (label, protocol, metric)
        rows = (r for r in self.comparison.rows if (r.label, r.protocol, r.metric) == wanted)
        return next(rows).estimate

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The sweep as plain numbers, texts and lists."""
        return {
            **self.recipe.names,
            "setting": self.setting,
            "values": list(self.values),
            "references": list(self.references),
            **self.comparison.to_json(),
        }


def label_of(setting: str, value: Value) -> str:
    """The label of one value in a comparison."""
    return f"{setting}={value}"


def sweep_recipes(recipe: Recipe, setting: str, values: Sequence[Value]) -> dict[Value, Recipe]:
    """One recipe for each value of the setting, by the value as it will be used: 0.1 for ".1"."""
    if setting in recipe.settings:
        raise ConfigError(f"{setting} is the setting of the sweep; leave --set {setting}=… out.")
    recipes = {}
    for value in values:
        one = replace(recipe, settings={**recipe.settings, setting: value})
        recipes[one.resolved()["settings"][setting]] = one
    if len(values) < 2 or len(recipes) < len(values):
        raise ConfigError(
            f"A sweep needs at least two different values of {setting}, and these were given: "
            f"{', '.join(map(str, values))}."
        )
    return recipes


def labelled(setting: str, swept: Mapping[Value, Recipe]) -> dict[str, Recipe]:
    """The recipes of a sweep by their labels in a comparison."""
    return {label_of(setting, value): recipe for value, recipe in swept.items()}
