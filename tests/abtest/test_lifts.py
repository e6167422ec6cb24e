import math

import numpy as np
import pytest

from towpath.abtest.cuped import adjusted_ratios
from towpath.abtest.lifts import lifts_at
from towpath.abtest.metrics import METRICS, metrics_named
from towpath.abtest.sequences import Sequence, ratio_of
from towpath.abtest.simulated import Visitors, simulate_experiment
from towpath.abtest.totals import COLUMNS, DailyTotals, UserTotals
from towpath.errors import ConfigError
from towpath.rng import Rng


def small_totals() -> DailyTotals:
    """Two users of one arm, one of the other; user 0 comes on both days."""
    rows = {
        "visits": [1, 2, 1, 1],
        "impressions": [10, 20, 10, 10],
        "clicks": [1, 0, 2, 3],
        "orders": [0, 2, 1, 0],
        "units": [0, 5, 1, 0],
        "value": [0, 50, 7, 0],
    }
    did = UserTotals(*(np.array(rows[name], dtype=float) for name in COLUMNS))
    return DailyTotals(("a", "b"), np.array([0, 0, 1]), np.array([0, 1, 0, 2]), np.array([5, 5, 6, 6]), did)


def test_looks_add_up_day_by_day():
    first, second = small_totals().looks()
    assert (first.day, second.day) == (5, 6)
    assert first.counts() == (2, 0)
    assert second.counts() == (2, 1)
    assert first.totals.value.tolist() == [0, 50]
    assert second.totals.value.tolist() == [7, 50, 0]
    assert second.totals.visits.tolist() == [2, 2, 1]
    last = small_totals().last_look()
    assert last.totals.value.tolist() == second.totals.value.tolist()
    assert last.day == 6
    assert small_totals().on_day(6).totals.value.tolist() == [7, 0]


def test_metrics_by_hand():
    totals = small_totals().last_look().totals

    def of(name):
        metric = METRICS[name]
        return metric.numerator(totals).sum() / metric.denominator(totals).sum()

    assert of("gmv_per_visitor") == 57 / 3
    assert of("units_per_order") == 6 / 3
    assert of("orders_per_visit") == 3 / 5
    assert of("converted_visitors") == 2 / 3
    assert of("click_rate") == 6 / 50


def test_metrics_are_found_by_name():
    assert [m.name for m in metrics_named(["click_rate", "click_rate"])] == ["click_rate"]
    assert len(metrics_named(None)) == 5
    with pytest.raises(ConfigError, match="did you mean 'click_rate'"):
        metrics_named(["clickrate"])


def test_the_past_takes_noise_away_and_moves_nothing_on_average():
    differences, widths, plain_widths = [], [], []
    for seed in range(200):
        draw = np.random.default_rng(seed)
        past = [draw.normal(size=300) for _ in range(2)]
        sums = [(past_of_arm + 0.3 * draw.normal(size=300) + 5, np.ones(300)) for past_of_arm in past]
        control, treated = adjusted_ratios(sums, past)
        differences.append(treated.value - control.value)
        widths.append(math.sqrt(treated.variance + control.variance))
        plain_widths.append(math.sqrt(sum(ratio_of(*pair).variance for pair in sums)))
    # The past explains all but .3^2 / 1.09 of the variance.
    assert np.mean(widths) / np.mean(plain_widths) == pytest.approx(0.3 / math.sqrt(1.09), rel=0.02)
    assert np.std(differences) == pytest.approx(np.mean(widths), rel=0.15)
    assert abs(np.mean(differences)) < 4 * np.mean(widths) / math.sqrt(200)


def test_a_past_that_says_nothing_changes_nothing():
    sums = [(np.arange(40.0), np.ones(40)), (np.arange(40.0) * 2, np.ones(40))]
    assert adjusted_ratios(sums, [np.zeros(40)] * 2) == [ratio_of(*pair) for pair in sums]


def test_an_experiment_without_effect_hardly_ever_shows_one():
    """A hundred of the two thousand runs of benchmarks/aa_runs.py; 5 % may err, about 1.5 % do."""
    wrong, visitors = dict.fromkeys(METRICS, 0), Visitors(users=800, days=14)
    for seed in range(100):
        ever = set()
        for look in simulate_experiment(visitors, (0.0, 0.0), Rng(seed)).looks():
            for name, metric in METRICS.items():
                (lift,) = lifts_at(look, metric, "control", Sequence())
                if not (lift.absolute.covers(0) and lift.relative.covers(0)):
                    ever.add(name)
        for name in ever:
            wrong[name] += 1
    assert max(wrong.values()) <= 5


def test_an_effect_is_found():
    look = simulate_experiment(Visitors(users=6_000), (0.0, 0.0, 0.6), Rng(0)).last_look()
    none, real = lifts_at(look, METRICS["orders_per_visit"], "control", Sequence())
    assert none.p_holm > 0.05 > real.p_holm
    assert none.absolute.covers(0)
    assert real.relative.covers(0.6)
    assert not real.relative.covers(0)


def test_the_last_look_agrees_with_tea_tasting():
    pandas_free = pytest.importorskip("pyarrow")
    tea_tasting = pytest.importorskip("tea_tasting")
    look = simulate_experiment(Visitors(users=3_000), (0.0, 0.2), Rng(1)).last_look()
    columns = {name: getattr(look.totals, name) for name in COLUMNS}
    table = pandas_free.table({"variant": look.arm_of, **columns})
    theirs = tea_tasting.Experiment(
        gmv_per_visitor=tea_tasting.Mean("value", use_t=False),
        orders_per_visit=tea_tasting.RatioOfMeans("orders", "visits", use_t=False),
        click_rate=tea_tasting.RatioOfMeans("clicks", "impressions", use_t=False),
    ).analyze(table, control=0)
    for name in ("gmv_per_visitor", "orders_per_visit", "click_rate"):
        (ours,) = lifts_at(look, METRICS[name], "control", Sequence())
        fixed = 1.959964 * ours.absolute.width / 2 / Sequence().multiplier(ours.absolute.n)
        low, high = theirs[name].effect_size_ci_lower, theirs[name].effect_size_ci_upper
        assert ours.absolute.mean == pytest.approx(theirs[name].effect_size)
        assert 2 * fixed == pytest.approx(high - low, rel=1e-3)
        assert ours.relative.mean == pytest.approx(theirs[name].rel_effect_size)
