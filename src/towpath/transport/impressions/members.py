"""The members of the library: small factorisations, each with heads on one representation.

    e = <p_u, q_i> + a_u + b_i         what was shown against the rest of the catalogue: likeness to the log
    r = <p_u, q_i> + a'_u + b'_i       clicked against shown but not clicked: the risk on the logged domain
    c = <p_u, q_i> + a''_u + b''_i     clicked against the catalogue

The vectors are shared by the heads of a member, the biases are not. A member minimises a weighted sum of the
three logistic losses, each a mean over its own pairs, plus an L2 penalty for every pair.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from towpath.kernels.heads import MemberTask
from towpath.transport.impressions.settings import LibrarySettings

LIKENESS, RELEVANCE, CLICK = 0, 1, 2
HEADS = 3
# Weights of the losses of e, r and c: from near the log to far from it, and each head alone.
JOINT = ((1.0, 0.3, 1.0), (0.3, 1.0, 0.3), (0.05, 1.0, 0.0))
ALONE = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class Member:
    """The weights of its losses (e, r, c), and its penalty."""

    prices: tuple[float, float, float]
    l2: float

    @property
    def heads(self) -> list[int]:
        """The heads that it trains."""
        return [head for head in range(HEADS) if self.prices[head] > 0]


def members_of(settings: LibrarySettings) -> list[Member]:
    """The library; with a penalty of 0, members that learn nothing but the risk on the logged domain."""
    if settings.relevance_only:
        return [Member(ALONE[RELEVANCE], l2) for l2 in settings.library_l2]
    joint = [Member(mix, l2) for mix in JOINT for l2 in settings.library_l2]
    # A head alone, which nothing else holds up, would die of the larger penalties.
    return joint + [Member(mix, min(settings.library_l2)) for mix in ALONE]


def likeness_alone(members: Sequence[Member]) -> Tensor:
    """The weights (H, M) of likeness to the log, as the member says it that learns nothing else."""
    weights = torch.zeros(HEADS, len(members))
    weights[LIKENESS, [member.prices for member in members].index(ALONE[LIKENESS])] = 1
    return weights


def member_task(members: Sequence[Member]) -> MemberTask:
    """What the kernels train."""
    prices = torch.tensor([member.prices for member in members]).T.contiguous()
    return MemberTask(prices, torch.tensor([member.l2 for member in members]))
