"""The closed loop: deploy, show, draw clicks from true relevance, log, train again; several arms."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from towpath.data.interactions import Interactions
from towpath.data.joining import join
from towpath.data.policies import without_policy
from towpath.data.split import split_leave_last_two
from towpath.evaluation.evaluate import evaluate
from towpath.experiments.pool import Work, workers
from towpath.experiments.result_store import ResultKey, ResultStore, open_store
from towpath.experiments.rounds import Round, RoundRecord, record_of, world_fingerprint
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
    are stored there, and those that are stored already are not computed again.
    """
    work = work or Work()
    for arm in arms:
        if arm.recipe is not None:
            arm.recipe.resolve()  # wrong settings are reported before the first fit
    store = None if work.folder is None else _LoopStore(open_store(work.folder), start)
    rounds: dict[str, list[Round]] = {arm.name: [] for arm in arms}
    # In this process rounds are reported one by one; from another process when its arm is finished.
    with workers(_run_arm if work.jobs == 1 else _run_whole_arm, (start, store), work.jobs) as results:
        for finished in results(arms):
            for one in finished:
                rounds[one.arm].append(one)
                work.on_result(one)
    return tuple(one for arm in arms for one in rounds[arm.name])


class _LoopStore:
    """The stored rounds of one world, loop and seed."""

    def __init__(self, store: ResultStore, start: Start) -> None:
        self._store, self._start = store, start
        self._data = world_fingerprint(start.world)

    def get(self, arm: Arm, number: int) -> tuple[Round, Interactions] | None:
        """The round and the rows that it added to the log, if it is stored."""
        record = self._store.get(RoundRecord, self._key(arm, number).name)
        if record is None:
            return None
        return replace(record.round, arm=arm.name), record.rows(self._start.world.exposures)

    def put(self, arm: Arm, result: Round, rows: Interactions) -> None:
        """Store a round."""
        self._store.put(self._key(arm, result.number), record_of(result, rows))

    def _key(self, arm: Arm, number: int) -> ResultKey:
        settings = self._start.settings.model_dump(exclude={"rounds"})
        return self._store.key(
            data=self._data, recipe=arm.recipe, loop=settings, seed=self._start.seed, round=number
        )


Shared = tuple[Start, _LoopStore | None]


def _run_whole_arm(shared: Shared, arm: Arm) -> Iterable[Round]:
    return tuple(_run_arm(shared, arm))


def _run_arm(shared: Shared, arm: Arm) -> Iterable[Round]:
    """The rounds of one arm, one after the other."""
    start, store = shared
    exposures = without_policy(start.world.exposures)
    for number in range(1, start.settings.rounds + 1):
        stored = store.get(arm, number) if store else None
        result, rows = stored or _one_round(start, arm, exposures, number)
        if store and stored is None:
            store.put(arm, result, rows)
        exposures = join(exposures, rows)  # the new rows are later
        yield result


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
    fitted = fit(split, replace(arm.recipe, seed=start.seed + number).suited_to(split.train))
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
        policies=np.zeros(len(clicked), dtype=np.int32),
    )


def _evaluated(
    start: Start, arm: Arm, number: int, new: Interactions, hidden: NDArray[np.bool_], promised: float
) -> Round:
    """The round compared with the true relevance."""
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
