"""What the log has seen of the lists of several models, and of the slots in which two of them differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.data.split import Split
from towpath.data.vocabulary import UNKNOWN
from towpath.diagnostics.evidence import Evidence
from towpath.diagnostics.lists import in_both
from towpath.diagnostics.log_view import LogView, all_rows, held_out_of, users_with_lists, view_log
from towpath.models.scorer import Scorer
from towpath.ranking.lists import top_k_lists
from towpath.rng import Rng

Lists = NDArray[np.int64]  # (users, k)

# With more of the differing slots unseen than this, a difference is said to rest on what was never shown.
MOSTLY = 0.5


@dataclass(frozen=True)
class Contrast:
    """The slots that only one of two models fills with an item."""

    a: str
    b: str
    slots: int  # of both together
    unseen: float  # the share of them whose item the period did not show to that user
    complete: bool  # whether the period says what was shown and not clicked

    @property
    def warning(self) -> str | None:
        """A sentence if the difference rests on pairs that the log never showed."""
        if self.slots == 0 or self.unseen <= MOSTLY:
            return None
        what = (
            "that the log never showed to that user"
            if self.complete
            else "without a held-out click of that user, and the log cannot tell whether it was shown"
        )
        return (
            f"{self.unseen:.1%} of the {self.slots:,} slots in which {self.a} and {self.b} differ hold an "
            f"item {what}: metrics count these as misses, so a difference rests on the other "
            f"{1 - self.unseen:.1%}."
        )

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The numbers and the warning."""
        return {"a": self.a, "b": self.b, "slots": self.slots, "unseen": self.unseen, "warning": self.warning}


@dataclass(frozen=True)
class Vouched:
    """The evidence for the lists of each model, by name, and for what the others have unlike the first."""

    evidence: Mapping[str, Evidence]
    contrasts: tuple[Contrast, ...]
    complete: bool  # whether the period says what was shown and not clicked

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence for each difference that rests on what was never shown."""
        return tuple(one.warning for one in self.contrasts if one.warning is not None)

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The shares of each level and the bounds on clicks by name, and the differences."""
        return {
            "models": {
                name: {**found.shares(), "expected_clicks": found.expected_clicks().to_json()}
                for name, found in self.evidence.items()
            },
            "differences": [one.to_json() for one in self.contrasts],
        }


def lists_for_evidence(scorer: Scorer, split: Split, k: int) -> Lists:
    """The lists that a diagnosis looks at: of everyone with training events, or of a sample of them."""
    users = users_with_lists(split.train, Rng(0))
    return top_k_lists(scorer, users, split.train.histories, min(k, split.train.n_items)).items


def vouch_for(lists: Mapping[str, Lists], split: Split) -> Vouched:
    """What the held-out parts have seen of these lists, made by `lists_for_evidence`."""
    view, users = view_log(split, held_out_of(split), Rng(0)), users_with_lists(split.train, Rng(0))
    whole = view.of(all_rows(split), split)  # what was shown was shown, whoever is held out for which reason
    first, *others = lists
    contrasts = (contrast((other, first), (lists[other], lists[first]), users, whole) for other in others)
    evidence = {name: view.evidence(one, users) for name, one in lists.items()}
    return Vouched(evidence, tuple(contrasts), view.shown.complete)


def contrast(names: tuple[str, str], lists: tuple[Lists, Lists], users: Lists, view: LogView) -> Contrast:
    """The slots in which two sets of lists (users, k) for these users (users,) differ."""
    apart = np.concatenate([_only_in(*lists), _only_in(*lists[::-1])])
    found = view.evidence(apart, np.concatenate([users, users]))
    unseen = 1 - found.shares()["shown_to_user"] if found.slots else 0.0
    return Contrast(*names, found.slots, unseen, view.shown.complete)


def _only_in(one: Lists, other: Lists) -> Lists:
    """The first lists, with nothing where the other list of the same user has the item too."""
    return np.where(in_both(one, other), UNKNOWN, one)
