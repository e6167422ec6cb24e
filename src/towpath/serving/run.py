"""The run folder: everything about one fit, in an order of writes that survives being killed.

run.json                 what was asked for, as it was resolved   \\ these three appear together,
split/                   the split that it is trained on           | by one rename of the folder
checksums.json           the checksum of everything else          /
history.jsonl            one row an epoch, replaced as a whole
checkpoint.safetensors   where to go on from, replaced as a whole
artifact/                the model to serve; appears last, by one rename, and says that the run is over
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from towpath.boundary import loading
from towpath.checksums import MANIFEST
from towpath.data.split import Split, load_split, save_split
from towpath.diagnostics.dial import dial_of
from towpath.errors import ArtifactError, ConfigError
from towpath.files import (
    CHECKSUMS,
    check_listed,
    damaged,
    is_free,
    list_checksums,
    new_folder,
    refuse_unwritable,
    write_text,
)
from towpath.methods.recipe import Recipe
from towpath.methods.run import FixedEpochs, fit
from towpath.models.model_setting import with_classes
from towpath.models.scorer import Scorer
from towpath.serving.artifact import Artifact, artifact_of, library_versions, load_artifact, save_artifact
from towpath.training.checkpoint import load_checkpoint
from towpath.training.distributed import leads
from towpath.training.fit import EpochMetrics, Fit, parse_history

FORMAT = 2
# Runs of format 1 have no list of checksums; their parts are known by their fingerprints only.
READABLE = (1, FORMAT)


class _Recipe(BaseModel):
    model: str
    method: str
    settings: dict[str, Any]  # checked when the recipe is resolved
    seed: int


class _Data(BaseModel):
    model_config = ConfigDict(extra="allow")

    fingerprint: str


class _Record(BaseModel):
    """What run.json must say."""

    recipe: _Recipe
    data: _Data


@dataclass(frozen=True)
class Plan:
    """What a run is made from: the data as they were prepared, and the recipe."""

    split: Split
    recipe: Recipe
    preparation: dict[str, Any]  # where the data came from and what was done to them, ready for JSON
    tables: str = "copied"  # or sharded: what several processes do with the model's tables

    @cached_property
    def record(self) -> dict[str, Any]:
        """What `run.json` keeps; any JSON."""
        return {
            "format": FORMAT,
            "recipe": self.recipe.resolved(),
            "data": {**self.preparation, "fingerprint": self.split.fingerprint},
            "device": self.recipe.device,
            "tables": self.tables,
            "versions": library_versions(),
        }


class Run:
    """One run folder that has been set up."""

    def __init__(self, folder: Path, models: Sequence[type[Scorer]] = ()) -> None:
        self.folder = folder
        self.models = models  # classes of the caller's own, next to those that are registered
        self.record = _read_record(folder)

    @property
    def sharded(self) -> bool:
        """Whether the tables are spread over the processes that train it."""
        return self.record.get("tables") == "sharded"

    @property
    def finished(self) -> bool:
        """Whether there is a model to serve."""
        return (self.folder / "artifact").is_dir()

    @cached_property
    def artifact(self) -> Artifact:
        """The trained model, once the run has finished and the model is proved to be its own."""
        if not self.finished:
            raise ArtifactError(
                f"The run {self.folder} has not finished; continue it with the same towpath fit command "
                "and --resume."
            )
        check_listed(self.folder / "artifact")
        found = load_artifact(self.folder / "artifact", self.models)
        if found.about.get("recipe") != self.record["recipe"]:
            raise self._foreign("artifact", "its recipe is not the one in run.json")
        if found.about.get("data", {}).get("fingerprint") != self.record["data"]["fingerprint"]:
            raise self._foreign("artifact", "it was trained on other data than run.json says")
        return found

    @cached_property
    def split(self) -> Split:
        """The split that the run is trained on, once it is proved to be its own."""
        check_listed(self.folder / "split")
        found = load_split(self.folder / "split")
        if found.fingerprint != self.record["data"]["fingerprint"]:
            raise self._foreign("split", "it has another fingerprint than run.json says")
        return found

    def _foreign(self, part: str, why: str) -> ArtifactError:
        """The error for a part that was copied in from another run."""
        return ArtifactError(
            f"{self.folder / part} belongs to another run: {why}; put back the one that towpath wrote there, "
            "or fit again."
        )

    @property
    def history(self) -> list[EpochMetrics]:
        """One row for each epoch so far; from the checkpoint if the history has been lost."""
        path, checkpoint = self.folder / "history.jsonl", self.folder / "checkpoint.safetensors"
        if not path.exists():
            return list(load_checkpoint(checkpoint).progress.history) if checkpoint.is_file() else []
        check_listed(path)
        try:
            return parse_history(b"[" + b",".join(path.read_bytes().splitlines()) + b"]")
        except ValidationError as error:
            raise damaged(self.folder, path.name, "cannot be parsed") from error

    def train(
        self,
        plan: Plan,
        watch: Callable[[EpochMetrics], None] | None = None,
        fixed: FixedEpochs | None = None,
    ) -> Fit:
        """The finished fit, from the last checkpoint on if there is one, with its artifact written."""
        rows = self.history

        def keep(row: EpochMetrics) -> None:
            # A process killed between history and checkpoint repeats an epoch whose row is there already.
            rows[:] = [r for r in rows if r["epoch"] < row["epoch"]] + [row]
            self._write_history(rows)
            if watch is not None:
                watch(row)

        checkpoint = self.folder / "checkpoint.safetensors"
        done = fit(
            plan.split,
            plan.recipe,
            checkpoint=checkpoint,
            watch=keep if leads() else None,
            fixed=fixed,
            sharded=self.sharded,
        )
        if not leads():
            return done
        self._write_history(list(done.history))
        origin = {key: plan.record[key] for key in ("recipe", "data")}
        if (dial := dial_of(done.scorer, plan.split)) is not None:
            origin["dial"] = asdict(dial)
        save_artifact(artifact_of(done, plan.split, **origin), self.folder / "artifact")
        return done

    def _write_history(self, rows: list[EpochMetrics]) -> None:
        write_text(self.folder / "history.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def recipe_of(run: Run) -> Recipe:
    """The recipe as it was resolved, with the classes that were handed in where it names them."""
    recipe = {key: run.record["recipe"][key] for key in ("model", "method", "settings", "seed")}
    recipe |= {"settings": with_classes(recipe["settings"], run.models)}
    return Recipe(**with_classes(recipe, run.models))


def refuse_nothing_left(run: Run) -> None:
    """Nothing, unless the run was trained on all of its own events, so that none is left to test it on."""
    if run.record["data"].get("trained_on") == "everything":
        raise ConfigError(
            f"{run.folder} was trained on all of its events, so nothing is left to test it on; evaluate "
            f"{run.record['data'].get('made_from')}, which it was made from, or give new events with --test."
        )


def refuse_existing(folder: Path, *, resume: bool) -> None:
    """Nothing, unless a run cannot be made at `folder`, or something is there that it must not touch."""
    refuse_unwritable(folder)
    if is_free(folder):
        return
    if not resume:
        raise ConfigError(f"{folder} already exists; choose another --out, or continue it with --resume.")
    if not (folder / "run.json").is_file():
        raise ConfigError(f"{folder} is not a run to resume: it has no run.json; choose another --out.")


@contextmanager
def removed_if_it_fails(folder: Path) -> Iterator[None]:
    """A block that sets up and trains a run; a run that was not there before does not survive a failure.

    One that is stopped, or that the disk had no room for, stays: it can be resumed.
    """
    begun = (folder / "run.json").is_file()
    try:
        yield
    except Exception as error:
        if not begun and not isinstance(error, ArtifactError | OSError):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def open_run(folder: Path, plan: Plan, *, resume: bool) -> Run:
    """The run of this plan: set up anew, or the one that is there and has the same recipe and data."""
    refuse_existing(folder, resume=resume)
    if (folder / "run.json").is_file():
        run = Run(folder)
        _refuse_another_plan(run, plan)
        return run
    with new_folder(folder) as partial:
        save_split(plan.split, partial / "split")
        write_text(partial / "run.json", json.dumps(plan.record, indent=2, default=str) + "\n")
        list_checksums(partial)
    return Run(folder)


def _read_record(folder: Path) -> dict[str, Any]:
    """The contents of `run.json`; any JSON."""
    if not (folder / "run.json").is_file():
        raise _no_run(folder)
    try:
        record: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        found = record["format"]
    except (ValueError, LookupError, TypeError, RecursionError, OSError) as error:
        raise damaged(folder, "run.json", "cannot be parsed") from error
    if found not in READABLE:
        raise ArtifactError(
            f"{folder} has run format {found!r}, and this towpath reads format {FORMAT}; "
            "fit again, or use the towpath version that wrote it."
        )
    if found == FORMAT and not (folder / CHECKSUMS).is_file():
        raise damaged(folder, CHECKSUMS, "is missing")
    check_listed(folder / "run.json")
    with loading(folder / "run.json"):
        _Record.model_validate(record)
    return record


def _no_run(folder: Path) -> ArtifactError:
    """The error for a path that is no run folder."""
    if (folder / MANIFEST).is_file():
        return ArtifactError(
            f"{folder} is a saved model without the data that it would be evaluated on; give the run folder "
            "that towpath fit made."
        )
    if folder.exists():
        return ArtifactError(f"{folder} is no run folder; give one that towpath fit made.")
    return ArtifactError(f"There is no run at {folder}; make one with towpath fit DATA --out {folder}.")


def _refuse_another_plan(run: Run, plan: Plan) -> None:
    """Nothing, unless going on would mix two recipes or two data sets."""
    _refuse_other_settings(run, plan)
    old = _flat({key: run.record[key] for key in ("recipe", "data")})
    asked = json.loads(json.dumps(plan.record, default=str))
    new = _flat({key: asked[key] for key in ("recipe", "data")})
    changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    same_data = "data.fingerprint" not in changed
    # The same data reached by another path or option are the same data.
    matters = [key for key in changed if not (same_data and key.startswith("data."))]
    if matters:
        key = matters[0]
        raise ConfigError(
            f"{run.folder} was started with {key} = {old.get(key)!r}, and now it is {new.get(key)!r}; "
            "resume with what it was started with, or choose another --out."
        )


def _refuse_other_settings(run: Run, plan: Plan) -> None:
    """Nothing, unless the run has other settings than this version knows for the same model and method."""
    old, new = run.record["recipe"], plan.record["recipe"]
    if (old["model"], old["method"]) != (new["model"], new["method"]):
        return
    different = set(old["settings"]) ^ set(new["settings"])
    if different:
        version = run.record.get("versions", {}).get("towpath", "an unknown version")
        raise ArtifactError(
            f"{run.folder} was started by another version of towpath ({version}), whose settings differ "
            f"({', '.join(sorted(different))}); finish it with that version, or fit again with another --out."
        )


def _flat(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} as {"a.b": 1}; values are any JSON."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
