"""The batch that the players of the game see when one of them moves."""

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from towpath.models.scorer import Context


@dataclass(frozen=True)
class CandidatePairs:
    """User-item pairs as w and g see them: by who and what they are, or by their margin.

    margins: (b, k) f's score minus the score of the last item that the user would be shown; detached.
    """

    context: Context
    items: Tensor  # (b, k)
    margins: Tensor


@dataclass(frozen=True)
class GameBatch:
    """One batch with everything the players need to know of each other, none of it carrying gradients.

    loss, labels, reweight_mask, shown: (b, k) on `pairs`; mass_f: on `deployed`, the pairs that f shows.
    """

    pairs: CandidatePairs
    loss: Tensor
    labels: Tensor
    reweight_mask: Tensor  # bool: pairs that w reweighs
    shown: Tensor  # 0/1: pairs that f would show
    deployed: CandidatePairs
    mass_f: Tensor

    @cached_property
    def deploys_something(self) -> bool:
        """Whether any pair of this batch is shown; without one there is no distance to speak of."""
        return bool(self.mass_f.sum() > 0)
