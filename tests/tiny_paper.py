"""A table of the paper's kind that takes a second: tiny data, tiny fits."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from towpath.experiments.paper.benchmarks import BENCHMARKS, BenchmarkSpec, open_benchmark
from towpath.experiments.paper.catalogue import EXPERIMENTS
from towpath.experiments.paper.claims import BestIsTransport, Better, CatchesUp, Rises, Steady, WeightsAre
from towpath.experiments.paper.experiment import Experiment, Sweep
from towpath.experiments.paper.run import PaperConfig
from towpath.methods.recipe import Recipe

FAST = {"epochs": 3, "embedding_dim": 4, "batch_size": 256}
ALL_PAIRS = FAST | {"reweight": "all"}
SWEEP = Sweep("lambda", Recipe("mf", "transport", FAST), "penalty", (0.0, 1.0), ("MCF",))
TINY = Experiment(
    name="tiny",
    title="A tiny table",
    about="A table for tests.",
    benchmarks=("tiny", "tiny-simulation"),
    methods={
        "Pop": Recipe("popularity"),
        "MCF": Recipe("mf", settings=FAST),
        "DT-MCF": Recipe("mf", "transport", ALL_PAIRS),
    },
    pairs=(("DT-MCF", "MCF"),),
    claims=(
        Better("MCF", "Pop"),
        Better("DT-MCF", "Pop"),
        BestIsTransport(),
        WeightsAre("weights are larger on positives", "DT-MCF", "more on positives"),
        WeightsAre("on negatives, weights rise with exposure", "DT-MCF", "rising with exposure"),
        CatchesUp("DT-MCF", "MCF"),
    ),
    pictures=("weights", "time"),
    seeds=2,
)
SMALL = replace(TINY, benchmarks=("tiny",))  # without the simulation
SWEPT = Experiment(
    name="tiny-sweep",
    title="A tiny sweep",
    about="A sweep for tests.",
    benchmarks=("tiny",),
    methods={"MCF": Recipe("mf", settings=FAST)},
    sweeps=(SWEEP,),
    claims=(
        Rises("More is better", tuple(map(SWEEP.label, SWEEP.values))),
        Steady("It matters little", tuple(map(SWEEP.label, SWEEP.values))),
    ),
    seeds=2,
)


def write_ratings(path: Path, users: int = 40, items: int = 300) -> None:
    """Ratings of users who like every second item; times are the order of the file."""
    rng = np.random.default_rng(0)
    lines = ["user,item,rating,time"]
    for user in range(users):
        taken = rng.choice(items, size=20, replace=False)
        liked = np.where(taken % 2 == user % 2, 5, 2)
        lines += [
            f"u{user},i{item},{rating},{at}"
            for at, (item, rating) in enumerate(zip(taken, liked, strict=True))
        ]
    path.write_text("\n".join(lines) + "\n")


def register(folder: Path) -> None:
    """Make the tiny experiments and their data known to this process."""
    data = folder / "ratings.csv"
    if not data.exists():
        write_ratings(data)
    BENCHMARKS["tiny"] = BenchmarkSpec("Tiny", str(data), note="Made for tests.")
    BENCHMARKS["tiny-simulation"] = BenchmarkSpec(
        "Tiny simulation", str(data), {"clicks": "cut-off", "density": 0.05}
    )
    EXPERIMENTS["tiny"], EXPERIMENTS["tiny-sweep"] = TINY, SWEPT


def config(folder: Path, **settings: object) -> PaperConfig:
    """A run into this folder."""
    return PaperConfig(out=folder / "out", code="as in tests", **settings)  # type: ignore[arg-type]


@contextmanager
def registered(folder: Path) -> Iterator[Path]:
    """The folder, with the tiny experiments known for as long as it is used."""
    register(folder)
    yield folder
    for table in (BENCHMARKS, EXPERIMENTS):
        for name in [name for name in table if name.startswith("tiny")]:
            del table[name]
    open_benchmark.cache_clear()
