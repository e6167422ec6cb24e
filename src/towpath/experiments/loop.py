"""The closed loop: deploy, show, draw clicks from the truth, log, train again; several arms side by side."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from towpath.data.interactions import Interactions
from towpath.data.split import join, split_leave_last_two
from towpath.evaluation.evaluate import evaluate
from towpath.experiments.pool import Work, workers
from towpath.experiments.round_store import Round, RoundStore
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.scorer import Scorer, Settings
from towpath.ranking.scoring import score_blocks
from towpath.rng import Rng
from towpath.worlds.showing import Shown, show_lists
from towpath.worlds.world import World


class LoopSettings(Settings):
    """How the loop goes."""

    rounds: int = Field(default=10, ge=1, description="How often a recommender is trained and deployed.")
    k: int = Field(default=10, ge=1, description="Length of the list that every user is shown in a round.")
    exploration: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of every list that is drawn at random, with known chances.",
    )
    again: bool = Field(
        default=False, description="Whether a user may be shown again what they have clicked already."
    )


@dataclass(frozen=True)
class Arm:
    """A recommender in the loop: a recipe that is retrained every round, or, without one, random lists."""

    name: str
    recipe: Recipe | None


@dataclass(frozen=True)
class Start:
    """What all arms have in common: the world with its first log, how the loop goes, and the seed."""

    world: World
    settings: LoopSettings
    seed: int


def run_loop(start: Start, arms: Sequence[Arm], work: Work[Round] | None = None) -> tuple[Round, ...]:
    """Every round of every arm, arm by arm.

    Each arm begins with the world's own log and goes on with what it has shown itself; none sees another's.
    Whether a user would click an item in a round is the same for all arms. With a folder in `work`, rounds
    that were finished before are found there and not played again.
    """
    work = work or Work()
    for arm in arms:
        if arm.recipe is not None:
            arm.recipe.resolve()  # what cannot be is said before the first fit, not after it
    kept = None if work.folder is None else RoundStore(work.folder, start.world, start.seed)
    played: dict[str, list[Round]] = {arm.name: [] for arm in arms}
    # In this process rounds are heard of as they come; from another they come when its arm is done.
    with workers(_play if work.jobs == 1 else _play_out, (start, kept), work.jobs) as results:
        for rounds in results(arms):
            for one in rounds:
                played[one.arm].append(one)
                work.watch(one)
    return tuple(one for arm in arms for one in played[arm.name])


Shared = tuple[Start, RoundStore | None]


def _play_out(shared: Shared, arm: Arm) -> Iterable[Round]:
    return tuple(_play(shared, arm))


def _play(shared: Shared, arm: Arm) -> Iterable[Round]:
    """The rounds of one arm, as they come."""
    start, kept = shared
    exposures = start.world.exposures
    for number in range(1, start.settings.rounds + 1):
        found = kept.find(arm.name, _about(start, arm), number) if kept else None
        if found is None:
            found = _one_round(start, arm, exposures, number)
            if kept:
                kept.keep(_about(start, arm), *found)
        done, new = found
        exposures = join(exposures, new)  # the new rows are later
        yield done


def _about(start: Start, arm: Arm) -> dict[str, object]:
    """All that a round depends on besides world, seed and number."""
    settings = start.settings.model_dump(exclude={"rounds"})
    return {"recipe": None if arm.recipe is None else arm.recipe.resolved(), "loop": settings}


def _one_round(start: Start, arm: Arm, exposures: Interactions, number: int) -> tuple[Round, Interactions]:
    """What one round gave, and what it added to the log."""
    world, settings, rng = start.world, start.settings, Rng(start.seed).child("loop", number)
    log = first_clicks(exposures)
    scores, promised = _recommend(start, arm, log, number)
    hidden = np.isneginf(scores)
    exploration = 1.0 if arm.recipe is None else settings.exploration
    shown = show_lists(scores, settings.k, exploration, rng.numpy("exploration", arm.name))
    # Drawn for every pair, whoever is shown it, so that arms differ by what they show and not by luck.
    clicked = rng.numpy("clicks").random(world.relevance.shape, dtype=np.float32) < world.relevance
    new = _logged(exposures, shown, clicked[shown.users, shown.items], number)
    return _evaluated(start, arm, number, new, hidden, promised), new


def first_clicks(exposures: Interactions) -> Interactions:
    """The clicks among the exposures, each pair's first one only, in the same order."""
    clicks = exposures.positives
    _, firsts = np.unique(clicks.pair_keys(), return_index=True)
    keep = np.zeros(len(clicks), dtype=np.bool_)
    keep[firsts] = True
    return clicks.where(keep)


