"""Ranks and best-of lists from a block of scores, exact and the same whatever the size of the block."""

from collections.abc import Callable

import torch
from torch import Tensor

from towpath.errors import ConfigError, TrainingError
from towpath.kernels.ordering import best_of_rows, usable

HIDDEN = float("-inf")  # the score of a candidate that is not ranked


def rank_targets(
    scores: Tensor, rows: Tensor, targets: Tensor, *, name: Callable[[int], str] | None = None
) -> Tensor:
    """The rank of each target within its row, counted from 0: (m,) float64.

        rank = #{j : s_j > s_t} + #{j != t : s_j = s_t} / 2

    scores: (b, n), HIDDEN (-inf) for candidates out of the running; rows, targets: (m,), places in `scores`.
    Ranks are on the CPU, wherever the scores are.
    Equal scores share their mean rank, so that a scorer which cannot tell items apart gains nothing. `name`
    says who row r is, for the error when a score is NaN.

    >>> rank_targets(torch.tensor([[3., 1., 1., HIDDEN]]), torch.tensor([0, 0]), torch.tensor([0, 1]))
    tensor([0.0000, 1.5000], dtype=torch.float64)
    """
    _refuse_nan(scores, name)
    rows, targets = rows.to(scores.device), targets.to(scores.device)
    step = max(1, len(scores))
    in_order = len(rows) == len(scores) and bool((rows == torch.arange(len(rows), device=rows.device)).all())
    ranks = [
        _rank_one_per_row(scores if in_order else scores[rows[i : i + step]], targets[i : i + step])
        for i in range(0, len(rows), step)
    ]
    return torch.cat(ranks) if ranks else torch.empty(0, dtype=torch.float64)


def _rank_one_per_row(scores: Tensor, targets: Tensor) -> Tensor:
    """Rank of one target in each row: half of (strictly higher, plus at least as high without itself)."""
    own = scores.gather(1, targets[:, None])
    # Written as float32 and summed: no integer conversion, and exact up to 16 million candidates.
    flags = torch.empty_like(scores, dtype=torch.float32)
    higher = torch.gt(scores, own, out=flags).sum(1).cpu().double()
    at_least = torch.ge(scores, own, out=flags).sum(1).cpu().double()
    return (higher + at_least - 1) / 2


def top_k(scores: Tensor, k: int, *, name: Callable[[int], str] | None = None) -> tuple[Tensor, Tensor]:
    """The k highest scores of each row, best first, and their columns: (b, k) each.

    Among equal scores the lower column comes first, at the end of the list too, so that the list does not
    depend on the other rows. A row with fewer than k candidates ends in HIDDEN scores.

    >>> top_k(torch.tensor([[1., 2., 2., 1.]]), 3)[1]
    tensor([[1, 2, 0]])
    """
    if not 0 < k <= scores.shape[1]:
        raise ConfigError(f"k must lie between 1 and the {scores.shape[1]:,} candidates, but it is {k:,}.")
    _refuse_nan(scores, name)
    return best_of_rows(scores, k) if usable(scores) else top_k_in_torch(scores, k)


def top_k_in_torch(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The same for any type and device."""
    values, columns = scores.topk(min(k + 1, scores.shape[1]), dim=1)
    cut_ties = (
        values[:, k - 1] == values[:, -1] if k < scores.shape[1] else values.new_zeros(0, dtype=torch.bool)
    )
    columns = columns[:, :k]
    if cut_ties.any():
        columns[cut_ties] = _lowest_columns(scores[cut_ties], values[cut_ties, k - 1, None], k)
    # Columns in ascending order, then a stable sort by score: equal scores keep the ascending order.
    columns = columns.sort(dim=1).values
    values, order = scores.gather(1, columns).sort(dim=1, descending=True, stable=True)
    return values, columns.gather(1, order)


def _lowest_columns(scores: Tensor, last: Tensor, k: int) -> Tensor:
    """Columns above the k-th score `last` (r, 1), filled up with the lowest ones that equal it: (r, k)."""
    higher, equal = scores > last, scores == last
    missing = k - higher.sum(1, keepdim=True)
    chosen = higher | (equal & (equal.cumsum(1) <= missing))
    return chosen.nonzero()[:, 1].reshape(len(scores), k)


def _refuse_nan(scores: Tensor, name: Callable[[int], str] | None) -> None:
    """Raises if any score is not a number; a NaN compares false with everything, so it would pass for low."""
    if scores.numel() == 0 or not scores.amax(1).isnan().any():
        return
    row = int(scores.isnan().any(1).nonzero()[0, 0])
    raise TrainingError(
        f"Scores must be numbers, but {int(scores[row].isnan().sum()):,} of the {scores.shape[1]:,} scores "
        f"of {name(row) if name else f'row {row}'} are NaN; training broke down, so fit again with a lower "
        "learning rate."
    )
