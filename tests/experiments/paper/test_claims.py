"""What is said of a claim follows from the numbers alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.evaluation.result import Evaluation
from towpath.experiments.paper.claims import (
    BestIsTransport,
    Better,
    CatchesUp,
    Rises,
    Steady,
    WeightsAre,
    outcome_of,
    sign_of,
)
from towpath.experiments.paper.results import BenchmarkFacts, BenchmarkResults
from towpath.experiments.paper.weights import (
    STATISTICS,
    StoredPairs,
    even_on_positives,
    more_on_positives,
    more_on_shown,
    rising_elsewhere,
    rising_with_exposure,
    rising_with_score,
)
from towpath.experiments.run_result import RunResult
from towpath.stats.spread import t_interval

USERS = 200
FACTS = BenchmarkFacts("ml-1m", "MovieLens 1M", (), "f", USERS, 50, 4000, USERS)


def done(column: str, seed: int, share: float, hits: tuple[float, ...] = (0.1, 0.2)) -> RunResult:
    """A run whose list holds the target of this share of users; each epoch takes ten seconds."""
    hit = (np.arange(USERS) < share * USERS).astype(np.float64)
    per_user = {"hit": hit, "ndcg": hit / 2, "recall": hit, "rel": hit}
    evaluated = tuple(
        Evaluation(protocol, "test", 10, np.arange(USERS), per_user, {})
        for protocol in ("full", "sampled", "paper")
    )
    history = tuple({"epoch": n, "seconds": 10.0, "validation_hit": h} for n, h in enumerate(hits, start=1))
    return RunResult(column, seed, len(history), 10.0 * len(history), evaluated, history, 12.0)


def found(shares: dict[str, tuple[float, ...]]) -> BenchmarkResults:
    """Columns with one share for each seed; one share alone stands for all seeds."""
    seeds = tuple(range(max(map(len, shares.values()))))
    cells = {(c, s): done(c, s, share) for c, row in shares.items() for s, share in enumerate(row)}
    once = frozenset(c for c, row in shares.items() if len(row) == 1 < len(seeds))
    return BenchmarkResults(FACTS, 10, seeds, cells, {column: {} for column in shares}, once=once)


def test_better_worse_and_neither() -> None:
    here = found({"DT-MCF": (0.5, 0.5), "MCF": (0.3, 0.3), "like MCF": (0.3, 0.3)})
    better = Better("DT-MCF", "MCF").assess(here)
    assert better is not None
    assert better.outcome == "held"
    assert "Rel@10 (full) +20.00 (+1" in better.evidence
    assert "The paper has +0.63, +1.68, +1.92." in better.evidence
    assert better.sentence.startswith("DT-MCF is better than MCF — held on MovieLens 1M: ")
    assert [
        verdict.outcome
        for verdict in (Better("MCF", "DT-MCF").assess(here), Better("MCF", "like MCF").assess(here))
        if verdict is not None
    ] == ["did not hold", "undecided"]


def test_one_seed_decides_nothing() -> None:
    verdict = Better("DT-MCF", "MCF").assess(found({"DT-MCF": (0.9,), "MCF": (0.1,)}))
    assert verdict is not None
    assert verdict.outcome == "not tested"
    assert "One seed" in verdict.evidence


def test_what_is_not_there_is_not_evaluated() -> None:
    here = found({"MCF": (0.3, 0.3)})
    assert Better("DT-MCF", "MCF").assess(here) is None
    assert BestIsTransport().assess(here) is None
    assert Rises("More is better", ("MCF", "nothing")).assess(here) is None


def test_the_best_of_the_paper_s_methods_meets_the_best_of_the_others() -> None:
    shares = {"Pop": (0.1,), "IPW-MF": (0.4, 0.4), "DT-MCF": (0.2, 0.2), "DT-NCF": (0.6, 0.6)}
    here = found(shares | {"a column of ours": (0.9, 0.9)})  # of which the paper says nothing
    verdict = BestIsTransport().assess(here)
    assert verdict is not None
    assert verdict.outcome == "held"
    assert "DT-NCF against IPW-MF +20.00" in verdict.evidence


def test_ends_of_a_row_and_steadiness() -> None:
    here = found({"1": (0.3, 0.3), "2": (0.3, 0.3), "3": (0.5, 0.5)})
    rises = Rises("More is better", ("1", "2", "3")).assess(here)
    steady = Steady("It matters little", ("1", "2", "3")).assess(here)
    calm = Steady("It matters little", ("1", "2")).assess(here)
    assert rises is not None
    assert steady is not None
    assert calm is not None
    assert (rises.outcome, steady.outcome, calm.outcome) == ("held", "did not hold", "held")
    assert "different from 2: 3 +20.00" in steady.evidence


def test_time_to_where_another_ends() -> None:
    here = found({"DT-MCF": (0.5, 0.5), "MCF": (0.5, 0.5)})
    slow = (0.1, 0.2, 0.3)
    cells = {
        ("MCF", 0): done("MCF", 0, 0.5, slow),
        ("MCF", 1): done("MCF", 1, 0.5, slow),
        ("DT-MCF", 0): done("DT-MCF", 0, 0.5, (0.3,)),
        ("DT-MCF", 1): done("DT-MCF", 1, 0.5, (0.4,)),
    }
    sooner = CatchesUp("DT-MCF", "MCF").assess(
        BenchmarkResults(FACTS, 10, (0, 1), cells, {"MCF": {}, "DT-MCF": {}})
    )
    assert sooner is not None
    assert sooner.outcome == "held"
    assert sooner.evidence == "seconds saved +20.00 (+20.00 to +20.00), 2 seeds."
    never = CatchesUp("MCF", "DT-MCF").assess(
        BenchmarkResults(FACTS, 10, (0, 1), cells, {"MCF": {}, "DT-MCF": {}})
    )
    assert never is not None
    assert "1 of 2 seeds never reach it" in never.evidence
    assert never.outcome != "held"
    level = CatchesUp("DT-MCF", "MCF").assess(here)
    assert level is not None
    assert level.outcome == "undecided"


def test_seeds_that_are_missing_and_columns_that_have_none() -> None:
    here = found({"Pop": (0.25,), "MCF": (0.3, 0.4), "NCF": (0.5, 0.5)})
    measure = FACTS.measures(10)[1]
    only, mean = here.mean("Pop", measure), here.mean("MCF", measure)
    assert (only.mean, only.n, only.width) == (25.0, 1, 0.0)
    assert (mean.mean, mean.high - mean.mean) == pytest.approx((35.0, 10 / 2**0.5))
    assert here.seeds_of("Pop") == [0, 1]
    short = BenchmarkResults(
        FACTS, 10, (0, 1), {k: v for k, v in here.runs.items() if k != ("NCF", 1)}, here.settings
    )
    assert short.common_seeds(["MCF", "NCF"]) == [0]
    assert short.difference("NCF", "MCF", measure).mean == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("values", "outcome"),
    [((0.01, 0.02), "held"), ((0.3, 0.31), "did not hold"), ((-0.3, 0.3), "undecided")],
)
def test_nothing_to_see_is_a_claim_too(
    values: tuple[float, ...], outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = iter(values)
    monkeypatch.setitem(STATISTICS, "rising elsewhere", lambda pairs: next(status))
    monkeypatch.setattr(BenchmarkResults, "pairs", lambda self, column: [None, None])
    here = found({"DT-MCF": (0.5, 0.5)})
    verdict = WeightsAre("there is no such pattern", "DT-MCF", "rising elsewhere", within=0.1).assess(here)
    assert verdict is not None
    assert verdict.outcome == outcome


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1))
def test_a_claim_holds_only_if_nothing_is_against_it(signs: list[int]) -> None:
    outcome = outcome_of(signs)
    assert (outcome in ("held", "held in part")) == (1 in signs and -1 not in signs)
    assert (outcome == "did not hold") == (-1 in signs and 1 not in signs)
    assert (outcome == "undecided") == (set(signs) == {0})


def test_an_interval_over_seeds() -> None:
    estimate = t_interval([1.0, 2.0, 3.0])
    assert estimate.mean == 2
    assert estimate.high - estimate.mean == pytest.approx(4.302653 / 3**0.5, rel=1e-6)
    assert (estimate.n, estimate.how) == (3, "95 % t-interval over seeds")
    assert sign_of(estimate) == 0
    assert sign_of(t_interval([1.0, 1.1])) == 1


def test_what_the_paper_says_of_weights_in_numbers() -> None:
    n = 400
    taken, shown = np.arange(n) % 4 == 0, np.arange(n) % 2 == 0
    scores = np.linspace(-1, 1, n, dtype=np.float32)
    weights = np.where(taken, 1.5, 0.5) + np.where(shown, 0.2 * scores, 0.0)
    exposure = np.linspace(1, 0, n, dtype=np.float32)
    pairs = StoredPairs(taken, np.ones(n, bool), shown, scores, weights.astype(np.float32), exposure)
    assert more_on_positives(pairs) == pytest.approx(1.0, abs=0.02)
    assert more_on_shown(pairs) > 0
    assert rising_with_score(pairs) > 0.4
    assert rising_elsewhere(pairs.where(~pairs.interacted)) == 0  # constant there
    assert rising_with_exposure(pairs) < 0
    assert even_on_positives(pairs) == pytest.approx(rising_with_exposure(pairs) + 1)
    only_negatives = replace(pairs, reweight_mask=~taken, exposure=None)
    assert more_on_positives(only_negatives) is None  # w does not weigh them, so it cannot prefer them
    assert rising_with_exposure(only_negatives) is None
