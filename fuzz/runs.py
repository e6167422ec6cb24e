"""Damaged runs."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fuzz.mutators import Rng, as_json, changed, damaged
from fuzz.outcomes import SilentDifferenceError, refused_or
from towpath.checksums import MANIFEST
from towpath.data.cleaning import Cleaning
from towpath.data.sources import read
from towpath.files import CHECKSUMS, list_checksums


class Runs:
    """Damaged runs: refused, or they answer as before."""

    def __init__(self, folder: Path) -> None:
        self._run, self._other = folder / "run", folder / "other"
        self._copy = folder / "copy"
        for place, (out, seed) in enumerate(((self._run, 0), (self._other, 1))):
            make_run(out, seed, place)
        self._right = _answers(self._run)
        files = sorted(path for path in self._run.rglob("*") if path.is_file())
        self._files = [path.relative_to(self._run) for path in files]

    def __call__(self, rng: Rng) -> str:
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._run, self._copy)
        self._attack(rng)
        return refused_or(self._use)

    def _attack(self, rng: Rng) -> None:
        how = rng.random()
        name = self._files[rng.integers(len(self._files))]
        path = self._copy / name
        if how < 0.05:
            path.unlink()
        elif how < 0.15:
            shutil.copyfile(self._other / name, path)
        elif how < 0.2:
            part = ("split", "artifact")[rng.integers(2)]
            shutil.rmtree(self._copy / part)
            shutil.copytree(self._other / part, self._copy / part)
        elif how < 0.5 and name.suffix == ".json":
            path.write_bytes(as_json(changed(json.loads(path.read_bytes()), rng), rng))
        else:
            path.write_bytes(damaged(path.read_bytes(), rng))
        if how > 0.8 and path.is_file() and name.name != CHECKSUMS:
            self._sign(path)

    def _sign(self, path: Path) -> None:
        """Checksums that are right again, as somebody would make them who changes a file on purpose."""
        from towpath import checksums

        manifest = path.parent / MANIFEST
        if path.parent != self._copy and manifest.is_file():
            try:
                stored = json.loads(manifest.read_bytes())
                if path != manifest:
                    stored["files"][path.name] = checksums.file_digest(path)
                stored.pop("checksum", None)
                stored |= {"checksum": checksums.manifest_checksum(stored)}
                manifest.write_text(checksums.rendered(stored))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                return
        list_checksums(self._copy)

    def _use(self) -> str:
        if _answers(self._copy) != self._right and not self._signed():
            raise SilentDifferenceError("a damaged run answers something else")
        return "same"

    def _signed(self) -> bool:
        """Whether all checksums were made anew: then the run is another one, and says so."""
        return (self._copy / CHECKSUMS).read_bytes() != (self._run / CHECKSUMS).read_bytes()


def make_run(out: Path, seed: int, place: int) -> None:
    from towpath.methods.recipe import Recipe
    from towpath.serving.run import Plan, open_run

    plan = Plan(small_split(40 + place), Recipe("mf", "plain", {"epochs": 2, "embedding_dim": 3}, seed), {})
    open_run(out, plan, resume=False).train(plan)


def small_split(users: int) -> Any:
    from towpath.data.split import split_leave_last_two

    rng = np.random.default_rng(users)
    table = pa.table({"user": np.repeat(np.arange(users), 6), "item": rng.integers(0, 20, users * 6)})
    return split_leave_last_two(read(table, cleaning=Cleaning(repeats="allow")).interactions)


def _answers(folder: Path) -> list[Any]:
    """What a run says: some lists, its split, its history, where it would go on."""
    from towpath.serving.recommender import load
    from towpath.serving.run import Run
    from towpath.training.checkpoint import load_checkpoint

    run, recommender = Run(folder), load(folder)
    lists = [recommender.recommend(user, k=5) for user in (0, 1, 2)]
    progress = load_checkpoint(folder / "checkpoint.safetensors").progress
    return [str(lists), run.split.fingerprint, run.history, progress.history, run.record["recipe"]]
