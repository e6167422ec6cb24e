"""From files to a split on disk, by an engine alone: no table of events is ever held in this process."""

import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from towpath.data import sql
from towpath.data.cleaning import Cleaning, Step
from towpath.data.encoding import BATCH_ROWS, FIELDS, encode_events, number_rows, vocabulary
from towpath.data.engine import Engine
from towpath.data.feature_parquet import write_feature_table
from towpath.data.interactions import MISSING_TIME, Interactions
from towpath.data.parquet import write_ids, write_parts
from towpath.data.readers import Raw
from towpath.data.spark_engine import SparkEngine, spark_errors
from towpath.data.spark_session import without_pandas_warning
from towpath.data.split import (
    FEATURES,
    PARTS,
    STORED_AS,
    Split,
    assembled,
    check_shares,
    cut_places,
    distinct_cuts,
    draw_thresholds,
    last_two_described,
    load_part,
    missing_times,
    no_times,
    random_described,
    refuse_empty_parts,
    time_described,
)
from towpath.files import new_folder, write_manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from towpath.data.sources import Encode, Reading
    from towpath.rng import Rng

_STORED = dict(FIELDS.values())
_KINDS: dict[type[np.generic], str] = {
    np.int32: "INTEGER",
    np.int64: "BIGINT",
    np.float32: "FLOAT",
    np.bool_: "BOOLEAN",
}


@dataclass(frozen=True)
class SplitPlan:
    """How events are to be split: leave-last-two, time or random."""

    strategy: str
    validation_share: float
    test_share: float
    rng: "Rng"

    def __post_init__(self) -> None:
        if self.strategy != "leave-last-two":
            check_shares(self.validation_share, self.test_share)


def prepare(
    folder: Path,
    plan: SplitPlan,
    read: "Callable[[Encode], Reading]",
    record: "Callable[[Reading], dict[str, Any]]",  # any JSON
) -> tuple["Reading", Split]:
    """The split of what `read` reads, written to this folder in files that training can read piece by piece.

    `record` says what the manifest is to keep of where the data came from.
    """
    with new_folder(folder) as partial:
        writer = _Writer(partial, plan)
        reading = read(writer)
        events = reading.interactions
        ids, features = (events.user_ids, events.item_ids), (events.user_features, events.item_features)
        train, validation, test = (
            load_part(partial / f"{name}.parquet", *ids).with_features(*features) for name in PARTS
        )
        refuse_empty_parts(train, validation, test, writer.description)
        split = assembled(train, validation, test, writer.description)
        write_ids(events.user_ids, partial / "users.parquet")
        write_ids(events.item_ids, partial / "items.parquet")
        for name in FEATURES:
            if (table := getattr(split.train, name)) is not None:
                write_feature_table(table, partial / f"{name}.parquet")
        about = {
            "description": split.description,
            "fingerprint": split.fingerprint,
            "outside": [],
            "preparation": record(reading),
        }
        files = sorted(str(path.relative_to(partial)) for path in partial.rglob("*") if path.is_file())
        write_manifest(partial, STORED_AS, about, files)
    return reading, split


class _Writer:
    """Writes the parts of a split while the engine has the events, and keeps what the split is called."""

    def __init__(self, folder: Path, plan: SplitPlan) -> None:
        self._folder, self._plan = folder, plan
        self.description = ""

    def __call__(
        self, connection: Engine, raw: Raw, cleaning: Cleaning
    ) -> tuple[Interactions, tuple[Step, ...]]:
        """No interactions but their vocabularies, and what each step of cleaning dropped."""
        steps = encode_events(connection, raw, cleaning)
        statements = sql.Statements(raw.extras)
        number_rows(connection, "placed", statements.in_order(MISSING_TIME))
        nothing = np.empty(0, dtype=np.int32)
        ids = vocabulary(connection, "user"), vocabulary(connection, "item")
        events = Interactions(nothing, nothing, *ids)
        statement = self._statement(connection, raw.extras, steps[-1].rows, events)
        connection.execute(f"CREATE TABLE parts AS {statement}")
        names = ("user_code", "item_code", *raw.extras)
        columns = {name: (FIELDS[name][0], _KINDS[FIELDS[name][1]]) for name in names}
        for name, part in zip(PARTS, (sql.TRAIN, sql.VALIDATION, sql.TEST), strict=True):
            write_rows(connection, sql.rows_of_part(part, columns), self._folder / name)
        return events, steps

    def _statement(self, connection: Engine, extras: tuple[str, ...], rows: int, events: Interactions) -> str:
        """The SQL that gives every place its part."""
        plan, labelled, timed = self._plan, "label" in extras, "event_time" in extras
        if plan.strategy != "random":
            _refuse_missing_times(connection, plan, timed, rows, events)
        if plan.strategy == "random":
            make_draws(connection, plan.rng.numpy("split"), "request" in extras)
        connection.execute(sql.looked_at(extras, draws=plan.strategy == "random"))
        shares = plan.validation_share, plan.test_share
        if plan.strategy == "leave-last-two":
            self.description = last_two_described(timed=timed)
            return sql.LEAVE_LAST_TWO_POSITIVES if labelled else sql.LEAVE_LAST_TWO
        if plan.strategy == "time":
            places = cut_places(rows, *shares)
            cuts = distinct_cuts([connection.execute(sql.first_moment_after(n)).fetchone() for n in places])
            self.description = time_described(cuts)
            return sql.parts_by_threshold("event_time", *cuts, labelled=labelled)
        self.description = random_described(*shares, plan.rng.seed)
        return sql.parts_by_threshold("draw", *draw_thresholds(*shares), labelled=labelled)


