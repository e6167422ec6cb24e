"""What the log of a held-out period knows, whichever model is looked at."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.data.joining import join
from towpath.data.split import LEAVE_LAST_TWO, Split
from towpath.data.sql import SHORTEST
from towpath.diagnostics.evidence import Evidence, Shown, find_evidence
from towpath.diagnostics.representation import Representation, represent
from towpath.errors import DataError
from towpath.rng import Rng

# Lists are made for at most so many users, drawn at random.
MOST_USERS = 20_000


@dataclass(frozen=True)
class HeldOut:
    """The rows that a model is evaluated on, and where they come from."""

    rows: Interactions  # codes of the split's vocabularies; labels None where only clicks are logged
    period: str
    remarks: tuple[str, ...] = ()
    by_clicks: bool = False  # whether rows are here because of their clicks, so that rates are too high


def all_rows(split: Split) -> HeldOut:
    """Validation and test together, whoever is in them for which reason."""
    return HeldOut(join(split.validation, split.test).rows, "the validation and test parts")


def held_out_of(split: Split) -> HeldOut:
    """Validation and test together: the period that the model was not trained on.

    Click rates say something only of rows that were not picked by their clicks. Leaving out everyone's last
    two clicks picks by nothing else. The other splits keep users with few clicks in training; those whom
    training clicks alone would have brought into the parts are there whatever they clicked later, and only
    they are kept.
    """
    whole = all_rows(split)
    rows, period = whole.rows, whole.period
    if rows.labels is None or len(split.outside) == 2:
        return whole
    if split.description.startswith(LEAVE_LAST_TWO):
        files = [name for name in ("validation", "test") if name in split.outside]
        if files:
            return HeldOut(
                (split.test if files == ["test"] else split.validation).rows, f"the {files[0]} part"
            )
        return replace(whole, by_clicks=True)
    kept = rows.where(split.train.histories.lengths[rows.users] >= SHORTEST)
    left = len(rows) - len(kept)
    remark = (
        f"{left:,} of {len(rows):,} held-out rows are not counted: their users have fewer than {SHORTEST} "
        "training clicks and were held out because of what they clicked later"
    )
    return HeldOut(kept, period, (remark,) if left else ())


@dataclass(frozen=True)
class LogView:
    """The rows of a period, and who is like whom by the training events alone."""

    held_out: HeldOut
    shown: Shown
    vectors: Representation
    cells: NDArray[np.int64]  # (all users,)

    def evidence(self, lists: NDArray[np.int64], users: NDArray[np.int64]) -> Evidence:
        """What the period has seen of lists (b, k) of these users (b,)."""
        return find_evidence(lists, users, self.shown, self.cells)

    def of(self, held_out: HeldOut, split: Split) -> "LogView":
        """The same with other rows."""
        return replace(self, held_out=held_out, shown=_shown(held_out, split.train))


def view_log(split: Split, held_out: HeldOut, rng: Rng) -> LogView:
    """The view; vectors and cells come from the training part."""
    if len(held_out.rows) == 0:
        why = "".join(f" ({remark})" for remark in held_out.remarks)
        raise DataError(
            f"A diagnosis needs rows that the model was not trained on, and there are none{why}; give a log "
            "of impressions with --log."
        )
    train = split.train
    vectors = represent(
        train.users, train.items, (train.n_users, train.n_items), rng.numpy("diagnose", "svd")
    )
    cells = vectors.cells(rng.numpy("diagnose", "cells"))
    return LogView(held_out, _shown(held_out, train), vectors, cells)


def users_with_lists(train: Interactions, rng: Rng) -> NDArray[np.int64]:
    """Whose lists are looked at: everyone with training events, or a sample of them."""
    known = np.flatnonzero(train.histories.lengths > 0)
    if len(known) <= MOST_USERS:
        return known
    return np.sort(rng.numpy("diagnose", "users").choice(known, MOST_USERS, replace=False))


def _shown(held_out: HeldOut, train: Interactions) -> Shown:
    rows = held_out.rows
    return Shown(
        rows.users,
        rows.items,
        np.ones(len(rows), dtype=np.bool_) if rows.labels is None else rows.labels,
        rows.n_items,
        complete=rows.labels is not None,
        by_clicks=held_out.by_clicks,
        earlier=train.rows.item_counts,
    )
