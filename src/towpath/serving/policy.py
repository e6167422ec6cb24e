"""A saved recommender as a policy on somebody's log: the top of its lists, or the softmax of its scores."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from towpath.bandit.log import BanditLog
from towpath.bandit.policies import MixedPolicy, Policy, SoftmaxPolicy, TopPolicy
from towpath.data.vocabulary import UNKNOWN
from towpath.errors import ConfigError, DataError
from towpath.ranking.scoring import score_blocks
from towpath.serving.recommender import Recommender

Codes = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Showing:
    """How a recommender's scores become what is shown."""

    mode: Literal["top", "softmax"] = "top"
    places: int = 1  # of the list, where the log knows no positions
    temperature: float = 1.0
    epsilon: float = 0.0  # chance of showing something at random instead


def item_ids_of(recommender: Recommender) -> list[str]:
    """The ids of its catalogue, as text."""
    ids = recommender.artifact.item_ids
    return [str(one) for one in ids.ids(np.arange(len(ids)))]


def policy_of(recommender: Recommender, log: BanditLog, showing: Showing) -> Policy:
    """The recommender as a policy on this log; users that it does not know get its fallback."""
    adapter = _Adapter(recommender, log)
    policy: Policy
    if showing.mode == "softmax":
        what = f"softmax of the run's scores at temperature {showing.temperature:g}"
        policy = SoftmaxPolicy(adapter.scores, showing.temperature, what)
    else:
        one = log.n_positions == 1
        places = showing.places if one else log.n_positions
        if places > len(adapter.catalogue):
            raise ConfigError(
                f"A list of {places:,} was asked of a run that knows {len(adapter.catalogue):,} items; ask "
                "for a shorter one."
            )
        policy = TopPolicy(adapter.lists(places), log.n_actions, places, one, f"the run's top {places:,}")
    return MixedPolicy(policy, showing.epsilon) if showing.epsilon else policy


def seen_warning(recommender: Recommender, log: BanditLog) -> tuple[str, ...]:
    """A sentence if clicks of the log are in the run's own history: it never shows those items again."""
    if log.context_ids is None or log.contexts is None:
        return ()
    history = recommender.artifact.history.histories
    clicked = log.rewards > 0
    users = recommender.artifact.user_ids.codes(log.context_ids.ids(np.arange(len(log.context_ids))))
    items = recommender.artifact.item_ids.codes(log.item_ids.ids(np.arange(log.n_actions)))
    width = len(recommender.artifact.item_ids)
    owners = np.repeat(np.arange(len(history.lengths)), history.lengths)
    keys = users[log.contexts[clicked]] * width + items[log.actions[clicked]]
    known = (users[log.contexts[clicked]] != UNKNOWN) & (items[log.actions[clicked]] != UNKNOWN)
    share = float((np.isin(keys, owners * width + history.items) & known).mean()) if len(keys) else 0.0
    if share <= 0.01:
        return ()
    return (
        f"{share:.0%} of the clicks of this log are in the run's own history, and what a user has had it "
        "does not show again: estimates are far too low. Evaluate it on a log from after its training.",
    )


class _Adapter:
    """Codes of a log in, codes of the same log out; the recommender has codes of its own."""

    def __init__(self, recommender: Recommender, log: BanditLog) -> None:
        self._recommender = recommender
        ids = item_ids_of(recommender)
        self.catalogue = log.item_ids.codes(ids)  # the action of each item
        if (self.catalogue == UNKNOWN).any():
            unknown = np.flatnonzero(self.catalogue == UNKNOWN)
            raise DataError(
                f"A target may show only the {log.n_actions:,} items of the item file, but the run knows "
                f"{len(unknown):,} others (first: {ids[unknown[0]]!r}); give an item file with all of them."
            )
        self._actions = log.n_actions
        self._users = _users(log)

    def lists(self, places: int) -> "_Lists":
        """The first `places` items of everybody's list."""
        return _Lists(self, places)

    def top(self, contexts: Codes, places: int) -> Codes:
        """The actions (b, places) at the top of these contexts' lists."""
        unique, back = np.unique(contexts, return_inverse=True)
        answers = self._recommender.recommend_many([self._users[c] for c in unique], places)
        short = next((a for a in answers if len(a.items) < places), None)
        if short is not None:
            raise DataError(
                f"The run has only {len(short.items):,} items left for user {short.user!r}, and the log has "
                f"{places:,} positions; leave that user out, or use a softmax policy."
            )
        known = self._recommender.artifact.item_ids
        found = np.array([self.catalogue[known.codes(a.items)] for a in answers], dtype=np.int64)
        return found[back]

    def scores(self, contexts: Codes) -> Values:
        """Scores (b, actions); -inf for what was had already. Unknown users: log counts of the training."""
        artifact = self._recommender.artifact
        codes = artifact.user_ids.codes([self._users[c] for c in contexts])
        known = (codes != UNKNOWN) & artifact.history.trained[codes]
        with np.errstate(divide="ignore"):
            popularity = np.log(artifact.history.item_counts.astype(np.float64))
        found = np.tile(popularity, (len(contexts), 1))
        rows = np.flatnonzero(known)
        for block, scored in score_blocks(artifact.scorer, codes[rows], artifact.history.histories):
            found[rows[block]] = scored.cpu().numpy()
        everything = np.full((len(contexts), self._actions), -np.inf)
        everything[:, self.catalogue] = found
        return everything


@dataclass(frozen=True)
class _Lists:
    """A function from contexts to lists of one length."""

    adapter: _Adapter
    places: int

    def __call__(self, contexts: Codes) -> Codes:
        return self.adapter.top(contexts, self.places)


def _users(log: BanditLog) -> list[str | None]:
    """Everybody's id; one nobody where the log knows no users, whom every recommender gives its fallback."""
    if log.context_ids is None:
        return [None]
    ids: list[str | None] = log.context_ids.ids(np.arange(len(log.context_ids)))
    return ids
