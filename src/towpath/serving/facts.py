"""What the files of a run and one evaluation of its model say, for the page about it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from towpath.data.cleaning import Step
from towpath.data.split import Split
from towpath.diagnostics.contrast import Vouched, lists_for_evidence, vouch_for
from towpath.diagnostics.dial import dial_of
from towpath.diagnostics.lists import shared, spread_of
from towpath.diagnostics.weights import critic_values, learns_weights, weigh_pairs
from towpath.errors import ConfigError, TowpathError
from towpath.evaluation.comparison import Difference, compare
from towpath.evaluation.evaluate import evaluate
from towpath.evaluation.protocols import EvalProtocol
from towpath.evaluation.result import Evaluation
from towpath.evaluation.task import RankingTask, task_of
from towpath.models.popularity import Popularity, PopularitySettings
from towpath.models.scorer import Scorer, sizes_of
from towpath.ranking.blocks import NOTHING
from towpath.ranking.lists import top_k_lists
from towpath.reports.run_facts import LOG, POPULARITY, THIS, EvaluatedRun, Gap, Outcome, Recommended
from towpath.rng import Rng
from towpath.serving.run import Run, recipe_of
from towpath.training.weighed_pairs import PairValues, WeighedPairs

_PROTOCOLS: tuple[EvalProtocol, ...] = ("full", "sampled")
# Lists of more users would say the same.
_MOST_USERS = 20_000


@dataclass
class Gaps:
    """Collects what could not be told, and why."""

    found: list[Gap] = field(default_factory=list)

    @contextmanager
    def around(self, what: str) -> Iterator[None]:
        """Lets the block fail for a reason that a user can understand, and keeps the reason."""
        try:
            yield
        except TowpathError as error:
            self.found.append(Gap(what, str(error)))


def outcome_of(run: Run) -> Outcome:
    """How training ended."""
    return Outcome(run.artifact.about["best_epoch"], run.artifact.about["stopped_because"])


def steps_of(run: Run) -> list[Step]:
    """What cleaning dropped, if the run has kept it; runs of early versions have not."""
    return [Step(**step) for step in run.record["data"].get("steps", ())]


def rivals_of(run: Run, split: Split, against: Run | None) -> dict[str, Scorer]:
    """The run's model, and what it is held against: the most popular items and another run."""
    models = {THIS: run.artifact.scorer}
    if not isinstance(run.artifact.scorer, Popularity):
        popularity = Popularity(PopularitySettings(), sizes_of(split.train))
        popularity.initialise(split.train, Rng(0))
        models[POPULARITY] = popularity
    if against is not None:
        models[_name_of_other(against, models)] = against.artifact.scorer
    return models


def refuse_other_data(run: Run, against: Run) -> None:
    """Nothing, unless the two runs were not trained on the same split."""
    mine, theirs = (one.record["data"]["fingerprint"] for one in (run, against))
    if mine != theirs:
        raise ConfigError(
            f"{against.folder} was trained on another split than {run.folder} (fingerprints {theirs[:12]}… "
            f"and {mine[:12]}…), so the two cannot be compared; fit both on the same data and split."
        )


def assess(models: dict[str, Scorer], split: Split, k: int, gaps: Gaps) -> EvaluatedRun | None:
    """Everyone's metrics on the test part under every protocol that the data allow, and the differences."""
    found: dict[str, list[Evaluation]] = {who: [] for who in models}
    for protocol in _PROTOCOLS:
        with gaps.around(f"the {protocol} protocol"):
            evaluated = {who: evaluate(m, split, protocol=protocol, k=k) for who, m in models.items()}
            for who, one in evaluated.items():
                found[who].append(one)
    if not found[THIS]:
        return None
    return EvaluatedRun(k, found, tuple(_differences(found)))


def recommend_all(models: dict[str, Scorer], split: Split, k: int) -> Recommended:
    """The lists of everyone for the evaluated users, or for a sample of them where there are very many."""
    task = task_of(split, "test")
    users = task.users
    if len(users) > _MOST_USERS:
        users = np.sort(Rng(0).numpy("report", "users").choice(users, _MOST_USERS, replace=False))
    lists = {who: top_k_lists(model, users, task.seen, k).items for who, model in models.items()}
    spreads = {LOG: spread_of(split.train.items, split.train)}
    return Recommended(
        k=k,
        users=len(users),
        spreads=spreads | {who: spread_of(items, split.train) for who, items in lists.items()},
        shared={who: shared(lists[THIS], items) for who, items in lists.items() if who != THIS},
        known=_known(lists[THIS], users, task),
        dial=dial_of(models[THIS], split, k),
    )


def vouch_for_models(models: dict[str, Scorer], split: Split, k: int) -> Vouched:
    """What the held-out parts have seen of everyone's lists; as `towpath diagnose` says it of the run."""
    return vouch_for({who: lists_for_evidence(model, split, k) for who, model in models.items()}, split)


def weights_of(run: Run, split: Split) -> WeighedPairs | None:
    """The weights of training pairs; None for a run that has learned none."""
    recipe, state = recipe_of(run), run.artifact.auxiliary_state
    if not state or not learns_weights(recipe):
        return None
    return weigh_pairs(run.artifact.scorer, state, split.train, recipe)


def critic_of(run: Run, split: Split) -> PairValues | None:
    """The run's own critic; None where it has none that could be asked about any pair."""
    state = run.artifact.auxiliary_state
    return critic_values(run.artifact.scorer, state, split.train, recipe_of(run)) if state else None


def _name_of_other(against: Run, taken: dict[str, Scorer]) -> str:
    """What to call the other run: its folder, unless somebody has that name."""
    name = against.folder.resolve().name
    return name if name not in (*taken, LOG) else f"run {name}"


def _differences(found: dict[str, list[Evaluation]]) -> Iterator[Difference]:
    """The run minus each of the others; the interval knows one seed, so it is over users alone."""
    for who in found:
        if who != THIS:
            yield from compare({who: found[who], THIS: found[THIS]}, rng=Rng(0)).differences


def _known(lists: NDArray[np.int64], users: NDArray[np.int64], task: RankingTask) -> float:
    """The share of the slots whose item is a test item of its user."""
    wanted = task.users[task.rows] * task.n_items + task.targets
    keys = np.where(lists == NOTHING, -1, users[:, None] * task.n_items + lists)
    return float(np.isin(keys, wanted).sum() / max(1, np.count_nonzero(lists != NOTHING)))
