"""The diagnosis of a run: by its own held-out parts, or by another log of the same users and items."""

from pathlib import Path

import numpy as np

from towpath.bandit.log import BanditLog, LogColumns, read_bandit_log
from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.data.vocabulary import UNKNOWN
from towpath.diagnostics.diagnose import Diagnosis, Players, diagnose
from towpath.diagnostics.log_view import HeldOut
from towpath.errors import DataError
from towpath.serving.facts import critic_of, weights_of
from towpath.serving.run import Run


def diagnose_run(
    run: Run, *, k: int = 10, log: Path | None = None, columns: LogColumns | None = None
) -> Diagnosis:
    """What the log can vouch for of what this run would show; `log` takes the place of the held-out parts."""
    held_out = None if log is None else held_out_from(read_bandit_log(log, columns), run.split, str(log))
    players = Players(weights_of(run, run.split), critic_of(run, run.split))
    return diagnose(run.artifact.scorer, run.split, k=k, held_out=held_out, players=players)


def held_out_from(log: BanditLog, split: Split, name: str) -> HeldOut:
    """The rows of a log of impressions whose user and item the model knows, in its codes."""
    if log.contexts is None or log.context_ids is None:
        raise DataError(f"A diagnosis by {name} needs to know whom things were shown to; name --user-col.")
    users = split.train.user_ids.codes(log.context_ids.ids(np.arange(len(log.context_ids))))[log.contexts]
    items = split.train.item_ids.codes(log.item_ids.ids(np.arange(log.n_actions)))[log.actions]
    known = (users != UNKNOWN) & (items != UNKNOWN)
    if not known.any():
        raise DataError(
            f"None of the {len(log):,} rows of {name} has a user and an item that the run knows; give a log "
            "of the same users and items."
        )
    left = len(log) - int(known.sum())
    remarks = (
        (f"{left:,} of {len(log):,} rows have a user or an item that the run does not know",) if left else ()
    )
    # The order (user, row of the file), as of all interactions.
    order = np.flatnonzero(known)[np.argsort(users[known], kind="stable")]
    propensities = None if log.propensities is None else log.propensities[order].astype(np.float32)
    rows = Interactions(
        users=users[order].astype(np.int32),
        items=items[order].astype(np.int32),
        user_ids=split.train.user_ids,
        item_ids=split.train.item_ids,
        labels=log.rewards[order] > 0,
        positions=None if log.n_positions == 1 else (log.positions[order] + 1).astype(np.int32),
        propensities=propensities,
    )
    return HeldOut(rows, name, (*log.notes, *remarks))
