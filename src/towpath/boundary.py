"""The one boundary at which errors of other libraries become Towpath's own.

Everything that reads a file, loads a folder or parses a setting stands behind it. What a damaged or hostile
input makes DuckDB, Arrow, zipfile, json or pydantic raise is then one sentence. An error of Towpath's own
code passes through as it is, since it is a bug and must be seen.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from towpath.errors import ArtifactError, ConfigError, DataError, TowpathError

_PACKAGE = str(Path(__file__).parent)
# What inputs do to any code that touches them, whoever wrote it.
_OF_INPUTS = (OSError, EOFError, UnicodeError, OverflowError, RecursionError)
# What wrong SQL or wrong calls of our own do to DuckDB; and too little room, which the engine says better.
_NOT_OF_FILES = (
    "ParserException",
    "SyntaxException",
    "CatalogException",
    "ResourceInUseException",
    "OutOfMemoryException",
)
_OF_THE_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
_LONGEST_REASON = 160
_TOO_LARGE = ("can't allocate memory", "array is too big", "Storage size calculation overflowed")


@contextmanager
def reading(what: object, advice: str = "") -> Iterator[None]:
    """Foreign errors within the block as a DataError about `what` that is read."""
    with _sentences(DataError, f"{what} cannot be read; it is damaged or not what its name says", advice):
        yield


@contextmanager
def loading(what: object, advice: str = "make it again") -> Iterator[None]:
    """Foreign errors within the block as an ArtifactError about `what` Towpath wrote earlier."""
    with _sentences(ArtifactError, f"{what} is damaged or was written by another version", advice):
        yield


@contextmanager
def stored(what: object, advice: str = "make it again") -> Iterator[None]:
    """Like `loading`, for a block that only takes apart what was stored: wrong types are its fault too."""
    try:
        with _sentences(ArtifactError, f"{what} does not fit this towpath", advice):
            yield
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        raise ArtifactError(f"{what} does not fit this towpath ({reason_of(error)}); {advice}.") from error


@contextmanager
def configuring(what: object, advice: str = "choose other values") -> Iterator[None]:
    """Foreign errors within the block as a ConfigError about `what` was asked for."""
    with _sentences(ConfigError, f"{what} cannot be used", advice):
        yield


def is_foreign(error: BaseException) -> bool:
    """Whether this error says something about an input rather than about Towpath's own code.

    An error class of another library does. So do a few classes of Python wherever they come from, and the
    others if they were raised outside of this package.
    """
    if isinstance(error, TowpathError) or not isinstance(error, Exception) or is_out_of_memory(error):
        return False
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        return False
    if isinstance(error, Warning):  # made an error by whoever runs Python; it is about our code
        return False
    kind = type(error)
    library = kind.__module__.partition(".")[0]
    if library in ("duckdb", "_duckdb"):
        return kind.__name__ not in _NOT_OF_FILES and "No space left" not in str(error)
    if library not in ("builtins", "towpath"):
        return True
    return isinstance(error, _OF_INPUTS) or not _raised_here(error)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether something was too large for this machine; torch and numpy have no class for all of it."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _TOO_LARGE)


def reason_of(error: BaseException) -> str:
    """What an error says, on one short line.

    >>> reason_of(ValueError("Conversion Error: no number\\nline 2"))
    'Conversion Error: no number'
    """
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    first = next((line for line in str(words).splitlines() if line.strip()), type(error).__name__)
    first = " ".join(first.split()).rstrip(". ")
    return first if len(first) <= _LONGEST_REASON else f"{first[:_LONGEST_REASON]}…"


@contextmanager
def _sentences(kind: type[TowpathError], what: str, advice: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not is_foreign(error):
            raise
        raise kind(f"{what} ({reason_of(error)}){'; ' + advice if advice else ''}.") from error


def _raised_here(error: BaseException) -> bool:
    """Whether the innermost Python frame that an error comes from is one of this package."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is None or trace.tb_frame.f_code.co_filename.startswith(_PACKAGE)
