"""The benchmarks of the paper: built-in datasets, and worlds simulated from them with known relevance."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.data.builtin_datasets import builtin_dataset, local_copy
from towpath.data.cleaning import Cleaning
from towpath.data.sources import Reading, read
from towpath.data.split import Split, split_leave_last_two
from towpath.errors import DataError, unknown_name
from towpath.experiments.code_version import code_version
from towpath.locks import locked
from towpath.models.registry import parse_settings
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world
from towpath.worlds.semi_synthetic import SemiSyntheticWorld, make_semi_synthetic_world
from towpath.worlds.store import load_world, save_world
from towpath.worlds.world import World

WORLD_SEED = 0
FULL_GOODREADS, GOODREADS_SAMPLE = "goodreads-history-biography", "goodreads-small"


@dataclass(frozen=True)
class BenchmarkSpec:
    """How a benchmark is made: from a data set, and by simulation if it has settings for one."""

    title: str
    data: str  # empty: a latent world, which needs none
    simulated: Mapping[str, Any] | None = None  # settings of a simulated world, of any type
    quick: str = ""  # a smaller benchmark that replaces it in quick runs
    note: str = ""


_CUT_OFF = {"clicks": "cut-off"}
_CUT_OFF_NOTE = (
    "Clicks are the likeliest pairs, as in the paper: nothing is drawn, so from this log exposure and "
    "relevance cannot be told apart."
)
_CHANCE_NOTE = "Clicks are drawn: shown by chance, clicked by chance."
_LASTFM_NOTE = (
    "Repeated pairs are dropped: a user tags an artist many times, and with repeats the test artist is "
    "already in training. The paper's level (Hit@10 near 80) needs that leak. No rare users or items are "
    "dropped: of distinct pairs the paper's minimum of 20 would leave 366 users."
)
_MOVIELENS_NOTE = "All ratings are positives; the paper's cut-off at 3 does not fit its own popularity row."

BENCHMARKS: dict[str, BenchmarkSpec] = {
    "ml-1m": BenchmarkSpec("MovieLens 1M", "ml-1m", quick="ml-100k", note=_MOVIELENS_NOTE),
    "ml-100k": BenchmarkSpec("MovieLens 100k", "ml-100k", note=_MOVIELENS_NOTE),
    "lastfm-2k": BenchmarkSpec("LastFM", "lastfm-2k", note=_LASTFM_NOTE),
    "goodreads": BenchmarkSpec("GoodReads", "goodreads"),
    "ml-1m-simulation": BenchmarkSpec(
        "MovieLens 1M simulation", "ml-1m", _CUT_OFF, "ml-100k-simulation", _CUT_OFF_NOTE
    ),
    "ml-100k-simulation": BenchmarkSpec("MovieLens 100k simulation", "ml-100k", _CUT_OFF, note=_CUT_OFF_NOTE),
    "goodreads-simulation": BenchmarkSpec("GoodReads simulation", "goodreads", _CUT_OFF, note=_CUT_OFF_NOTE),
    "ml-1m-by-chance": BenchmarkSpec(
        "MovieLens 1M simulation by chance", "ml-1m", {"clicks": "chance"}, "ml-100k-by-chance", _CHANCE_NOTE
    ),
    "ml-100k-by-chance": BenchmarkSpec(
        "MovieLens 100k simulation by chance", "ml-100k", {"clicks": "chance"}, note=_CHANCE_NOTE
    ),
    "goodreads-by-chance": BenchmarkSpec(
        "GoodReads simulation by chance", "goodreads", {"clicks": "chance"}, note=_CHANCE_NOTE
    ),
    **{
        f"latent-exploration-{share}": BenchmarkSpec(
            f"latent world, {share} % random exposures", "", {"exploration": share / 100}, note=_CHANCE_NOTE
        )
        for share in (0, 5, 10, 25, 50, 100)
    },
}
OVERLAP = tuple(name for name in BENCHMARKS if name.startswith("latent-exploration-"))


def benchmark_spec(name: str) -> BenchmarkSpec:
    """How the benchmark of this name is made."""
    if name not in BENCHMARKS:
        raise unknown_name("data set", name, BENCHMARKS)
    return BENCHMARKS[name]


def simulated_from(name: str) -> str:
    """The benchmark of the same data that is not simulated; empty if this one is not made from data."""
    spec = benchmark_spec(name)
    if not spec.data or spec.simulated is None:
        return ""
    return next((n for n, one in BENCHMARKS.items() if (one.data, one.simulated) == (spec.data, None)), "")


@dataclass(frozen=True)
class Benchmark:
    """A split to learn from and be evaluated on, and true relevance where it is known."""

    name: str
    notes: tuple[str, ...]
    split: Split = field(repr=False)
    world: World | None = field(default=None, repr=False)

    @cached_property
    def fingerprint(self) -> str:
        """That of the split; in a simulated world also of the true relevance."""
        if self.world is None:
            return self.split.fingerprint
        digest = hashlib.sha256(self.split.fingerprint.encode())
        digest.update(np.ascontiguousarray(self.world.relevance).data)
        return digest.hexdigest()

    @property
    def relevance(self) -> NDArray[np.float32] | None:
        """True relevance of every pair, where it is known."""
        return None if self.world is None else self.world.relevance

    @property
    def exposure(self) -> NDArray[np.float32] | None:
        """True chance of every pair to have been shown, where it is known."""
        return None if self.world is None else self.world.propensity


@dataclass(frozen=True)
class BenchmarkLocation:
    """The name of a benchmark, where data sets lie, and where simulated worlds are stored."""

    name: str
    data_dir: Path | None
    worlds: Path


@lru_cache(maxsize=2)
def open_benchmark(location: BenchmarkLocation) -> Benchmark:
    """The benchmark; read once per process, simulated once per folder of worlds."""
    spec = benchmark_spec(location.name)
    if not spec.data:
        world = make_latent_world(parse_settings(LatentWorld, spec.simulated or {}), Rng(WORLD_SEED))
        return Benchmark(location.name, (spec.note,), split_leave_last_two(world.log), world)
    reading, notes = _read(spec.data, location.data_dir)
    notes = tuple(note for note in (*notes, spec.note) if note)
    if spec.simulated is None:
        return Benchmark(location.name, notes, split_leave_last_two(reading.interactions))
    world = _world(location, reading, spec.simulated)
    return Benchmark(location.name, notes, split_leave_last_two(world.log), world)


def _read(data: str, data_dir: Path | None) -> tuple[Reading, tuple[str, ...]]:
    """The data set, and notes about it."""
    if data != "goodreads":
        return read(data, data_dir=data_dir), ()
    if _has_full_goodreads(data_dir):
        filtered = Cleaning(min_per_item=20, min_per_user=20, max_per_user=999)
        return read(FULL_GOODREADS, data_dir=data_dir, cleaning=filtered), ()
    return _goodreads_sample(data_dir), (
        "The full GoodReads set (history and biography) is not there: this is a public sample of GoodReads "
        "ratings of another selection of books, without times, so that the order of the file decides which "
        "event is last. Its level does not compare with the paper's.",
    )


def _has_full_goodreads(data_dir: Path | None) -> bool:
    try:
        local_copy(builtin_dataset(FULL_GOODREADS), data_dir)
    except DataError:
        return False
    return True


def _goodreads_sample(data_dir: Path | None) -> Reading:
    folder = None if data_dir is None else data_dir / GOODREADS_SAMPLE
    if folder is None or not folder.is_dir():
        raise DataError(
            f"Neither {FULL_GOODREADS} nor a folder {GOODREADS_SAMPLE} with a sample of it (user, book and "
            f"rating a line) is in {data_dir or 'a data directory, since none was given'}; get the first "
            "with towpath data fetch, or leave GoodReads out with --data."
        )
    return read(folder)


def _world(location: BenchmarkLocation, reading: Reading, settings: Mapping[str, Any]) -> World:
    """The world of this data set and these settings: read from its folder, or created and stored there."""
    data = split_leave_last_two(reading.interactions).fingerprint
    about = {"data": data, "settings": dict(settings), "seed": WORLD_SEED, "code": code_version()}
    key = hashlib.sha256(repr(sorted(about.items())).encode()).hexdigest()[:12]
    folder = location.worlds / f"{location.name}-{key}"
    with locked(folder.with_name(f".{folder.name}.lock")):  # one process creates it, the others wait
        if not folder.exists():
            parsed = parse_settings(SemiSyntheticWorld, settings)
            world = make_semi_synthetic_world(reading.interactions, parsed, Rng(WORLD_SEED))
            save_world(world, folder, about)
    return load_world(folder)[0]
