import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from towpath.errors import ConfigError
from towpath.evaluation.comparison import compare
from towpath.evaluation.result import Evaluation
from towpath.rng import Rng


def evaluation(values, protocol: str = "full", coverage: float = 0.5) -> Evaluation:
    hits = np.asarray(values, dtype=np.float64)
    return Evaluation(protocol, "test", 10, np.arange(len(hits)), {"hit": hits}, {"coverage": coverage})


def test_rows_by_hand() -> None:
    runs = {"mf": [evaluation([1, 0], coverage=0.2), evaluation([1, 1], coverage=0.4)]}
    comparison = compare(runs, rng=Rng(0))
    hit, coverage = comparison.rows
    assert (hit.label, hit.protocol, hit.metric, hit.estimate.mean) == ("mf", "full", "hit", 0.75)
    assert_allclose([hit.sd, coverage.estimate.mean, coverage.sd], [np.sqrt(0.125), 0.3, np.sqrt(0.02)])
    assert comparison.differences == ()
    assert (comparison.users, comparison.seeds) == (2, 2)


def test_one_seed_has_no_deviation() -> None:
    assert compare({"mf": [evaluation([1, 0])]}, rng=Rng(0)).rows[0].sd is None


def test_a_constant_difference_has_an_interval_of_no_width() -> None:
    base = np.random.default_rng(0).random(50)
    runs = {"b": [evaluation(base)] * 3, "a": [evaluation(base + 0.25)] * 3}
    (difference,) = compare(runs, rng=Rng(0)).differences
    assert (difference.a, difference.b) == ("a", "b")
    gap = difference.estimate
    assert_allclose([gap.mean, gap.low, gap.high], 0.25)
    assert (gap.n, gap.how) == (50, "95 % bootstrap over users and seeds, 2,000 resamples")


def test_the_interval_over_users_matches_its_theory() -> None:
    gaps = np.random.default_rng(1).normal(0.1, 1, size=4000)
    runs = {"b": [evaluation(np.zeros(4000))], "a": [evaluation(gaps)]}
    (difference,) = compare(runs, resamples=4000, rng=Rng(0)).differences
    gap = difference.estimate
    half = 1.96 * gaps.std() / np.sqrt(4000)
    assert_allclose(gap.mean, gaps.mean())
    assert_allclose([gap.low, gap.high], gaps.mean() + np.array([-half, half]), atol=0.1 * half)


def test_the_interval_covers_seeds_too() -> None:
    shifts = np.random.default_rng(2).normal(0, 1, size=30)
    runs = {"b": [evaluation(np.zeros(20))] * 30, "a": [evaluation(np.full(20, s)) for s in shifts]}
    (difference,) = compare(runs, resamples=4000, rng=Rng(0)).differences
    gap = difference.estimate
    half = 1.96 * shifts.std() / np.sqrt(30)
    assert_allclose([gap.low, gap.high], shifts.mean() + np.array([-half, half]), atol=0.15 * half)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng, inside = np.random.default_rng(3), 0
    for trial in range(200):
        gaps = 0.3 + rng.normal(size=(12, 1)) * 0.2 + rng.normal(size=(1, 80))
        runs = {"b": [evaluation(np.zeros(80))] * 12, "a": [evaluation(row) for row in gaps]}
        (difference,) = compare(runs, resamples=400, rng=Rng(trial)).differences
        inside += difference.estimate.covers(0.3)
    assert 0.88 < inside / 200 < 0.99


def test_the_same_generator_gives_the_same_interval_whatever_fits_into_memory(monkeypatch) -> None:
    values = np.random.default_rng(4).random((2, 3, 40))
    runs = {label: [evaluation(row) for row in rows] for label, rows in zip("ba", values, strict=True)}
    whole = compare(runs, rng=Rng(0)).differences[0].estimate
    monkeypatch.setattr("towpath.evaluation.comparison._COUNTS_AT_ONCE", 100)
    parts = compare(runs, rng=Rng(0)).differences[0].estimate
    assert_allclose([parts.low, parts.high], [whole.low, whole.high], rtol=1e-12)


def test_several_protocols_are_kept_apart() -> None:
    runs = {
        label: [evaluation([0, value], protocol) for protocol in ("full", "sampled") for _ in range(2)]
        for label, value in (("b", 0), ("a", 1))
    }
    comparison = compare(runs, rng=Rng(0))
    assert [(d.protocol, d.estimate.mean) for d in comparison.differences] == [
        ("full", 0.5),
        ("sampled", 0.5),
    ]
    told = json.loads(json.dumps(comparison.to_json()))
    assert told["differences"][0].keys() == {
        "a", "b", "protocol", "metric", "mean", "low", "high", "n", "how",
    }  # fmt: skip
    assert told["rows"][0].keys() == {"label", "protocol", "metric", "mean", "sd", "n", "how"}


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ([replace(evaluation([1, 0]), users=np.array([0, 2]))], "2 and 2 users, not the same"),
        ([evaluation([1, 0, 1])], "2 and 3 users"),
        ([replace(evaluation([1, 0]), k=5)], "test at k = 10 and test at k = 5"),
        ([replace(evaluation([1, 0]), on="validation")], "test at k = 10 and validation at k = 10"),
        ([evaluation([1, 0])] * 2, "1 and 2 evaluations under full"),
        ([evaluation([1, 0], "sampled")], "1 and 0 evaluations"),
        ([replace(evaluation([1, 0]), per_user={"ndcg": np.zeros(2)})], "same metrics"),
    ],
)
def test_what_cannot_be_paired_is_refused(other, sentence) -> None:
    with pytest.raises(ConfigError, match=sentence):
        compare({"b": [evaluation([1, 0])], "a": other}, rng=Rng(0))


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one evaluation"):
        compare({}, rng=Rng(0))
