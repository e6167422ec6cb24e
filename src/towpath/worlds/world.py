"""A world whose truth is known: what each user would like, what was shown, what was clicked."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.errors import ConfigError
from towpath.evaluation.result import Evaluation

# Below this chance of being shown a pair might as well never be.
HARDLY_EVER = 0.01


@dataclass(frozen=True)
class World:
    """The truth, and the log that an earlier recommender left of it.

    The log is all a recommender may learn from; relevance and propensity are there to evaluate it. The `log`
    is the clicked part of `exposures`, whose labels say clicked, or shown but not clicked.
    """

    relevance: NDArray[np.float32]  # (users, items) chance that the user clicks the item once it is shown
    propensity: NDArray[np.float32] | None  # (users, items) chance that the pair was shown, where known
    exposures: Interactions
    log: Interactions

    def shown_share(self) -> float:
        """The share of all pairs of a user and an item that the earlier recommender ever showed."""
        return len(self.exposures) / self.relevance.size

    def click_rate(self) -> float:
        """The share of what was shown that was clicked."""
        return len(self.log) / len(self.exposures)

    def density(self) -> float:
        """The share of all pairs that were clicked."""
        return len(self.log) / self.relevance.size

    def overlap(self) -> dict[str, float]:
        """How far the earlier recommender could have shown everything; empty where propensities are unknown.

        never_share   share of pairs that are shown with a chance below HARDLY_EVER
        correlation   of relevance and propensity over all pairs; 0 also where one of them is constant
        """
        if self.propensity is None:
            return {}
        relevance, propensity = (m - m.mean(dtype=np.float64) for m in (self.relevance, self.propensity))
        together = float(np.vdot(relevance, propensity))
        apart = float(np.linalg.norm(relevance)) * float(np.linalg.norm(propensity))
        never = float((self.propensity < HARDLY_EVER).mean())
        return {"never_share": never, "correlation": together / apart if apart else 0.0}

    # -- the oracle -----------------------------------------------------------------------------------------

    def relevance_of(self, lists: NDArray[np.integer]) -> NDArray[np.float64]:
        """The clicks each user is expected to make on the list (users, k) shown to them: (users,)."""
        return np.take_along_axis(self.relevance, lists, axis=1).sum(axis=1, dtype=np.float64)

    def best_relevance(self, k: int, *hidden: Interactions) -> NDArray[np.float64]:
        """What the best possible list of k earns from each user: (users,). No recommender can do better.

        `hidden` are pairs that may not be shown, such as what a user already has.
        """
        return self.relevance_of(_top(self._open(k, hidden), k))

    def popularity_relevance(self, k: int, *hidden: Interactions) -> NDArray[np.float64]:
        """What the k most clicked items of the log earn from each user: (users,)."""
        counts = np.broadcast_to(self.log.item_counts.astype(np.float32), self.relevance.shape)
        return self.relevance_of(_top(np.where(np.isneginf(self._open(k, hidden)), -np.inf, counts), k))

    def chance_relevance(self, k: int, *hidden: Interactions) -> NDArray[np.float64]:
        """What k items drawn at random earn from each user on average: (users,)."""
        open_pairs = self._open(k, hidden)
        allowed = np.isfinite(open_pairs)
        return k * np.where(allowed, open_pairs, 0).sum(axis=1, dtype=np.float64) / allowed.sum(axis=1)

    def relevance_weighted_hit(self, evaluated: Evaluation, targets: Interactions) -> NDArray[np.float64]:
        """Each evaluated user's hit times the true relevance of the hidden click: (n,). The paper's appendix.

            hit_u * P(R = 1 | u, i_u)

        Another number than Rel@K, the relevance of the whole list. Needs one target for each evaluated user.
        """
        if not np.array_equal(np.sort(targets.users), np.unique(targets.users)):
            raise ConfigError(
                "A relevance-weighted hit needs one target for each user, and some have more; split by "
                "split_leave_last_two."
            )
        worth = np.zeros(targets.n_users)
        worth[targets.users] = self.relevance[targets.users, targets.items]
        return evaluated.per_user["hit"] * worth[evaluated.users]

    def _open(self, k: int, hidden: tuple[Interactions, ...]) -> NDArray[np.float32]:
        """Relevance with minus infinity where a pair may not be shown."""
        scores = self.relevance.copy()
        for pairs in hidden:
            scores[pairs.users, pairs.items] = -np.inf
        fewest = int(np.isfinite(scores).sum(axis=1).min(initial=scores.shape[1]))
        if not 0 < k <= fewest:
            raise ConfigError(
                f"A list needs between 1 and {fewest:,} items, the fewest that some user can still be shown; "
                f"k is {k:,}. Choose a k in that range."
            )
        return scores


def _top(scores: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """The k highest-scored items of each row, in no particular order: (users, k)."""
    return np.argpartition(-scores, k - 1, axis=1)[:, :k]
