"""One setting over several values: how what a method reaches depends on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from towpath.errors import ConfigError
from towpath.evaluation.comparison import Comparison
from towpath.methods.recipe import Recipe

Value = str | int | float | bool | None  # of a setting


@dataclass(frozen=True)
class Point:
    """The mean over seeds at one value, and how far a standard deviation between seeds reaches."""

    value: Value
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class SweepResult:
    """What came of every value, and of methods drawn next to it for reference."""

    recipe: Recipe  # without the setting
    setting: str
    values: tuple[Value, ...]
    references: tuple[str, ...]
    comparison: Comparison

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols, in the order in which they were asked for."""
        return tuple(dict.fromkeys(row.protocol for row in self.comparison.rows))

    def points(self, protocol: str, metric: str) -> tuple[Point, ...]:
        """A metric under a protocol at every value."""
        return tuple(
            replace(self._found(label_of(self.setting, v), protocol, metric), value=v) for v in self.values
        )

    def reference(self, protocol: str, metric: str) -> dict[str, float]:
        """The mean of each method that is drawn for reference."""
        return {name: self._found(name, protocol, metric).mean for name in self.references}

    def _found(self, label: str, protocol: str, metric: str) -> Point:
        wanted = (label, protocol, metric)
        row = next(r for r in self.comparison.rows if (r.label, r.protocol, r.metric) == wanted)
        spread = row.sd or 0.0
        return Point(label, row.mean, row.mean - spread, row.mean + spread)

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The curve as plain numbers, texts and lists."""
        return {
            **self.recipe.names,
            "setting": self.setting,
            "values": list(self.values),
            "references": list(self.references),
            **self.comparison.to_json(),
        }


def label_of(setting: str, value: Value) -> str:
    """What a point of the curve is called in a comparison."""
    return f"{setting}={value}"


def sweep_recipes(recipe: Recipe, setting: str, values: Sequence[Value]) -> dict[Value, Recipe]:
    """One recipe for each value of the setting, by the value as it will be used: 0.1 where ".1" was asked."""
    if setting in recipe.settings:
        raise ConfigError(f"{setting} is what the curve goes over; leave --set {setting}=… out.")
    found = {}
    for value in values:
        one = replace(recipe, settings={**recipe.settings, setting: value})
        found[one.resolved()["settings"][setting]] = one
    if len(values) < 2 or len(found) < len(values):
        raise ConfigError(
            f"A curve goes over at least two different values of {setting}, and these came: "
            f"{', '.join(map(str, values))}."
        )
    return found


def labelled(setting: str, swept: Mapping[Value, Recipe]) -> dict[str, Recipe]:
    """The recipes of a sweep as a comparison calls them."""
    return {label_of(setting, value): recipe for value, recipe in swept.items()}
