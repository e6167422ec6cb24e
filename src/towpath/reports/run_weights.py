"""What w learned, by label, by score and by popularity."""

import numpy as np
from numpy.typing import NDArray

from towpath.diagnostics.weights import binned
from towpath.reports.bands import BandPoint, BandStyle, draw_band
from towpath.reports.figures import Figure
from towpath.reports.lines import Axes
from towpath.reports.page import Section
from towpath.reports.tables import Cell, Table
from towpath.training.weighed_pairs import WeighedPairs

_AVERAGE = ("average", 1.0)
_RANGE = "The band holds the middle 80 % of the pairs."


def weights_section(pairs: WeighedPairs, item_counts: NDArray[np.int64]) -> Section:
    """The weights of training pairs, as the kept w gives them."""
    what = (
        f"These are the weights of {len(pairs):,} pairs, drawn as in training: positives of "
        "users, and items without an interaction. One is average: a pair of weight two counts as much as two "
        "pairs of weight one."
    )
    only = (
        "Positives are not reweighted (reweight=unlabelled). They are never shown again, so they are not "
        "part of what f would show, and their weight is one."
    )
    texts = (what,) if pairs.reweight_mask[pairs.interacted].any() else (what, only)
    figures = (*_by_margin(pairs), _by_popularity(pairs, item_counts))
    return Section("What the weighting learned", texts, (weights_table(pairs),), figures)


def weights_table(pairs: WeighedPairs) -> Table:
    """Mean and spread of the weights of each kind of pair."""
    kinds = {
        "interacted": pairs.interacted,
        "no interaction": ~pairs.interacted,
        "no interaction, would be shown": ~pairs.interacted & pairs.shown,
        "no interaction, would not be shown": ~pairs.interacted & ~pairs.shown,
    }
    rows = [_row(kind, pairs.weights[selected]) for kind, selected in kinds.items() if selected.any()]
    columns = ("pairs", "how many", "mean weight", "a tenth weigh less than", "a tenth weigh more than")
    return Table(columns, tuple(rows), "Weights by label and by what f would show.", decimals=2)


def _row(kind: str, weights: NDArray[np.float64]) -> tuple[Cell, ...]:
    low, high = np.quantile(weights, [0.1, 0.9])
    return kind, len(weights), float(weights.mean()), float(low), float(high)


def _by_margin(pairs: WeighedPairs) -> list[Figure]:
    """Weight against score, for what was not interacted with and, where w reweighs it, for what was."""
    figures = []
    for name, selected in (("no interaction", ~pairs.interacted), ("interacted", pairs.interacted)):
        part = pairs.where(selected & pairs.reweight_mask)
        if len(part):
            caption = (
                f"By score, pairs {name}. The score is counted from that of the last place of the user's "
                f"list: pairs to the right of the dashed line would be shown. {_RANGE}"
            )
            axes = Axes("score above the last place", "weight", zero=False, mark=("list", 0), small=True)
            figures.append(draw_band(_margin_points(part), axes, caption, BandStyle(_AVERAGE)))
    return figures


def _margin_points(pairs: WeighedPairs) -> list[BandPoint]:
    """Means along the margin; the few pairs that would be shown have their own, or they would be lost."""
    parts = [pairs.where(selected) for selected in (~pairs.shown, pairs.shown)]
    return [
        p
        for part, bins in zip(parts, (15, 5), strict=True)
        if len(part)
        for p in binned(part.margins, part.weights, bins)
    ]


def _by_popularity(pairs: WeighedPairs, item_counts: NDArray[np.int64]) -> Figure:
    part = pairs.where(pairs.reweight_mask)
    # On an axis of ratios zero has no place: items without an event stand with those that have one.
    events = np.maximum(1, item_counts[part.items])
    axes = Axes("training events of the item", "weight", zero=False, small=True)
    caption = f"By popularity of the item, all reweighed pairs. {_RANGE}"
    return draw_band(binned(events, part.weights), axes, caption, BandStyle(_AVERAGE, ratios=True))
