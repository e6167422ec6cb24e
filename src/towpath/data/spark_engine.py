"""Spark behind the contract of an engine: the same statements, answered by a cluster."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from towpath.boundary import reason_of
from towpath.data.sql import FUNCTIONS
from towpath.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CREATE = re.compile(r"\s*CREATE (TABLE|VIEW) (\w+) AS\b(.*)", re.DOTALL)
_DROP = re.compile(r"\s*DROP (?:TABLE|VIEW) (?:IF EXISTS )?(\w+)\s*")
_RENAME = re.compile(r"\s*ALTER TABLE (\w+) RENAME TO (\w+)\s*")
# What DuckDB calls the types that Spark has.
_KINDS = {
    "string": "VARCHAR",
    "int": "INTEGER",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
    "binary": "BLOB",
}


class SparkEngine:
    """A session whose tables are views of this session, each computed once."""

    def __init__(self, session: "SparkSession") -> None:
        self.session = session
        self.starts: dict[str, list[int]] = {}  # of a source, by its label: how many rows precede each file
        for function in FUNCTIONS:
            self._run(function.in_spark())

    def execute(self, statement: str) -> "SparkAnswer":
        """What one statement gives, or several with semicolons between them."""
        if created := _CREATE.fullmatch(statement):
            kind, name, select = created.groups()
            frame = self._run(select)
            self.view(name, self.computed(frame) if kind == "TABLE" else frame)
            return SparkAnswer([])
        if statement.lstrip().startswith("DROP "):
            for one in statement.split(";"):
                found = _DROP.fullmatch(one)
                assert found is not None, one
                self.session.catalog.dropTempView(found[1])
            return SparkAnswer([])
        if renamed := _RENAME.fullmatch(statement):
            self.view(renamed[2], self.session.table(renamed[1]))
            self.session.catalog.dropTempView(renamed[1])
            return SparkAnswer([])
        if statement.startswith("DESCRIBE "):
            return SparkAnswer(kinds_of(self.session.table(statement.removeprefix("DESCRIBE "))))
        with spark_errors():
            return SparkAnswer([tuple(row) for row in self._run(statement).collect()])

    def sql(self, select: str) -> "SparkRelation":
        """The rows of a query."""
        return SparkRelation(self._run(select))

    def register(self, name: str, table: pa.Table) -> None:
        """Send a table of this process to Spark."""
        with spark_errors():
            self.view(name, self.session.createDataFrame(table))

    def view(self, name: str, frame: "DataFrame") -> None:
        """Make a frame known under this name."""
        frame.createOrReplaceTempView(name)

    def computed(self, frame: "DataFrame", say: Callable[[str], str] | None = None) -> "DataFrame":
        """The rows of a frame, computed now and once; `say` makes a sentence of why they cannot be.

        They are kept in the checkpoint folder if Spark has one, else by the workers themselves. What was
        computed is forgotten, since the plan of a table that refers to itself would double with every step.
        """
        with spark_errors(say or could_not_go_on):
            folder = self.session.sparkContext.getCheckpointDir()
            return frame.localCheckpoint() if folder is None else frame.checkpoint()

    def number(self, name: str, select: str, number: str = "place", kind: str = "BIGINT") -> None:
        """The table of the rows of an ordered query, numbered in that order, from 0, in a new column."""
        from pyspark.sql.functions import array, col, lit, monotonically_increasing_id, spark_partition_id

        rows = self.computed(self._run(select))
        with spark_errors():
            found = {row[0]: row[1] for row in rows.groupBy(spark_partition_id()).count().collect()}
        counts = [found.get(partition, 0) for partition in range(rows.rdd.getNumPartitions())]
        # The number that Spark gives a row has its partition in the bits above the lower 33.
        shifts = [start - (n << 33) for n, start in enumerate(accumulate(counts[:-1], initial=0))]
        shift = array(*(lit(one) for one in shifts))[spark_partition_id()]
        place = (monotonically_increasing_id() + shift).cast(kind).alias(number)
        self.view(name, self.computed(rows.select(*(col(column) for column in rows.columns), place)))

    def _run(self, statement: str) -> "DataFrame":
        # A backslash is an ordinary character to DuckDB, and to Spark only if there are two.
        with spark_errors():
            return self.session.sql(statement.replace("\\", "\\\\"))


class SparkAnswer:
    """The rows that a statement gave."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row, if there is one."""
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""
        return self._rows


class SparkRelation:
    """The rows of a query, fetched as Arrow when they are asked for."""

    def __init__(self, frame: "DataFrame") -> None:
        self.frame = frame

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.frame.columns

    def to_arrow_table(self) -> pa.Table:
        """All rows, in their order."""
        with spark_errors():
            return self.frame.toArrow()

    def to_arrow_reader(self, batch_size: int) -> Iterator[pa.RecordBatch]:
        """The rows in batches, in their order."""
        yield from self.to_arrow_table().to_batches(batch_size)


def kinds_of(frame: "DataFrame") -> list[tuple[Any, ...]]:
    """The name of each column and its type, as DuckDB calls it."""
    return [
        (field.name, field.metadata.get("kind") or _KINDS.get(kind, kind.upper()))
        for field in frame.schema
        if (kind := field.dataType.simpleString())
    ]


def could_not_go_on(reason: str) -> str:
    """The sentence for a job that failed."""
    return f"Spark could not go on: {reason}."


@contextmanager
def spark_errors(say: Callable[[str], str] = could_not_go_on) -> Iterator[None]:
    """A failure of a job as one sentence; mistakes in statements are our bugs and stay what they are."""
    from py4j.protocol import Py4JJavaError, Py4JNetworkError
    from pyspark.errors import AnalysisException, ParseException, PySparkException

    try:
        yield
    except (AnalysisException, ParseException):
        raise
    except (Py4JNetworkError, ConnectionError) as error:
        raise DataError(
            f"Spark's Java process does not answer any more ({reason_of(error)}); it may have been short of "
            "memory (spark.driver.memory), so give it more and start again."
        ) from error
    except (Py4JJavaError, PySparkException) as error:
        raise DataError(say(spark_reason(error))) from error


def spark_reason(error: Exception) -> str:
    """The innermost cause that Spark names, without its stack."""
    message = str(error)
    raised = re.findall(r"^(\w+(?:Error|Exception): .+)", message, re.MULTILINE)  # in Python, on a worker
    causes = raised or re.findall(r"Caused by: (?:[\w.$]+: )?(.+)", message) or message.splitlines()[:1]
    return re.sub(r"\s*SQLSTATE: \w+|^\[[\w.]+\] ", "", causes[-1]).strip().rstrip(".")[:300]
