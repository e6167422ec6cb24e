"""Results that other versions of the code stored: found by all that their key says except the code."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from towpath.experiments.paper.jobs import Failure
from towpath.experiments.result_store import ResultKey, ResultStore
from towpath.experiments.run_result import RunResult
from towpath.methods.recipe import Recipe
from towpath.transport.impressions.settings import LibrarySettings

Json = Mapping[str, Any]  # a JSON object
# What a game does not look at; the paper's columns all play it.
_NOT_OF_THE_GAME = LibrarySettings.model_fields.keys() - {"solver", "penalty"}


@dataclass(frozen=True)
class EarlierResults:
    """The keys of all stored results, by what they have in common whatever the code and the settings."""

    keys: Mapping[str, list[Json]] = field(default_factory=dict)
    results: Mapping[str, int] = field(default_factory=dict)  # how many a version of the code has stored

    def key_for(self, wanted: ResultKey, recipe: Recipe) -> ResultKey | None:
        """The key of a stored result of the same recipe and data; None if there is none.

        Of several, that of the version that stored most results, so that a page mixes few versions.
        """
        asked = json.loads(wanted.text)
        found = [
            key for key in self.keys.get(_alike(asked), ()) if _same_settings(_settings(key), asked, recipe)
        ]
        if not found:
            return None
        best = max(found, key=lambda key: (key["code"] == asked["code"], self.results[key["code"]]))
        return ResultKey(json.dumps(best, sort_keys=True))


def earlier_results(store: ResultStore) -> EarlierResults:
    """What is stored, by any version of the code."""
    keys: dict[str, list[Json]] = defaultdict(list)
    for kind in (RunResult, Failure):
        for key in store.keys(kind):
            if key.get("recipe") is not None:
                keys[_alike(key)].append(key)
    return EarlierResults(keys, Counter(key["code"] for known in keys.values() for key in known))


def _alike(key: Json) -> str:
    """Everything but the code and the settings of the recipe."""
    recipe = {name: value for name, value in key["recipe"].items() if name != "settings"}
    about = {name: value for name, value in key.items() if name != "code"}
    return json.dumps({**about, "recipe": recipe}, sort_keys=True)


def _settings(key: Json) -> dict[str, Any]:
    """The settings that the fit depends on."""
    settings: Json = key["recipe"]["settings"]
    unused = _NOT_OF_THE_GAME if settings.get("solver") == "game" else set()
    return {name: value for name, value in settings.items() if name not in unused}


def _same_settings(stored: Json, asked: Json, recipe: Recipe) -> bool:
    """Whether all settings that were known then are equal, and those that came later are at their defaults.

    A new setting keeps earlier results as long as nobody sets it.
    """
    wanted = _settings(asked)
    later = wanted.keys() - stored.keys()
    return not later & recipe.settings.keys() and all(
        name in wanted and wanted[name] == value for name, value in stored.items()
    )
