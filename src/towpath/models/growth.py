"""What one model has learned, handed to a larger one of the same kind."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.features import FIRST_VALUE, FeatureTable
from towpath.errors import ConfigError
from towpath.models.scorer import Scorer

if TYPE_CHECKING:  # scipy takes its time and memory
    from scipy import sparse

# Known rows whose vector counts as the mean vector, for each value of a feature.
_RIDGE = 10.0
# Columns of the regression: the values of labels that are most frequent, and all numbers.
_MOST_COLUMNS = 4096


@dataclass(frozen=True)
class SideFeatures:
    """What is known of all users and items of the larger model, where something is."""

    users: FeatureTable | None = None
    items: FeatureTable | None = None


def take_over(old: Scorer, new: Scorer, features: SideFeatures = SideFeatures()) -> None:  # noqa: B008  # frozen
    """Give the parameters of `old` to `new`, which may have more users and items, behind the old ones.

    A table that has more rows than before begins with the old ones. A new row starts where a ridge regression
    of the old rows on their features puts it, at their mean if nothing is known of it. Buffers, such as
    encoded features, stay as `new` was initialised.
    """
    learned = dict(old.named_parameters())
    with torch.no_grad():
        for name, parameter in new.named_parameters():
            if name not in learned or learned[name].shape[1:] != parameter.shape[1:]:
                raise ConfigError(
                    f"The model cannot go on from what was learned: {name} has another shape than before; "
                    "fit again."
                )
            side = _side_of(name, len(learned[name]) if parameter.dim() else 0, old, new)
            known = features.users if side == "users" else features.items if side == "items" else None
            parameter.copy_(_with_rows(learned[name], len(parameter) if parameter.dim() else 1, known))


def _side_of(name: str, rows: int, old: Scorer, new: Scorer) -> str | None:
    """Whose rows a table has: it had one for each of them; where both are as many, its name must say."""
    grown = {side: getattr(old.sizes, side) == rows for side in ("users", "items")}
    found = [side for side, fits in grown.items() if fits and getattr(new.sizes, side) > rows]
    named = [side for side in found if side.removesuffix("s") in name]
    return found[0] if len(found) == 1 and sum(grown.values()) == 1 else named[0] if len(named) == 1 else None


def _with_rows(table: Tensor, rows: int, features: FeatureTable | None) -> Tensor:
    if table.dim() == 0 or len(table) == rows:
        return table
    mean = table.mean(0, keepdim=True)
    fresh = mean.expand(rows - len(table), *table.shape[1:])
    if features is not None and table.dim() == 2 and len(features) == rows:
        fresh = fresh + _predicted(features, (table - mean).cpu().numpy()).to(table.device)
    return torch.cat([table, fresh])


def _predicted(features: FeatureTable, centred: NDArray[np.float32]) -> Tensor:
    """What the features of the rows behind them say of their vectors, less the mean of the known: (new, d).

        W = argmin |X W - V|^2 + ridge |W|^2,   prediction = x W

    V (n, d): the vectors of the first n rows, less their mean.
    """
    design = _design(features)
    known, fresh = design[: len(centred)], design[len(centred) :]
    gram = (known.T @ known).toarray() + _RIDGE * np.eye(design.shape[1])
    weights = np.linalg.solve(gram, known.T @ centred.astype(np.float64))
    return torch.from_numpy((fresh @ weights).astype(np.float32))


def _design(features: FeatureTable) -> "sparse.csr_matrix":
    """A column for each value of a label, one over their number where a row has several, and each number.

    Values that are missing, or that training has not seen, say nothing: their row is zero there.
    """
    from scipy import sparse

    rows = features.bags // max(1, len(features.labels))
    share = 1 / np.repeat(np.diff(features.starts), np.diff(features.starts))
    real = features.codes >= FIRST_VALUE
    stacked = features.stacked_codes()
    width = sum(label.codes for label in features.labels)
    cells = (share[real], (rows[real], stacked[real]))
    labels = sparse.csr_matrix(cells, shape=(len(features), width), dtype=np.float64)
    counts = np.bincount(stacked[real], minlength=width)
    frequent = np.sort(np.argsort(-counts, kind="stable")[:_MOST_COLUMNS])
    numbers = features.standardised()[:, : len(features.numeric)]
    return sparse.hstack([labels[:, frequent], sparse.csr_matrix(numbers, dtype=np.float64)], format="csr")
