"""Target policies: the chance of every action, for a context and a position."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from towpath.bandit.log import BanditLog
from towpath.errors import ConfigError

Codes = NDArray[np.int64]
Values = NDArray[np.float64]

# Chances held at once: 64 MB.
_CHANCES_AT_ONCE = 2**23


class Policy(Protocol):
    """Something that shows one action at each position."""

    @property
    def description(self) -> str:
        """What it is, in words."""

    def probabilities(self, contexts: Codes, positions: Codes) -> Values:
        """The chances (b, actions) of all actions, for these contexts (b,) and positions (b,)."""


@dataclass(frozen=True)
class TablePolicy:
    """Chances that depend on the position alone."""

    table: Values  # (positions, actions), every row sums to one
    description: str = "a table of chances"

    def __post_init__(self) -> None:
        """Refuse a table that is none."""
        sums = self.table.sum(axis=1)
        if (self.table < 0).any() or not np.allclose(sums, 1, atol=1e-6):
            raise ConfigError(
                f"A policy's chances should be at least 0 and sum to 1 at every position, but they sum to "
                f"{sums.min():.6g} to {sums.max():.6g}; normalise them."
            )

    def probabilities(self, contexts: Codes, positions: Codes) -> Values:
        """The rows of these positions."""
        return self.table[positions]


def uniform_policy(positions: int, actions: int) -> TablePolicy:
    """Every action with the same chance at every position."""
    return TablePolicy(np.full((positions, actions), 1 / actions), f"uniform over {actions:,} items")


@dataclass(frozen=True)
class TopPolicy:
    """The list of a recommender: what stands in place j is shown at position j, and nothing else.

    lists: contexts (b,) to action codes (b, places), best first, -1 where a list has ended. A log that knows
    one position only is shown one of `places` at random.
    """

    lists: Callable[[Codes], Codes]
    actions: int
    places: int
    one_position: bool
    description: str = "the top of a recommender's list"

    def probabilities(self, contexts: Codes, positions: Codes) -> Values:
        """One where the list has the action, zero elsewhere."""
        best = self.lists(contexts)[:, : self.places]
        rows = np.arange(len(contexts))
        # What stands beyond the last action is nothing; it gets a column that is cut off again.
        chances = np.zeros((len(contexts), self.actions + 1))
        if self.one_position:
            chances[rows[:, None], best] = 1 / self.places
        else:
            chances[rows, best[rows, positions]] = 1
        return chances[:, : self.actions]


@dataclass(frozen=True)
class SoftmaxPolicy:
    """Chances proportional to exp(score / temperature), the same at every position."""

    scores: Callable[[Codes], Values]  # contexts (b,) to scores (b, actions); -inf is never shown
    temperature: float = 1.0
    description: str = "softmax of a recommender's scores"

    def __post_init__(self) -> None:
        """Refuse a temperature that is none."""
        if not self.temperature > 0:
            raise ConfigError(
                f"A temperature should be above 0, and {self.temperature:g} was given; for the best item "
                "alone use a top-K policy."
            )

    def probabilities(self, contexts: Codes, positions: Codes) -> Values:
        """The softmax of the scores."""
        chances: Values = softmax(self.scores(contexts) / self.temperature, axis=1)
        return chances


@dataclass(frozen=True)
class MixedPolicy:
    """A policy that shows something at random, every action alike, with chance epsilon."""

    policy: Policy
    epsilon: float

    def __post_init__(self) -> None:
        """Refuse a chance that is none."""
        if not 0 <= self.epsilon <= 1:
            raise ConfigError(f"epsilon should lie within 0 and 1, and {self.epsilon:g} was given.")

    @property
    def description(self) -> str:
        """What is mixed."""
        return f"{self.policy.description}, {self.epsilon:.0%} at random"

    def probabilities(self, contexts: Codes, positions: Codes) -> Values:
        """(1 - epsilon) pi + epsilon / actions."""
        chances = self.policy.probabilities(contexts, positions)
        return (1 - self.epsilon) * chances + self.epsilon / chances.shape[1]


@dataclass(frozen=True)
class PolicyOnLog:
    """What a policy would do where the log did something."""

    chosen: Values  # (n,) its chance of what was shown
    expected: Values  # (n,) sum over actions of its chance times the predicted reward
    mass: Values  # (actions,) its share of each action, over all rows
    unseen: float  # its share of actions that the log never took at that position
    peak: float  # its largest chance of anything

    def largest_weight(self, propensities: Values) -> float | None:
        """The largest weight that is possible, if the log was made with one propensity (n,) throughout."""
        return self.peak / float(propensities[0]) if (propensities == propensities[0]).all() else None


def apply_policy(policy: Policy, log: BanditLog, tables: Values, folds: Codes) -> PolicyOnLog:
    """The policy at every row; tables (folds, positions, actions) and folds (n,) are a reward model's."""
    contexts = np.zeros(len(log), dtype=np.int64) if log.contexts is None else log.contexts
    cells, places, counts = np.unique(
        contexts * log.n_positions + log.positions, return_inverse=True, return_counts=True
    )
    chosen, expected = np.empty(len(log)), np.empty(len(log))
    mass, unseen, peak, never = np.zeros(log.n_actions), 0.0, 0.0, log.counts() == 0
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(counts)
    for block in _blocks(len(cells), log.n_actions):
        users, positions = np.divmod(cells[block], log.n_positions)
        chances = policy.probabilities(users, positions)
        rows = order[(ends[block.start - 1] if block.start else 0) : ends[block.stop - 1]]
        chosen[rows] = chances[places[rows] - block.start, log.actions[rows]]
        by_fold = np.einsum("ca,fca->fc", chances, tables[:, positions])
        expected[rows] = by_fold[folds[rows], places[rows] - block.start]
        mass += counts[block] @ chances
        unseen += float(counts[block] @ (chances * never[positions]).sum(axis=1))
        peak = max(peak, float(chances.max()))
    return PolicyOnLog(chosen, expected, mass / len(log), unseen / len(log), peak)


def _blocks(cells: int, actions: int) -> Iterator[slice]:
    step = max(1, _CHANCES_AT_ONCE // actions)
    return (slice(start, min(cells, start + step)) for start in range(0, cells, step))
