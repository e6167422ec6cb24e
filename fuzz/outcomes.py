"""What must hold of every input: a sentence or the right answer, never a traceback."""

from collections.abc import Callable
from typing import Protocol

from fuzz.mutators import Rng
from towpath.errors import LONGEST_MESSAGE, TowpathError


class SilentDifferenceError(AssertionError):
    """Something else was read than the input holds, without a word."""


class Target(Protocol):
    """Attacked with one input after the other, each drawn from its own generator."""

    def __call__(self, rng: Rng) -> str:
        """What became of one input: read, same, refused; raises if it was not handled."""


def refused_or(action: Callable[[], str]) -> str:
    """What the action says, or "refused" for an expected error whose message is short."""
    try:
        return action()
    except TowpathError as error:
        said = str(error)
    assert len(said) <= LONGEST_MESSAGE, f"a message of {len(said)} characters"
    return "refused"


def different(what: str, one: object, two: object) -> None:
    """Raise unless the two are equal."""
    if one != two:
        raise SilentDifferenceError(f"{what}: {one!r} and {two!r}")