def _recommend(start: Start, arm: Arm, log: Interactions, number: int) -> tuple[NDArray[np.float32], float]:
    """Scores of all pairs, minus infinity where none may be shown, and the Hit@K that the log promises."""
    if arm.recipe is None:
        scores = _hide(np.zeros(start.world.relevance.shape, dtype=np.float32), start, log)
        return scores, float((start.settings.k / np.isfinite(scores).sum(axis=1)).mean())
    split = split_leave_last_two(log)
    fitted = fit(split, replace(arm.recipe, seed=start.seed + number))
    promised = evaluate(fitted.scorer, split, k=start.settings.k).metrics()["hit"]
    return _hide(_scores(fitted.scorer, log), start, log), promised


def _scores(scorer: Scorer, log: Interactions) -> NDArray[np.float32]:
    """Scores of all pairs after these clicks: (users, items)."""
    scores = np.empty((log.n_users, log.n_items), dtype=np.float32)
    for rows, block in score_blocks(scorer, np.arange(log.n_users), log.histories, hide="nothing"):
        scores[rows] = block.cpu().numpy()
    return scores


def _hide(scores: NDArray[np.float32], start: Start, log: Interactions) -> NDArray[np.float32]:
    if not start.settings.again:
        scores[log.users, log.items] = -np.inf
    return scores


def _logged(before: Interactions, shown: Shown, clicked: NDArray[np.bool_], number: int) -> Interactions:
    """What was shown in this round as rows of the log, all later than any before."""
    latest = 0 if before.times is None else int(before.times.max(initial=0))
    return Interactions(
        users=shown.users.astype(np.int32),
        items=shown.items.astype(np.int32),
        user_ids=before.user_ids,
        item_ids=before.item_ids,
        times=np.full(len(clicked), latest + 1, dtype=np.int64),
        values=clicked.astype(np.float32),
        labels=clicked,
        propensities=shown.propensity[shown.users, shown.items],
        exposures=np.ones(len(clicked), dtype=np.bool_),
    )


def _evaluated(
    start: Start, arm: Arm, number: int, new: Interactions, hidden: NDArray[np.bool_], promised: float
) -> Round:
    """The round held against the truth."""
    world, k = start.world, start.settings.k
    relevance = world.relevance_of(new.items.reshape(-1, k))
    open_pairs = np.where(hidden, 0, world.relevance)
    within_reach = open_pairs.sum(axis=1, dtype=np.float64)
    best = np.partition(open_pairs, -k, axis=1)[:, -k:].sum(axis=1, dtype=np.float64)
    counts = new.item_counts
    return Round(
        arm=arm.name,
        number=number,
        click_through=float(np.mean(np.asarray(new.values))),
        relevance=float(relevance.mean()),
        best=float(best.mean()),
        coverage=float(np.count_nonzero(counts) / len(counts)),
        popularity=float(counts @ world.log.item_counts) / (len(new) * world.log.n_users),
        concentration=gini(counts),
        promised_hit=promised,
        true_hit=float((relevance / within_reach).mean()),
    )


def gini(counts: NDArray[np.int64]) -> float:
    """How unevenly showings fall on items: 0 if all get the same, near 1 if one gets all.

        G = sum_i (2 i - n - 1) c_i / (n sum_i c_i)      c ascending, i from 1

    >>> gini(np.array([3, 3, 3])), gini(np.array([0, 0, 0, 8]))
    (0.0, 0.75)
    """
    ordered, n = np.sort(counts), len(counts)
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered) / (n * float(ordered.sum()))
