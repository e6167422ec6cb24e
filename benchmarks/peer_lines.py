"""The comparisons of `benchmarks.peers`: which numbers stand against each other, and the rows they make."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import median
from typing import Any

# The best test Hit@10 of implicit's BPR, and what its ALS reaches, on MovieLens 1M with 32 dimensions.
BPR_QUALITY, ALS_QUALITY = 0.065, 0.083


@dataclass(frozen=True)
class Line:
    """One comparison: numbers of ours and of a peer, and the ratio that is wanted at most, if any."""

    what: str
    ours: float | None
    theirs: float | None
    peer: str
    wanted: float | None
    unit: str = "s"

    @property
    def ratio(self) -> float | None:
        return self.ours / self.theirs if self.ours is not None and self.theirs else None


@dataclass(frozen=True)
class Row:
    """The repetitions of one comparison: ours, theirs and their ratios, as far as they were measured."""

    line: Line
    ours: list[float]
    theirs: list[float]
    ratios: list[float]

    @property
    def verdict(self) -> str:
        if not self.ratios:
            return "not measured"
        if self.line.wanted is None:
            return "–"
        return "yes" if median(self.ratios) <= self.line.wanted else "no"

    @property
    def wanted(self) -> str:
        return "–" if self.line.wanted is None else f"{self.line.wanted:.3g}"


def row_of(repeated: Sequence[Line]) -> Row:
    """The repetitions of one comparison together."""
    columns = zip(*((line.ours, line.theirs, line.ratio) for line in repeated), strict=True)
    return Row(repeated[0], *([v for v in column if v is not None] for column in columns))


def to_row(repeated: Sequence[Line]) -> str:
    """A row of the table: what, ours, theirs, who, ratio, wanted, reached; medians and their range."""
    row = row_of(repeated)
    line, unit = row.line, f" {row.line.unit}"
    verdict = "**no**" if row.verdict == "no" else row.verdict
    numbers = _shown(row.ours, unit), _shown(row.theirs, unit), line.peer, _shown(row.ratios, "")
    return f"| {' | '.join((line.what, *numbers, row.wanted, verdict))} |"


COLUMNS = ("what", "towpath", "other", "who", "ratio", "lowest", "highest", "target", "reached")


def to_cells(repeated: Sequence[Line]) -> list[str]:
    """The same for a file, under COLUMNS: medians, and the lowest and the highest ratio."""
    row = row_of(repeated)
    unit, ratios = f" {row.line.unit}", row.ratios
    spread = [_shown(found[:1], "") for found in (sorted(ratios), sorted(ratios, reverse=True))]
    medians = [
        _shown([median(values)] if values else [], end)
        for values, end in ((row.ours, unit), (row.theirs, unit), (ratios, ""))
    ]
    return [row.line.what, *medians[:2], row.line.peer, medians[2], *spread, row.wanted, row.verdict]


def lines(found: dict[str, Any]) -> list[Line]:
    """Every comparison; what was not measured is None."""
    plain = at(found, "epochs", "plain", "seconds")
    one_negative = at(found, "epochs", "plain, one negative", "seconds")
    transport = at(found, "epochs", "transport", "seconds")
    fair, good = f"to test Hit@10 of {BPR_QUALITY:.1%}", f"to test Hit@10 of {ALS_QUALITY:.1%}, start=svd"
    to_fair = (
        typical(at(found, *place), BPR_QUALITY) for place in (("curves", "plain"), ("implicit", "bpr"))
    )
    few = typical(at(found, "curves", "few"), BPR_QUALITY), typical(at(found, "implicit", "bpr"), BPR_QUALITY)
    to_good = (typical(at(found, *place), ALS_QUALITY) for place in (("curves", "svd"), ("implicit", "als")))
    evaluation = at(found, "ranking", "evaluation", "seconds")
    default, *_ = batches = list((at(found, "recbole", "evaluation_seconds") or {"": None}).values())
    lists = at(found, "ranking", "recommend", "seconds"), at(found, "implicit", "recommend_seconds")
    memory = at(found, "memory", "peak_megabytes"), at(found, "recbole", "peak_megabytes")
    attention = (at(found, "rectools", name, "seconds") for name in ("towpath", "rectools"))
    game = (at(found, "game", method) for method in ("transport", "plain"))
    ten, one = (at(found, "growth", size, "seconds") for size in ("ten", "one"))
    return [
        Line("epoch, one negative", one_negative, at(found, "recbole", "epoch_seconds"), "RecBole BPR", 0.1),
        Line(fair, *to_fair, "implicit BPR", 1),
        Line(f"{fair}, 3 negatives", *few, "implicit BPR", 1),
        Line(good, *to_good, "implicit ALS", 3),
        Line("full-ranking evaluation", evaluation, default, "RecBole, default batch", 0.1),
        Line("full-ranking evaluation", evaluation, default and min(batches), "RecBole, its best batch", 1),
        Line("lists of ten for all users", *lists, "implicit", 1),
        Line("peak memory of training", *memory, "RecBole", None, "MB"),
        Line(
            "memory over the imports", at(found, "memory", "over_imports_megabytes"), 300, "a limit", 1, "MB"
        ),
        Line("epoch of transport", transport, plain, "our plain epoch", 2.5),
        Line("transport to plain's best, ml-100k", *game, "plain's own time", 1),
        Line("epoch of ten times the events", ten, one, "our epoch of as many as here", 12),
        Line("epoch of attention, length 50", *attention, "RecTools SASRec", 1),
        *networks(found),
        *second_thread(found),
        Line("20 million events read, cleaned, split", *ingest(found), "Polars, its best plan", 1),
        Line("`recommend --user` from the shell", at(found, "startup", "seconds"), 1, "a second", 0.5),
    ]


def networks(found: dict[str, Any]) -> list[Line]:
    """Epoch and evaluation of the same network here and there, alone and together."""
    both, rows = ("epoch", "evaluation"), []
    for name, peer in (("neumf", "NeuMF"), ("widedeep", "WideDeep")):
        ours = [at(found, name, what, "seconds") for what in both]
        theirs = [at(found, f"recbole-{name}", f"{what}_seconds") for what in both]
        alone = zip(both, ours, theirs, strict=True)
        rows += [Line(f"{what} of {peer}", own, other, f"RecBole {peer}", None) for what, own, other in alone]
        title = f"{peer}, both"
        rows.append(Line(title, added(ours), added(theirs), f"RecBole {peer}", 0.2))
        # Next to other jobs wall-clock seconds say little, and neither do those of threads that wait.
        ours = [at(found, f"{name}-one", what, "processor_seconds") for what in both]
        theirs = [at(found, f"recbole-{name}-one", f"{what}_processor_seconds") for what in both]
        title += " on one thread, processor s"
        rows.append(Line(title, added(ours), added(theirs), f"RecBole {peer}", 0.2))
    return rows


def second_thread(found: dict[str, Any]) -> list[Line]:
    """An epoch of each model with two threads against one, next to a busy core and on a free machine."""
    return [
        Line(
            f"epoch of {model}, two threads, {surroundings}",
            at(found, "threads", f"{surroundings} {model}", "two"),
            at(found, "threads", f"{surroundings} {model}", "one"),
            "our one thread",
            wanted,
        )
        for surroundings, wanted in (("busy", 1.5), ("free", 1.0))
        for model in ("mf", "ncf", "attention")
    ]


def added(parts: Sequence[float | None]) -> float | None:
    """The sum, None if anything is missing."""
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def ingest(found: dict[str, Any]) -> tuple[float | None, float | None]:
    """Seconds of ours, and of the faster of Polars' plans."""
    plans = [at(found, "ingest", f"polars, {plan}", "seconds") for plan in ("codes", "strings")]
    known = [plan for plan in plans if plan is not None]
    return at(found, "ingest", "towpath", "seconds"), min(known, default=None)


def at(found: Any, *keys: str) -> Any:
    """What lies under these keys, None where any of them is missing."""
    for key in keys:
        found = (found or {}).get(key)
    return found


def typical(curves: list[list[list[float]]] | None, quality: float) -> float | None:
    """The median over seeds of the seconds until the quality is reached; None if half of them never do."""
    times = sorted(inf if t is None else t for t in (until(curve, quality) for curve in curves or []))
    middle = times[len(times) // 2] if times else inf
    return None if middle == inf else middle


def until(curve: list[list[float]], quality: float) -> float | None:
    """Seconds until the quality is reached; None if it never is."""
    return next((seconds for seconds, hit in curve if hit >= quality), None)


def _shown(values: Sequence[float], unit: str) -> str:
    """The median of the values and, where there are several, their range."""
    if not values:
        return "–"
    spread = f" ({min(values):.3g} to {max(values):.3g})" if len(values) > 1 else ""
    return f"{median(values):.3g}{unit}{spread}"
