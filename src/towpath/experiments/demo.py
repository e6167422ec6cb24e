"""A demonstration on a simulated world: what the log promises, and what deployment would really earn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from towpath.data.split import Split, split_leave_last_two
from towpath.evaluation.comparison import Comparison, compare
from towpath.evaluation.evaluate import evaluate
from towpath.evaluation.result import Evaluation
from towpath.experiments.loop import Arm, LoopSettings, Start, run_loop
from towpath.experiments.pool import Work
from towpath.experiments.rounds import Round
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.scorer import Scorer
from towpath.ranking.lists import top_k_lists
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world
from towpath.worlds.world import World

SEEDS = 2
ROUNDS = 3
K = 10
BASELINE = "plain"
# What is deployed, round after round, and what is compared as the overlap of the log grows.
DEPLOYED = ("plain", "imitation", "transport")
DIALLED = ("plain", "shown", "imitation", "transport")
DIAL = (0.0, 0.5, 1.0)  # shares of what was shown that were drawn at random
# A world in which everything below takes less than a minute on one core.
WORLD = LatentWorld(users=500, items=300, shown_per_user=40)
DIAL_WORLD = LatentWorld(users=300, items=200, shown_per_user=30)
# Chosen by validation Hit@10 in worlds of seeds 100 and 101, not by the truth: some twenty tries for plain mf
# (l2, learning_rate, batch_size); ipw has the same. The others have their defaults.
MF_SETTINGS = {"embedding_dim": 16, "batch_size": 256, "learning_rate": 0.01, "l2": 0.03, "negatives": 3}
IPW_SETTINGS = {**MF_SETTINGS, "variant": "weighted", "propensity": "given", "floor": 0.5}


@dataclass(frozen=True)
class DemoResult:
    """The metrics of one recommender: per-user values, one evaluation per seed, all on the same users."""

    name: str
    full: tuple[Evaluation, ...]  # rel is the true relevance of the list: expected clicks
    sampled: tuple[Evaluation, ...]
    tried: tuple[Evaluation, ...]  # rel is the number of items in the list that the user had been shown
    example: NDArray[np.int64]  # (K,) the list of the first evaluated user, by the first seed

    def per_user(self, metric: str, protocol: str = "full") -> NDArray[np.float64]:
        """Mean over seeds of a metric: (users,)."""
        runs = self.full if protocol == "full" else self.sampled
        return np.mean([run.per_user[metric] for run in runs], axis=0)

    def mean(self, metric: str, protocol: str = "full") -> float:
        """Mean over seeds and users, or over seeds for a metric of the lists as a whole."""
        runs = self.full if protocol == "full" else self.sampled
        return float(np.mean([run.metrics()[metric] for run in runs]))

    @cached_property
    def tried_share(self) -> float:
        """The share of its lists that the earlier recommender had shown to the same user."""
        return float(np.mean([run.metrics()["rel"] / run.k for run in self.tried]))


@dataclass(frozen=True)
class OverlapPoint:
    """True clicks on a list of each recommender, where the logger drew this share at random."""

    exploration: float
    clicks: dict[str, float]


@dataclass(frozen=True)
class Demonstration:
    """A world, the log of an earlier recommender in it, and the metrics of each recommender."""

    settings: LatentWorld
    world: World
    split: Split
    results: tuple[DemoResult, ...]
    comparison: Comparison  # differences to BASELINE, paired by user and seed
    rounds: tuple[Round, ...]  # of those that were deployed in the closed loop
    overlap: tuple[OverlapPoint, ...]  # in smaller worlds, from no overlap to full

    def oracle(self) -> dict[str, float]:
        """Expected clicks on the list of ten that is best, and on a random one, for the same users."""
        users, seen = self.results[0].full[0].users, (self.split.train, self.split.validation)
        return {
            "random choice": float(self.world.chance_relevance(K, *seen)[users].mean()),
            "best possible": float(self.world.best_relevance(K, *seen)[users].mean()),
        }

    def ranked(self, metric: str, protocol: str = "full") -> list[DemoResult]:
        """The results, best first."""
        return sorted(self.results, key=lambda result: -result.mean(metric, protocol))

    def rounds_of(self, arm: str) -> list[Round]:
        """The rounds of one arm, first to last."""
        return [one for one in self.rounds if one.arm == arm]

    @property
    def arms(self) -> list[str]:
        """Which recommenders were deployed, in the order of the results."""
        return list(dict.fromkeys(one.arm for one in self.rounds))


def recipes() -> dict[str, Recipe]:
    """What the demonstration compares."""
    return {
        "popularity": Recipe("popularity"),
        "plain": Recipe("mf", settings=MF_SETTINGS),
        "ipw": Recipe("mf", "ipw", settings=IPW_SETTINGS),
        "shown": Recipe("mf", "shown"),
        "imitation": Recipe("mf", "imitation"),
        "transport": Recipe("mf", "transport"),
    }


def demonstrate(
    settings: LatentWorld,
    seed: int,
    *,
    compared: Mapping[str, Recipe] | None = None,
    on_progress: Callable[[str], None] = lambda step: None,
) -> Demonstration:
    """Make the world of this seed, train on its log, compare the log's metrics with the truth, and deploy.

    `on_progress` is called with each step before it begins, or as it ends in the closed loop.
    """
    compared = compared or recipes()
    on_progress("Making a world and the log of its earlier recommender")
    world = make_latent_world(settings, Rng(seed))
    split = split_leave_last_two(world.log)
    results = tuple(
        _try(name, recipe, (world, split), seed, on_progress) for name, recipe in compared.items()
    )
    on_progress("Comparing")
    ordered = sorted(results, key=lambda result: result.name != BASELINE)
    paired = compare({result.name: result.full for result in ordered}, rng=Rng(seed))
    rounds = _deploy(world, compared, seed, on_progress)
    overlap = tuple(_dial(share, compared, seed, on_progress) for share in DIAL)
    return Demonstration(settings, world, split, results, paired, rounds, overlap)


def steps(compared: Mapping[str, Recipe] | None = None) -> int:
    """How often `on_progress` is called at most."""
    compared = compared or recipes()
    return 2 + SEEDS * len(compared) + ROUNDS * len(deployed(compared)) + len(DIAL)


def deployed(compared: Mapping[str, Recipe]) -> dict[str, Recipe]:
    """Those that are deployed."""
    return {name: recipe for name, recipe in compared.items() if name in DEPLOYED}


def _try(
    name: str, recipe: Recipe, evaluated: tuple[World, Split], seed: int, on_progress: Callable[[str], None]
) -> DemoResult:
    world, split = evaluated
    runs, example = [], np.empty(0, dtype=np.int64)
    for number in range(SEEDS):
        on_progress(f"Training and evaluating {name}, seed {number + 1} of {SEEDS}")
        fitted = fit(split, replace(recipe, seed=seed + number))
        runs.append(_evaluate(fitted.scorer, world, split))
        if number == 0:
            example = _list_of(fitted.scorer, split, int(runs[0][0].users[0]))
        if not fitted.history:
            break  # a closed form gives the same for every seed
    full, sampled, tried = zip(*(runs * (SEEDS // len(runs))), strict=True)
    return DemoResult(name, full, sampled, tried, example)


def _evaluate(scorer: Scorer, world: World, split: Split) -> tuple[Evaluation, Evaluation, Evaluation]:
    """Evaluated by full ranking with true relevance, by sampled negatives, and by what was shown before."""
    shown = np.zeros(world.relevance.shape, dtype=np.float32)
    shown[world.exposures.users, world.exposures.items] = 1
    return (
        evaluate(scorer, split, k=K, relevance=world.relevance),
        evaluate(scorer, split, protocol="sampled", k=K),
        evaluate(scorer, split, k=K, relevance=shown),
    )


def _list_of(scorer: Scorer, split: Split, user: int) -> NDArray[np.int64]:
    """The items that this user would be shown, best first: (K,)."""
    return top_k_lists(scorer, np.array([user]), split.before_test.histories, K).items[0]


def _deploy(
    world: World, compared: Mapping[str, Recipe], seed: int, on_progress: Callable[[str], None]
) -> tuple[Round, ...]:
    arms = [Arm(name, recipe) for name, recipe in deployed(compared).items()]
    start = Start(world, LoopSettings(rounds=ROUNDS, k=K), seed)
    return run_loop(
        start,
        arms,
        Work(on_result=lambda one: on_progress(f"Deployed {one.arm}, round {one.number} of {ROUNDS}")),
    )


def _dial(
    exploration: float, compared: Mapping[str, Recipe], seed: int, on_progress: Callable[[str], None]
) -> OverlapPoint:
    """True clicks in a small world whose logger drew this share at random."""
    on_progress(f"Learning from a log of which {exploration:.0%} is random")
    world = make_latent_world(DIAL_WORLD.model_copy(update={"exploration": exploration}), Rng(seed))
    split = split_leave_last_two(world.log)
    clicks = {}
    for name in (name for name in DIALLED if name in compared):
        fitted = fit(split, replace(compared[name], seed=seed))
        found = evaluate(fitted.scorer, split, protocol="truth", k=K, relevance=world.relevance)
        clicks[name] = found.metrics()["rel"]
    return OverlapPoint(exploration, clicks)
