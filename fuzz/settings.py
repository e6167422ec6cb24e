"""Settings that overflow, are of the wrong type or do not exist."""

import json
from pathlib import Path

from fuzz.mutators import Rng, anything, as_json
from fuzz.outcomes import refused_or


class Settings:
    """Settings of every model and method: refused, or finite."""

    def __init__(self, folder: Path) -> None:
        from towpath.methods.registry import METHODS
        from towpath.models.registry import MODELS

        self._models, self._methods = list(MODELS), list(METHODS)

    def __call__(self, rng: Rng) -> str:
        from towpath.cli.options import parse_grid, parse_settings
        from towpath.methods.recipe import Recipe

        model = self._models[rng.integers(len(self._models))]
        method = self._methods[rng.integers(len(self._methods))] if rng.random() < 0.5 else "plain"

        def resolve() -> str:
            known = list(Recipe(model, method).resolved()["settings"])
            pairs = []
            for _ in range(int(rng.integers(1, 4))):
                key = (
                    known[rng.integers(len(known))]
                    if rng.random() < 0.95
                    else "".join(map(chr, rng.bytes(3)))
                )
                pairs.append(f"{key}={as_json(anything(rng), rng).decode(errors='replace')}")
            (parse_grid if rng.random() < 0.1 else parse_settings)(pairs)
            resolved = Recipe(model, method, parse_settings(pairs)).resolved()["settings"]
            json.dumps(resolved, allow_nan=False)  # which raises for what is not finite
            return "read"

        return refused_or(resolve)
