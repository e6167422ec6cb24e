"""The folder of a search: every trial as soon as it is done, and in the end the best recipe.

tune.json      what is searched, and on which data
trials.jsonl   one line for each fit, replaced as a whole
best.json      the best recipe; it appears when the search is over
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from towpath.errors import ArtifactError, ConfigError
from towpath.experiments.search import Values, key_of
from towpath.files import damaged, refuse_unwritable, write_text
from towpath.methods.recipe import Recipe

FORMAT = 1
ABOUT, TRIALS, BEST = "tune.json", "trials.jsonl", "best.json"
# What two searches must have in common to share their trials.
_SAME = ("fingerprint", "model", "method")

Record = dict[str, Any]  # a JSON object


@dataclass(frozen=True)
class Trial:
    """One recipe fitted with one seed, and what validation said; `failed` says why there is nothing."""

    settings: Values  # what was set
    seed: int
    metrics: dict[str, float]  # of validation under full ranking, by name; empty if the fit failed
    epochs: int
    best_epoch: int
    seconds: float  # spent in training epochs, validation not counted
    failed: str | None
    resolved: Record  # the recipe with every setting as it was used


class Trials:
    """All trials so far, in memory and, where there is a folder, on disk."""

    def __init__(self, folder: Path | None = None, known: Sequence[Trial] = ()) -> None:
        self._folder = folder
        self._known = {key_of(trial.resolved): trial for trial in known}

    def __contains__(self, recipe: Recipe) -> bool:
        """Whether this recipe was tried; how its settings came about does not matter."""
        return key_of(recipe.resolved()) in self._known

    def __getitem__(self, recipe: Recipe) -> Trial:
        """The trial of this recipe."""
        return self._known[key_of(recipe.resolved())]

    def add(self, trial: Trial) -> None:
        """Keep a trial."""
        self._known[key_of(trial.resolved)] = trial
        if self._folder is not None:
            lines = (json.dumps(asdict(one)) + "\n" for one in self._known.values())
            write_text(self._folder / TRIALS, "".join(lines))


def open_trials(folder: Path, about: Record) -> Trials:
    """The trials in this folder, which is set up if it is not there.

    A search of the same model and method on the same split goes on where another one stopped, also with
    another grid or other seeds; anything else is refused.
    """
    refuse_foreign(folder)
    if (folder / ABOUT).is_file():
        _refuse_another(folder, _read(folder, ABOUT), about)
    write_text(folder / ABOUT, json.dumps({"format": FORMAT, **about}, indent=2, default=str) + "\n")
    return Trials(folder, read_trials(folder))


def refuse_foreign(folder: Path) -> None:
    """Nothing, unless a search cannot be kept at `folder`; to be asked before the data are read."""
    refuse_unwritable(folder / ABOUT)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / ABOUT).is_file():
        raise ConfigError(f"{folder} is no folder of a search: it has no {ABOUT}; choose another --out.")


def write_best(folder: Path, best: Record) -> None:
    """Keep what came of the search."""
    write_text(folder / BEST, json.dumps({"format": FORMAT, **best}, indent=2) + "\n")


def read_best(folder: Path) -> tuple[Recipe, Record]:
    """The best recipe of a search, and all that was kept next to it."""
    if not (folder / ABOUT).is_file():
        raise ArtifactError(
            f"There is no search at {folder}; make one with towpath tune DATA --out {folder}."
        )
    if not (folder / BEST).is_file():
        raise ArtifactError(f"The search {folder} is not over; go on with the same towpath tune command.")
    best = _read(folder, BEST)
    return Recipe(best["model"], best["method"], best["settings"]), best


def _read(folder: Path, name: str) -> Record:
    try:
        record: Record = json.loads((folder / name).read_text(encoding="utf-8"))
        found = record["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(folder, name, "cannot be parsed") from error
    if found != FORMAT:
        raise ArtifactError(
            f"{folder} has search format {found!r}, and this towpath reads format {FORMAT}; "
            "search again, or use the towpath version that wrote it."
        )
    return record


def read_trials(folder: Path) -> list[Trial]:
    """Every trial that was kept there, none if there is no such folder."""
    if not (folder / TRIALS).is_file():
        return []
    try:
        lines = (folder / TRIALS).read_text(encoding="utf-8").splitlines()
        return [Trial(**json.loads(line)) for line in lines]
    except (ValueError, TypeError) as error:
        raise damaged(folder, TRIALS, "cannot be parsed") from error


def _refuse_another(folder: Path, old: Record, new: Record) -> None:
    for key in _SAME:
        if old.get(key) != new[key]:
            what = "other data or another split" if key == "fingerprint" else f"{key} {old.get(key)!r}"
            raise ConfigError(
                f"{folder} is a search with {what}; go on with what it was started with, or choose another "
                "--out."
            )
