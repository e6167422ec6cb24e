"""What people see of training while it goes on: one line an epoch, a table where a game is played."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

EpochMetrics = Mapping[str, float]


@dataclass(frozen=True)
class _Column:
    """A heading, and the numbers below it; several numbers are set off by a stroke."""

    heading: str
    width: int
    names: tuple[str, ...]
    places: int = 3

    def cell(self, row: EpochMetrics) -> str:
        return "/".join(f"{row[name]:.{self.places}f}" for name in self.names).rjust(self.width)


# Narrow enough for a terminal of 80 columns; history.jsonl has the rest.
_GAME = (
    _Column("loss", 5, ("loss",)),
    _Column("risk", 5, ("risk",)),
    _Column("w risk", 6, ("weighted_risk",)),
    _Column("gap", 6, ("gap",)),
    _Column("ess", 4, ("ess",), places=2),
    _Column("w on/off", 9, ("w_shown", "w_hidden"), places=2),
    _Column("g/loss", 6, ("critic_ratio",), places=2),
    _Column("hit", 6, ("validation_hit",), places=4),
    _Column("ndcg", 6, ("validation_ndcg",), places=4),
)
_MEANING = (
    "risk, w risk: loss before and after weighting; gap: distance of weighted and shown pairs; ess: "
    "effective share of pairs; w on/off: mean weight of pairs that would be shown, and of the others; "
    "g/loss: spread of the critic over that of the loss; hit, ndcg: validation"
)


class EpochLines:
    """The lines to say after each epoch; the first round of a game also gets its headings explained."""

    def __init__(self) -> None:
        self._explained = False

    def __call__(self, row: EpochMetrics) -> Iterator[str]:
        """One line of named numbers, or a line of the game's table."""
        if "gap" not in row:
            yield _named(row)
            return
        if not self._explained:
            yield from (_MEANING, _heading())
            self._explained = True
        cells = [f"{int(row['epoch']):>5}", *(column.cell(row) for column in _GAME), f"{_seconds(row):.1f} s"]
        yield "  ".join(cells)


def _heading() -> str:
    return "  ".join(["epoch", *(column.heading.rjust(column.width) for column in _GAME)])


def _named(row: EpochMetrics) -> str:
    """Whatever the method watches by name, then the time it took."""
    hidden = ("epoch", "game")
    numbers = {name: value for name, value in row.items() if name not in hidden and "seconds" not in name}
    shown = "  ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in numbers.items())
    return f"epoch {int(row['epoch']):>3}  {shown}  {_seconds(row):.1f} s"


def _seconds(row: EpochMetrics) -> float:
    return row.get("seconds", 0.0) + row.get("validation_seconds", 0.0)
