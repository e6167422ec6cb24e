"""What can go wrong on purpose.

Each error is one sentence: what was expected, what came (with counts and the first example), what to do.
The command line prints it and leaves with status 2; any other exception is a bug and leaves with status 1.
"""

from collections.abc import Iterable
from difflib import get_close_matches

# A message has at most this many characters, whatever a file holds; what to do stands at its end.
LONGEST_MESSAGE = 480
_END = 160


class TowpathError(Exception):
    """What was asked for cannot be done; the message says why and what to do instead."""

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(message))


class DataError(TowpathError):
    """The data are not what they were said to be."""


class ConfigError(TowpathError):
    """A setting, a name or a combination of options that does not exist or cannot work."""


class TrainingError(TowpathError):
    """Training ran into numbers that it cannot go on with."""


class ArtifactError(TowpathError):
    """A stored model, split or run that is missing, damaged or of another version."""


def shortened(message: str) -> str:
    """A message that a person can read: its middle is left out if it is too long.

    >>> len(shortened("x" * 10_000)) <= LONGEST_MESSAGE
    True
    >>> shortened("as it is")
    'as it is'
    """
    if len(message) <= LONGEST_MESSAGE:
        return message
    return f"{message[: LONGEST_MESSAGE - _END - 3]} … {message[-_END:]}"


def printable(text: str) -> str:
    """The text with its control characters written out: what a file holds must not steer a terminal.

    >>> print(printable("a\\x1b[31mb"))
    a\\x1b[31mb
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    """The error for a name that is none of `known`, with the nearest one suggested.

    >>> print(unknown_name("model", "esae", ["mf", "ease"]))
    There is no model 'esae'; did you mean 'ease'? Known: ease, mf.
    >>> print(unknown_name("model", "pop", ["popularity", "mf"]))
    There is no model 'pop'; did you mean 'popularity'? Known: mf, popularity.
    """
    names = sorted(known)
    begin = [known for known in names if name and known.startswith(name)]  # an abbreviation is no near miss
    near = begin or get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return ConfigError(f"There is no {kind} {name!r}{hint} Known: {', '.join(names)}.")
