"""Errors of other libraries become sentences; errors of Towpath's own code stay what they are."""

import errno
import json
import zipfile

import duckdb
import pyarrow as pa
import pytest

from towpath.boundary import configuring, is_foreign, loading, reading, reason_of
from towpath.errors import LONGEST_MESSAGE, ArtifactError, ConfigError, DataError, unknown_name


def caught(action) -> Exception:
    with pytest.raises(Exception) as raised:  # noqa: PT011  # which one is the question
        action()
    return raised.value


def wrong_sql() -> None:
    duckdb.connect().execute("SELEC 1")


def unfinished_result() -> None:
    error = getattr(duckdb, "ResourceInUseException", None)  # which versions before 2 do not have
    raise error("a result is still open") if error else duckdb.ParserException("wrong")


FOREIGN = {
    "duckdb": lambda: duckdb.connect().execute("SELECT CAST('x' AS INTEGER)").fetchall(),
    "arrow": lambda: pa.ipc.open_file(pa.BufferReader(b"no")),
    "zip": lambda: zipfile.ZipFile(__file__),
    "json": lambda: json.loads("{"),
    "deep json": lambda: json.loads("[" * 100_000),
    "overflow": lambda: 1.0 * 10**400,
    "text": lambda: b"\xff".decode(),
    "disk": lambda: open("/no/such/file"),  # noqa: SIM115
    "null byte": lambda: open("\0"),  # noqa: SIM115
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_errors_of_inputs_become_one_sentence(kind: str) -> None:
    with pytest.raises(DataError, match=r"^a\.csv cannot be read; .*\(.+\)\.$") as raised, reading("a.csv"):
        FOREIGN[kind]()
    assert raised.value.__cause__ is not None
    with pytest.raises(ArtifactError, match=r"^run is damaged .*; make it again\.$"), loading("run"):
        FOREIGN[kind]()
    with pytest.raises(ConfigError, match=r"^epochs cannot be used"), configuring("epochs"):
        FOREIGN[kind]()


def test_bugs_stay_bugs() -> None:
    # Raised by a frame of the package itself.
    broken = caught(lambda: unknown_name("model", "mf", [1, "a"]))  # type: ignore[list-item]
    assert not is_foreign(caught(wrong_sql))
    assert not is_foreign(caught(unfinished_result))
    assert not is_foreign(DeprecationWarning("of a call of ours"))  # where warnings are errors
    assert not is_foreign(DataError("said already"))
    assert not is_foreign(MemoryError())
    assert not is_foreign(OSError(errno.ENOSPC, "no space left"))
    assert not is_foreign(KeyboardInterrupt())
    with pytest.raises(type(broken)), reading("a.csv"):
        raise broken


def test_a_message_stays_short_whatever_a_file_holds() -> None:
    with pytest.raises(DataError) as raised, reading("a.csv", "mend it"):
        raise OSError("x" * 100_000)
    assert len(str(raised.value)) < 300
    assert str(raised.value).endswith("; mend it.")
    long = str(DataError("y" * 100_000 + " Name another column."))
    assert len(long) <= LONGEST_MESSAGE
    assert long.endswith(" Name another column.")
    assert reason_of(ValueError()) == "ValueError"
