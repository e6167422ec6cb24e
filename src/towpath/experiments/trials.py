"""The folder of a search: every trial as soon as it is finished, and in the end the best recipe.

results/       the trials, as in every store
tune.json      what is searched, and on which data
trials.jsonl   the same trials for people, one line for each fit; towpath does not read it
best.json      the best recipe; written when the search is finished
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel

from towpath.boundary import stored
from towpath.errors import ArtifactError, ConfigError
from towpath.experiments.result_store import FOLDER, Entry, ResultKey, ResultStore
from towpath.experiments.search import Values
from towpath.files import damaged, is_free, refuse_unwritable, write_text
from towpath.methods.recipe import Recipe

ABOUT, TRIALS, BEST = "tune.json", "trials.jsonl", "best.json"
FORMATS = {ABOUT: 2, BEST: 1}
# Two searches must agree in these to share a folder.
_SAME = ("fingerprint", "model", "method")
_EVALUATION = {"protocols": ["full"], "on": "validation", "k": 10, "by": "validator"}

Record = dict[str, Any]  # a JSON object


class _Best(BaseModel):
    """What best.json must say."""

    model: str
    method: str
    settings: dict[str, Any]  # checked when the recipe is resolved
    fingerprint: str


@dataclass(frozen=True)
class Trial:
    """One recipe fitted with one seed, and its validation metrics; `failed` says why there are none."""

    kind: ClassVar[str] = "trial"

    settings: Values  # what was set
    seed: int
    metrics: dict[str, float]  # of validation under full ranking, by name; empty if the fit failed
    epochs: int
    best_epoch: int
    seconds: float  # spent in training epochs, validation not counted
    failed: str | None
    resolved: Record  # the recipe with every setting as it was used
    validation_seconds: float = 0.0  # trials of early versions did not say

    def to_entry(self) -> Entry:
        """All of it is notes."""
        return Entry({}, asdict(self))

    @classmethod
    def from_entry(cls, entry: Entry) -> "Trial":
        """The stored trial."""
        return cls(**entry.notes)


class Trials:
    """The trials on one split so far, in memory and, where there is a folder, on disk."""

    def __init__(self, fingerprint: str, folder: Path | None = None) -> None:
        self._fingerprint, self._folder = fingerprint, folder
        self._store = None if folder is None else ResultStore(folder / FOLDER)
        self._known = {} if self._store is None else dict(self._store.results(Trial))

    def __contains__(self, recipe: Recipe) -> bool:
        """Whether this recipe was tried; how its settings came about does not matter."""
        return self._name(recipe) in self._known

    def __getitem__(self, recipe: Recipe) -> Trial:
        """The trial of this recipe."""
        return self._known[self._name(recipe)]

    def add(self, recipe: Recipe, trial: Trial) -> None:
        """Store a trial."""
        self._known[self._name(recipe)] = trial
        if self._folder is not None and self._store is not None:
            self._store.put(self._key(recipe, self._store), trial)
            lines = (json.dumps(asdict(one)) + "\n" for one in self._known.values())
            write_text(self._folder / TRIALS, "".join(lines))

    def _name(self, recipe: Recipe) -> str:
        if self._store is None:
            return json.dumps(recipe.resolved(), sort_keys=True)
        return self._key(recipe, self._store).name

    def _key(self, recipe: Recipe, store: ResultStore) -> ResultKey:
        return store.key(data=self._fingerprint, recipe=recipe, evaluation=_EVALUATION)


def open_trials(folder: Path, about: Record) -> Trials:
    """The trials in this folder, which is created if it is not there.

    A search of the same model and method on the same split goes on where another one stopped, also with
    another grid or other seeds; anything else is refused.
    """
    refuse_other_folder(folder)
    if (folder / ABOUT).is_file():
        _refuse_other_search(folder, _read(folder, ABOUT), about)
    about = json.loads(json.dumps(about, default=str))
    write_text(folder / ABOUT, json.dumps({"format": FORMATS[ABOUT], **about}, indent=2) + "\n")
    return Trials(about["fingerprint"], folder)


def refuse_other_folder(folder: Path) -> None:
    """Raise unless a search can be stored at `folder`; to be called before the data are read."""
    refuse_unwritable(folder / ABOUT)
    if not is_free(folder) and not (folder / ABOUT).is_file():
        raise ConfigError(f"{folder} is not the folder of a search: it has no {ABOUT}; choose another --out.")
    if (folder / ABOUT).is_file():
        _read(folder, ABOUT)  # of an earlier version, or damaged


def write_best(folder: Path, best: Record) -> None:
    """Store the best recipe of the search."""
    write_text(folder / BEST, json.dumps({"format": FORMATS[BEST], **best}, indent=2) + "\n")


def read_best(folder: Path) -> tuple[Recipe, Record]:
    """The best recipe of a search, and everything that is stored with it."""
    if not (folder / ABOUT).is_file():
        raise ArtifactError(
            f"There is no search at {folder}; make one with towpath tune DATA --out {folder}."
        )
    if not (folder / BEST).is_file():
        raise ArtifactError(f"The search {folder} is not finished; run the same towpath tune command again.")
    best = _read(folder, BEST)
    with stored(folder / BEST, "run the same towpath tune command again"):
        _Best.model_validate(best)
    return Recipe(best["model"], best["method"], best["settings"]), best


def searched_settings(folder: Path) -> list[str]:
    """The settings that a search decided; none if an early version wrote it."""
    return list(_parsed(folder, ABOUT).get("grid", ()))


def _parsed(folder: Path, name: str) -> Record:
    try:
        record: Record = json.loads((folder / name).read_text(encoding="utf-8"))
        record["format"]  # every one says it
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise damaged(folder, name, "cannot be parsed") from error
    return record


def _read(folder: Path, name: str) -> Record:
    record = _parsed(folder, name)
    version = record["format"]
    if version != FORMATS[name]:
        raise ArtifactError(
            f"{folder} has search format {version!r}, and this towpath reads format {FORMATS[name]}; "
            "choose another --out to search again, or use the towpath version that wrote it."
        )
    return record


def stored_trials(folder: Path) -> list[Trial]:
    """Every trial that this version of the code stored there; none if there is no such folder."""
    return [trial for _, trial in ResultStore(folder / FOLDER).results(Trial)]


def _refuse_other_search(folder: Path, old: Record, new: Record) -> None:
    for key in _SAME:
        if old.get(key) != new[key]:
            what = "other data or another split" if key == "fingerprint" else f"{key} {old.get(key)!r}"
            raise ConfigError(
                f"{folder} is a search with {what}; give the same options as before, or choose another --out."
            )
