import json
import math

import numpy as np
import pytest

from towpath.abtest.experiment import run_experiment
from towpath.abtest.from_log import Assignment, Excluded, ExperimentLog
from towpath.abtest.metrics import METRICS, metrics_named
from towpath.abtest.page import experiment_page
from towpath.abtest.sequences import Sequence
from towpath.abtest.simulated import Visitors, simulate_experiment
from towpath.errors import ConfigError, DataError
from towpath.reports.page import to_html
from towpath.rng import Rng

SOME = Visitors(users=4_000, days=10)


def log_with(effects, visitors=SOME, shares=None):
    totals = simulate_experiment(visitors, effects, Rng(3))
    equal = (1 / len(effects),) * len(effects)
    return ExperimentLog(Assignment(totals.arms, shares or equal), totals, Excluded(0, 0, 0))


def run(effects, **options):
    return run_experiment(log_with(effects, **options), metrics_named(None), Sequence())


def test_the_json_is_what_machines_were_promised():
    told = json.loads(json.dumps(run((0.0, 1.5)).to_json()))
    assert told["arms"] == ["control", "variation 1"]
    assert [one["metric"] for one in told["metrics"]] == list(METRICS)
    for one in told["metrics"]:
        assert one["arm"] == "variation 1"
        assert one["against"] == "control"
        assert len(one["absolute"]) == len(one["relative"]) == 3
        assert one["absolute"][1] <= one["absolute"][0] <= one["absolute"][2]
        assert 0 <= one["p_always_valid"] <= 1
    assert len(told["daily"]) == 10
    assert told["srm"]["mismatch"] is False
    assert told["decides"] == "gmv_per_visitor"


def test_a_clear_winner_is_named_with_its_interval():
    found = run((0.0, 1.5))
    lift = found.lifts[0]
    low, high = 100 * lift.relative.low, 100 * lift.relative.high
    assert found.verdict.startswith(
        f"variation 1 earns {100 * lift.relative.mean:.1f} % more per visitor than control "
        f"({low:.1f} to {high:.1f})"
    )
    assert lift.relative.low > 0


def test_guardrails_that_fell_are_named():
    found = run((0.0, -0.7))
    assert "variation 1 earns" in found.verdict
    assert "% less per visitor" in found.verdict
    assert "variation 1's orders per visit fell (-" in found.verdict


def test_no_effect_is_said_to_be_none_yet():
    assert run((0.0, 0.0, 0.0)).verdict.startswith(
        "No arm can be told from control by GMV per visitor yet: variation 1 "
    )


def test_a_split_that_is_off_overrides_everything():
    found = run((0.0, 1.5), shares=(0.4, 0.6))
    assert found.verdict.startswith("Do not trust these lifts")
    assert found.split.mismatch


def test_without_orders_clicks_decide():
    log = log_with((0.0, 0.0))
    did = log.totals.did
    for column in (did.orders, did.units, did.value):
        column[:] = 0
    found = run_experiment(log, metrics_named(None), Sequence())
    assert found.decides == "click_rate"
    assert "click rate" in found.verdict
    assert math.isnan(found.lifts[0].relative.mean)
    assert "no upper bound" not in found.verdict


def test_looks_of_all_days_end_in_the_last_look():
    found = run((0.0, 0.3))
    assert found.days[-1].so_far == found.lifts[0].relative
    assert found.days[0].so_far.width > found.days[-1].so_far.width
    assert [day.day for day in found.days] == [str(np.datetime64(n, "D")) for n in range(10)]


def test_another_control_turns_the_lift_around():
    log = log_with((0.0, 1.5))
    there = run_experiment(log, metrics_named(None), Sequence())
    back = run_experiment(log, metrics_named(None), Sequence(), control="variation 1")
    assert back.lifts[0].absolute.mean == pytest.approx(-there.lifts[0].absolute.mean)
    with pytest.raises(ConfigError, match="no arm 'controll'"):
        run_experiment(log, metrics_named(None), Sequence(), control="controll")


def test_one_arm_is_no_experiment():
    with pytest.raises(DataError, match="needs two arms"):
        run((0.0,))


def test_the_page_has_the_papers_two_figures_and_stands_alone():
    html = to_html(experiment_page(run((0.0, 1.5, 0.0))))
    assert html.count("<svg") == 4  # daily and so far; the overall lifts of two arms
    assert "Daily lift of GMV per visitor" in html
    assert "Overall lifts" in html
    assert "<script" not in html
    few = to_html(experiment_page(run((0.0, 0.0), visitors=Visitors(users=20, days=2))))
    assert "too few users" in few