def _refuse_missing_times(
    connection: Engine, plan: SplitPlan, timed: bool, rows: int, events: Interactions
) -> None:
    who = "split_by_time" if plan.strategy == "time" else "split_leave_last_two"
    if not timed:
        if plan.strategy == "time":
            raise no_times()
        return
    count, place = connection.execute(sql.MISSING_TIMES.format(missing=MISSING_TIME)).fetchall()[0]
    if count:
        codes = connection.execute(
            f"SELECT user_code, item_code FROM placed WHERE place = {place}"
        ).fetchall()[0]
        first = events.user_ids.ids(np.array(codes[:1]))[0], events.item_ids.ids(np.array(codes[1:]))[0]
        raise missing_times(who, (count, rows), first)


def make_draws(connection: Engine, generator: np.random.Generator, by_request: bool) -> None:
    """The table `draws` (unit, draw): a draw for each request, or for each row, in their order."""
    unit = "request" if by_request else "place"
    units = connection.execute(f"SELECT MAX({unit}) + 1 FROM placed").fetchall()[0][0]
    if isinstance(connection, SparkEngine):
        rows = connection.session.range(units)
        with without_pandas_warning():
            connection.view("draws", rows.mapInArrow(_Draws(generator), "unit BIGINT, draw DOUBLE"))
        return
    starts = range(0, units, BATCH_ROWS)
    ids = (np.arange(start, min(start + BATCH_ROWS, units)) for start in starts)
    batches = (pa.record_batch({"unit": some, "draw": generator.random(len(some))}) for some in ids)
    schema = pa.schema([("unit", pa.int64()), ("draw", pa.float64())])
    connection.register("drawn", pa.RecordBatchReader.from_batches(schema, batches))
    connection.execute("CREATE TABLE draws AS SELECT unit, draw FROM drawn")


class _Draws:
    """Draws for runs of whole numbers, each where it would be if all were drawn in one go."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            units = batch.column(0).to_numpy()
            generator = deepcopy(self._generator)
            generator.bit_generator.advance(int(units[0]))  # type: ignore[attr-defined]  # PCG64 has it
            yield pa.record_batch({"unit": units, "draw": generator.random(len(units))})


def write_rows(connection: Engine, select: str, folder: Path) -> None:
    """A folder of Parquet files with the rows of an ordered query, in the order of the files' names."""
    if not isinstance(connection, SparkEngine):
        relation = connection.sql(select)
        schema = pa.schema([(name, pa.from_numpy_dtype(_STORED[name])) for name in relation.columns])
        write_parts((_plain(batch, schema) for batch in relation.to_arrow_reader(BATCH_ROWS)), schema, folder)
        return
    _write_by_spark(connection.sql(select).frame, folder)
    for path in folder.iterdir():
        if path.suffix != ".parquet":  # what Spark leaves next to its files
            os.unlink(path)


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in the types that a split stores; DuckDB has one of its own for truth values."""
    columns = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in schema.names}
    return pa.record_batch({name: column.astype(_STORED[name]) for name, column in columns.items()}, schema)


def _write_by_spark(frame: "DataFrame", folder: Path) -> None:
    with spark_errors(lambda reason: f"{folder} cannot be written by Spark's workers: {reason}."):
        frame.write.option("compression", "zstd").parquet(folder.absolute().as_uri())
