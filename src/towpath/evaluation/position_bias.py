"""How likely each position of a slate is to be looked at: the position-based click model.

    P(click | item i at position k) = examination_k * attraction_i,    examination_1 = 1

It can be told from the log where the same item stood at several positions: what an item loses on its way down
the slate is examination, what one item has over another at the same position is attraction.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.errors import ConfigError, DataError

_ROUNDS = 500
_CLOSE = 1e-8


@dataclass(frozen=True)
class PositionBias:
    """The chance that a position is looked at, relative to the first: (positions,)."""

    examination: NDArray[np.float64]
    rows: int  # impressions of items that stood at several positions, on which it rests


def estimate_position_bias(impressions: Interactions) -> PositionBias:
    """Examination by the fixed point of the multiplicative model, from items that stood at several positions.

        attraction_i  = clicks of i / sum over its impressions of examination
        examination_k = clicks at k / sum over impressions at k of attraction

    Consistent if, for a given item, the position does not depend on who is looking.
    """
    rows = impressions.rows
    if rows.positions is None or rows.labels is None:
        raise DataError(
            "Position bias is estimated from impressions with positions, but the data have no "
            f"{'positions' if rows.positions is None else 'labels'}; name their column "
            f"by {'--position-col' if rows.positions is None else '--label-col'}."
        )
    positions, items, clicks = rows.positions.astype(np.int64) - 1, rows.items, rows.labels.astype(np.float64)
    if positions.min(initial=0) < 0:
        raise DataError(f"Positions count from 1, but the least is {int(positions.min()) + 1}.")
    several = _at_several_positions(items, positions, rows.n_items)
    keep = several[items]
    if not keep.any():
        raise DataError(
            f"None of the {rows.n_items:,} items was shown at more than one position, so the effect of a "
            "position cannot be told from that of the items; give the examination of every position instead."
        )
    return PositionBias(_fixed_point(items[keep], positions[keep], clicks[keep]), int(keep.sum()))


def given_position_bias(examination: list[float]) -> PositionBias:
    """Examination as somebody knows it, position by position, the first being 1."""
    values = np.array(examination, dtype=np.float64)
    if not len(values) or not ((values > 0) & (values <= 1)).all():
        raise ConfigError(f"Examination is above 0 and at most 1 at each position, not {examination}.")
    return PositionBias(values, 0)


def _at_several_positions(
    items: NDArray[np.int32], positions: NDArray[np.int64], n_items: int
) -> NDArray[np.bool_]:
    """Which items stood at more than one position: (n_items,)."""
    pairs = np.unique(items.astype(np.int64) * (int(positions.max()) + 1) + positions)
    return np.bincount(pairs // (int(positions.max()) + 1), minlength=n_items) > 1


def _fixed_point(
    items: NDArray[np.int32], positions: NDArray[np.int64], clicks: NDArray[np.float64]
) -> NDArray[np.float64]:
    _, codes = np.unique(items, return_inverse=True)
    by_item, by_position = np.bincount(codes, clicks), np.bincount(positions, clicks)
    if (by_position == 0).any():
        lost = int(np.flatnonzero(by_position == 0)[0]) + 1
        raise DataError(f"Nothing was clicked at position {lost}, so its examination cannot be estimated.")
    examination = np.ones(len(by_position))
    for _ in range(_ROUNDS):
        attraction = by_item / np.bincount(codes, examination[positions])
        new = by_position / np.bincount(positions, attraction[codes])
        new /= new[0]
        if np.abs(new - examination).max() < _CLOSE:
            break
        examination = new
    return np.minimum(new, 1.0)
