"""How training went: one small figure for each thing that was watched, epoch by epoch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from towpath.reports.figures import Figure
from towpath.reports.lines import Axes, draw_lines
from towpath.reports.page import Section
from towpath.reports.run_facts import RunFacts
from towpath.training.fit import EpochMetrics

_EPOCH = "epoch"
_CLOCKS = ("seconds", "validation_seconds")


@dataclass(frozen=True)
class _Panel:
    """What of the history goes into one figure: columns of the history and what to call them."""

    lines: Mapping[str, str]
    axis: str
    caption: str
    scale: float = 1.0
    zero: bool = False
    steady: bool = False  # worth drawing even if it never moves


_PANELS = (
    _Panel(
        {"validation_hit": "Hit@10", "validation_ndcg": "NDCG@10"},
        "validation, %",
        "Full ranking of the validation part after every epoch. Hit@10 decides which epoch is kept.",
        scale=100,
        steady=True,
    ),
    _Panel(
        {"loss": "loss"},
        "loss",
        "What the model minimises, mean over the steps of an epoch, L2 penalty included.",
        steady=True,
    ),
    _Panel(
        {"risk": "unweighted", "weighted_risk": "weighted"},
        "mean loss of f",
        "The loss on training pairs, before and after weighting. Weighted above unweighted: w leans "
        "towards what would be shown, which is harder; below: towards what is easy.",
    ),
    _Panel(
        {"gap": "distance"},
        "distance",
        "How far the weighted training pairs are from those that f would show, as the critic g measures it.",
        zero=True,
    ),
    _Panel(
        {"w_shown": "would be shown", "w_hidden": "the others"},
        "mean weight",
        "What w makes of the pairs that f would show and of the others; one is average.",
    ),
    _Panel(
        {"w_positive": "interacted", "w_negative": "no interaction"},
        "mean weight",
        "Mean weight of pairs with an interaction and of pairs without one; 1 is average.",
    ),
    _Panel(
        {"ess": "effective"},
        "% of the pairs",
        "Effective sample size: as many pairs of equal weight would give as steady a mean. 100 % is no "
        "weighting at all.",
        scale=100,
        zero=True,
    ),
    _Panel(
        {"reco_positive": "interacted", "reco_negative": "no interaction"},
        "% would be shown",
        "Share of the training pairs that f would show: where the log and its own lists overlap.",
        scale=100,
        zero=True,
    ),
    _Panel(
        {"critic_ratio": "g / loss"},
        "ratio",
        "Spread of the critic over that of the loss. Times the penalty it says which of the two w follows.",
        zero=True,
    ),
    _Panel({"penalty": "penalty"}, "penalty", "The price of the distance, learned to keep it at its target."),
    _Panel({"lipschitz": "g"}, "steepness", "How steep the critic is on these pairs."),
)


def training_section(facts: RunFacts) -> Section:
    """The curves of all that the history has, and how it ended."""
    if not facts.history:
        return Section("How training went", (_without_epochs(facts),))
    return Section(
        "How training went", (_how_it_ended(facts), *_players(facts)), figures=tuple(training_figures(facts))
    )


def training_figures(facts: RunFacts) -> list[Figure]:
    """A figure for every panel of which the history has something to show."""
    kept = facts.kept
    mark = None if kept is None else ("kept" if facts.outcome else "best so far", kept[_EPOCH])
    drawn = [_figure(panel, facts.history, mark) for panel in (*_PANELS, *_others(facts.history))]
    return [figure for figure in drawn if figure is not None]


def _figure(panel: _Panel, history: Sequence[EpochMetrics], mark: tuple[str, float] | None) -> Figure | None:
    """The figure of one panel; None if the history has nothing of it, or nothing that ever moved."""
    lines = {
        name: [(row[_EPOCH], panel.scale * row[column]) for row in history if column in row]
        for column, name in panel.lines.items()
    }
    lines = {name: points for name, points in lines.items() if points}
    moved = any(abs(y - points[0][1]) > 1e-6 for points in lines.values() for _, y in points)
    if not lines or not (moved or panel.steady):
        return None
    axes = Axes(_EPOCH, panel.axis, zero=panel.zero, mark=mark, small=True)
    return draw_lines(lines, axes, panel.caption)


def _others(history: Sequence[EpochMetrics]) -> list[_Panel]:
    """Panels of what the method watched and no other panel has."""
    known = {_EPOCH, *_CLOCKS} | {column for panel in _PANELS for column in panel.lines}
    columns = dict.fromkeys(column for row in history for column in row if column not in known)
    names = {column: column.replace("_", " ") for column in columns}
    return [
        _Panel({c: name}, name, f"{name.capitalize()}, as the method says it.") for c, name in names.items()
    ]


def _without_epochs(facts: RunFacts) -> str:
    if facts.outcome is None:
        return "No epoch has been finished yet, so there is nothing to draw."
    return f"There were no epochs to watch: {facts.outcome.stopped_because}."


def _how_it_ended(facts: RunFacts) -> str:
    seconds = sum(row.get(clock, 0.0) for row in facts.history for clock in _CLOCKS)
    took = f"{seconds:,.0f} seconds" if seconds < 120 else f"{seconds / 60:,.0f} minutes"
    done = len(facts.history)
    epochs = "1 epoch" if done == 1 else f"{done:,} epochs"
    if facts.outcome is None:
        return f"{epochs} took {took} so far; training has not ended."
    return f"{epochs} took {took}. Training ended because {facts.outcome.stopped_because}."


def _players(facts: RunFacts) -> tuple[str, ...]:
    if not any("gap" in row for row in facts.history):
        return ()
    return (
        "Three players were trained together. The model f learns to recommend, and it alone is deployed. The "
        "weighting w decides how much each training pair counts, so that what f learns from comes closer to "
        "what f would show. The critic g measures how far apart the two still are.",
    )
