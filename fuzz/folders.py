"""Damaged folders that prove themselves by a manifest: models, splits and worlds."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.mutators import Rng, as_json, changed, damaged
from fuzz.outcomes import SilentDifferenceError, refused_or
from fuzz.runs import small_split
from towpath import checksums
from towpath.checksums import MANIFEST


def damage(folder: Path, other: Path, rng: Rng) -> Path:
    """The file of the folder that was removed, replaced by that of another folder, or changed."""
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    name = names[rng.integers(len(names))]
    path, how = folder / name, rng.random()
    if how < 0.05:
        path.unlink()
    elif how < 0.2 and (other / name).is_file():
        shutil.copyfile(other / name, path)
    elif how < 0.5 and name.suffix == ".json":
        path.write_bytes(as_json(changed(json.loads(path.read_bytes()), rng), rng))
    else:
        path.write_bytes(damaged(path.read_bytes(), rng))
    return path


def sign(folder: Path, path: Path) -> None:
    """A manifest that fits again, as somebody would make it who changes a file on purpose."""
    manifest = folder / MANIFEST
    try:
        stored = json.loads(manifest.read_bytes())
        if path != manifest:
            stored["files"][str(path.relative_to(folder))] = checksums.file_digest(path)
        stored.pop("checksum", None)
        stored |= {"checksum": checksums.manifest_checksum(stored)}
        manifest.write_text(checksums.rendered(stored))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError):
        return  # what is no manifest any more cannot be signed


@dataclass(frozen=True)
class _Kind:
    """How to make such a folder from a number, and what it answers."""

    make: Callable[[Path, int], None]
    answer: Callable[[Path], Any]


class Folders:
    """Damaged folders: refused, or they answer as before; with checksums made anew, refused or read."""

    def __init__(self, folder: Path) -> None:
        self._home, self._copy = folder, folder / "copy"
        self._right = {}
        for name, kind in KINDS.items():
            for number in (0, 1):
                kind.make(folder / f"{name}-{number}", number)
            self._right[name] = kind.answer(folder / f"{name}-0")

    def __call__(self, rng: Rng) -> str:
        name = list(KINDS)[rng.integers(len(KINDS))]
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._home / f"{name}-0", self._copy)
        path = damage(self._copy, self._home / f"{name}-1", rng)
        signed = rng.random() < 0.4
        if signed:
            sign(self._copy, path)
        return refused_or(lambda: self._use(name, signed))

    def _use(self, name: str, signed: bool) -> str:
        found = KINDS[name].answer(self._copy)
        if found == self._right[name]:
            return "same"
        if not signed:
            raise SilentDifferenceError(f"a damaged {name} answers something else")
        return "read"


def _make_model(out: Path, number: int) -> None:
    from towpath.methods.recipe import Recipe
    from towpath.methods.run import fit
    from towpath.serving.artifact import artifact_of, save_artifact

    settings = {"epochs": 1, "embedding_dim": 4}
    model = ("mf", "attention")[number]
    split = small_split(30 + number)
    save_artifact(artifact_of(fit(split, Recipe(model, "plain", settings, number)), split), out)


def _lists(folder: Path) -> Any:
    from towpath.serving.recommender import load

    recommender = load(folder)
    return [str(recommender.recommend(user, k=4)) for user in (0, 3, "nobody")]


def _make_split(out: Path, number: int) -> None:
    from towpath.data.split import save_split

    save_split(small_split(30 + number), out)


def _split(folder: Path) -> Any:
    from towpath.data.split import load_split

    split = load_split(folder)
    return [split.fingerprint, split.description, split.train.n_users, len(split.test)]


def _make_world(out: Path, number: int) -> None:
    from towpath.rng import Rng as Seeded
    from towpath.worlds.latent import LatentWorld, make_latent_world
    from towpath.worlds.store import save_world

    settings = LatentWorld(users=30 + number, items=20, shown_per_user=5)
    save_world(make_latent_world(settings, Seeded(number)), out, {"seed": number})


def _world(folder: Path) -> Any:
    from towpath.worlds.store import load_world

    world, about = load_world(folder)
    best = world.best_relevance(3, world.log)
    return [world.click_rate(), float(np.sum(best)), world.overlap(), about]


KINDS = {
    "model": _Kind(_make_model, _lists),
    "split": _Kind(_make_split, _split),
    "world": _Kind(_make_world, _world),
}
