"""Sample-ratio mismatch: are users split between the arms as they should be?

A split that is off means that something loses users of one arm, and then no lift can be trusted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, lgamma, log

# A mismatch is announced when the evidence is this strong; in a sound experiment it is so at any look, ever,
# with a chance of at most one in a hundred.
ALARM = 100.0
# How far the split is expected to be off if it is off: as far as that of so many users may be by chance.
_CONCENTRATION = 100.0


@dataclass(frozen=True)
class SplitCheck:
    """Users counted by arm, the shares they should have, and the evidence against these."""

    arms: tuple[str, ...]
    users: tuple[int, ...]
    expected: tuple[float, ...]
    e_value: float

    @property
    def p_value(self) -> float:
        """The always-valid p-value of the split being as configured."""
        return min(1.0, 1 / self.e_value) if self.e_value else 1.0

    @property
    def mismatch(self) -> bool:
        """Whether the lifts should not be trusted."""
        return self.e_value >= ALARM


def check_split(arms: Sequence[str], users: Sequence[int], expected: Sequence[float]) -> SplitCheck:
    """The check for these counts of users; an arm of share zero that has users is a certain mismatch."""
    return SplitCheck(tuple(arms), tuple(users), tuple(expected), e_value(users, expected))


def e_value(users: Sequence[int], expected: Sequence[float]) -> float:
    """How much likelier the counts are under a split that is drawn at random around the expected one.

        E = B(a + n) / B(a) / prod_k p_k^n_k,    a = concentration * p,    B the multivariate beta function

    Under the expected split its mean is one at every look, so it exceeds 100 ever with a chance of at most
    one in a hundred (Lindon and Malek 2022).

    >>> round(e_value([5000, 5000], [0.5, 0.5]), 3) < 1 < e_value([5300, 4700], [0.5, 0.5])
    True
    """
    if any(count > 0 and share == 0 for count, share in zip(users, expected, strict=True)):
        return inf
    total, evidence = sum(users), 0.0
    for count, share in zip(users, expected, strict=True):
        if share > 0:
            prior = _CONCENTRATION * share
            evidence += lgamma(prior + count) - lgamma(prior) - count * log(share)
    evidence += lgamma(_CONCENTRATION) - lgamma(_CONCENTRATION + total)
    return exp(evidence) if evidence < 700 else inf
