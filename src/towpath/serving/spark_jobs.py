"""Lists and evaluations of all users by the workers of a Spark cluster, identical to those of one process.

Every worker opens the run folder, which must lie where all of them can read it. Users are scored in the
blocks in which one process would score them: a product of other shapes may differ in the last bit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from towpath.data.spark_engine import spark_errors
from towpath.data.spark_session import spark_session, without_pandas_warning
from towpath.data.split import Part
from towpath.evaluation.evaluate import EvaluationOptions, RankedBlock, ranking_job
from towpath.evaluation.protocols import EvalProtocol
from towpath.ranking.blocks import rows_per_block
from towpath.serving.batch import Find, Found, TopRows, lists_of, runs_of
from towpath.serving.catalogue import ListRules
from towpath.serving.recommender import Recommender, load
from towpath.serving.run import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTS_PER_CORE = 2  # so that a slow one does not hold up all
_LISTS = "piece BIGINT, items ARRAY<BIGINT>, scores ARRAY<FLOAT>, fallback BIGINT"
_RANKS = "piece BIGINT, ranks ARRAY<DOUBLE>, lists ARRAY<BIGINT>"


def lists_by_spark(engine: str, run: Path) -> Find:
    """What makes lists on the workers, run by run, as `write_lists` wants them."""

    def find(recommender: Recommender, codes: NDArray[np.int64], rules: ListRules) -> Iterator[Found]:
        session = spark_session(engine)
        for some in runs_of(len(codes), rules.k):
            pieces = _pieces(recommender, codes[some], rules, _parts(session))
            made = _run(session, len(pieces), _MakeLists(str(run.absolute()), pieces, rules), _LISTS)
            items = made.column("items").combine_chunks().flatten().to_numpy().reshape(-1, rules.k)
            scores = made.column("scores").combine_chunks().flatten().to_numpy().reshape(-1, rules.k)
            yield some, TopRows(items, scores), int(made.column("fallback").to_numpy().sum())

    return find


def ranks_by_spark(
    engine: str, run: Path, protocol: EvalProtocol, on: Part, options: EvaluationOptions
) -> Callable[[int], Iterator[RankedBlock]]:
    """What ranks blocks on the workers, as `evaluate` wants it."""

    def rank(places: int) -> Iterator[RankedBlock]:
        session = spark_session(engine)
        parts = _parts(session)
        without = EvaluationOptions(options.negatives_seed, resting=options.resting)
        work = _RankBlocks(str(run.absolute()), (protocol, on, without), places, parts)
        made = _run(session, parts, work, _RANKS)
        for found, lists in zip(made.column("ranks"), made.column("lists"), strict=True):
            yield found.values.to_numpy(), lists.values.to_numpy().reshape(-1, places or 1)[:, :places]

    return rank


@dataclass(frozen=True)
class _MakeLists:
    """The lists of pieces of users; a piece is known by its number."""

    folder: str
    pieces: list[NDArray[np.int64]]  # codes of users
    rules: ListRules

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for piece in _numbers(batches):
            lists, fallback = lists_of(_recommender(self.folder), self.pieces[piece], self.rules)
            yield _row(piece, items=lists.items.ravel(), scores=lists.scores.ravel(), fallback=fallback)


@dataclass(frozen=True)
class _RankBlocks:
    """The ranks of every so many-th block."""

    folder: str
    what: tuple[EvalProtocol, Part, EvaluationOptions]
    places: int
    parts: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in _numbers(batches):
            run = _opened(self.folder)
            blocks = ranking_job(run.split, *self.what).ranked(
                run.artifact.scorer, self.places, part, self.parts
            )
            for number, (ranks, lists) in enumerate(blocks):
                yield _row(part + number * self.parts, ranks=ranks, lists=lists.ravel())


def _parts(session: "SparkSession") -> int:
    return session.sparkContext.defaultParallelism * _PARTS_PER_CORE


def _pieces(
    recommender: Recommender, codes: NDArray[np.int64], rules: ListRules, most: int
) -> list[NDArray[np.int64]]:
    """The users in at most so many pieces, each ending where one process ends a block of known users."""
    width = len(recommender.artifact.item_ids) if rules.candidates is None else len(rules.candidates)
    known = np.flatnonzero(recommender.knows(codes))
    rows = rows_per_block(width)
    blocks = -(-len(known) // rows)
    return np.split(codes, known[:: rows * max(1, -(-blocks // most))][1:])


def _run(session: "SparkSession", parts: int, work: "_MakeLists | _RankBlocks", schema: str) -> pa.Table:
    """What the work gives for the numbers below `parts`, each a task of its own, in their order."""
    with without_pandas_warning(), spark_errors():
        made = session.range(0, parts, 1, parts).mapInArrow(work, schema).toArrow()
    return made.sort_by("piece")


def _numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    torch.set_num_threads(1)  # as one process does, so that the same seed gives the same floats
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _row(piece: int, **values: NDArray[np.generic] | int) -> pa.RecordBatch:
    columns = {
        name: pa.array([value])
        if isinstance(value, int)
        else pa.array([value], pa.list_(pa.array(value).type))
        for name, value in values.items()
    }
    return pa.record_batch({"piece": pa.array([piece]), **columns})


@cache  # a worker process does many tasks
def _recommender(folder: str) -> Recommender:
    return load(folder)


@cache
def _opened(folder: str) -> Run:
    return Run(Path(folder))
