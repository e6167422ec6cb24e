"""A diagnosis as a whole: contract, truth within its bounds, what it warns of."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import towpath
from fixed_scorers import Fixed
from impressions import click_chances, impressions_log, impressions_split
from towpath.data.joining import join
from towpath.data.split import split_leave_last_two
from towpath.diagnostics import critic
from towpath.diagnostics.diagnose import Players, diagnose
from towpath.diagnostics.list_overlap import MOST_POSITIONS
from towpath.diagnostics.log_view import HeldOut, held_out_of
from towpath.errors import DataError
from towpath.rng import Rng
from towpath.training.weighed_pairs import WeighedPairs

SPLIT = impressions_split()
CHANCES = click_chances(120, 30)
# What a game may have learned: weights of one, scores of zero, and a critic that looks at the item.
POSITIVES = len(SPLIT.train)
WEIGHED = WeighedPairs(
    SPLIT.train.users.astype(np.int64), SPLIT.train.items.astype(np.int64),
    np.ones(POSITIVES, dtype=np.bool_), np.ones(POSITIVES, dtype=np.bool_),
    np.zeros(POSITIVES), np.zeros(POSITIVES), np.ones(POSITIVES),
)  # fmt: skip
PLAYERS = Players(WEIGHED, lambda users, items: items / 10)


@pytest.fixture(autouse=True)
def hasty_critic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Critics of few steps, as most tests do not look at them."""
    monkeypatch.setattr(critic, "STEPS", 5)


def scorer_of(scores: np.ndarray) -> Fixed:
    return Fixed(torch.tensor(scores, dtype=torch.float32))


def noisy(seed: int = 0) -> Fixed:
    return scorer_of(CHANCES + 0.5 * Rng(seed).numpy("noise").random(CHANCES.shape))


def test_the_bounds_hold_the_true_clicks_of_the_lists() -> None:
    found = diagnose(noisy(), SPLIT, k=5)
    lists = found.evidence.lists
    users = np.flatnonzero(SPLIT.train.histories.lengths > 0)
    truth = float(np.take_along_axis(CHANCES[users], lists, axis=1).mean())
    low, high = found.evidence.expected_clicks().sure
    assert low <= truth <= high
    assert sum(found.evidence.shares().values()) == pytest.approx(1)
    assert found.evidence.shares()["shown_to_user"] > 0.3


def test_json_has_the_contract_and_is_json() -> None:
    found = json.loads(json.dumps(diagnose(noisy(), SPLIT, k=5).to_json()))
    assert set(found["evidence"]) == {"shown_to_user", "similar_users", "item_known", "never_shown"}
    assert 0 <= found["expected_clicks"]["low"] <= found["expected_clicks"]["high"] <= 1
    assert 0 < found["ess_share"] < 1
    assert isinstance(found["warnings"], list)
    assert {bound["kind"] for bound in found["bounds"]} == {"order only"}
    assert sum(sum(row.values()) for row in found["segments"].values()) == found["slots"]


def test_clicks_alone_are_said_to_be_clicks_alone() -> None:
    parts = (replace(part, impressions=None) for part in (SPLIT.train, SPLIT.validation, SPLIT.test))
    clicks = towpath.Split(*parts, "by hand")
    found = towpath.diagnose(noisy(), clicks, k=5)
    assert not found.complete
    assert found.warnings[0].startswith("The log holds clicks alone")
    assert (found.ess_share, found.overlap, found.bounds.bounds) == (None, None, ())
    assert [sentence.split(" need")[0] for sentence in found.bounds.left_out] == [
        "Importance weighting and PAC-Bayes", "Theorem 1", "Theorem 2",
    ]  # fmt: skip
    assert found.evidence.expected_clicks().high == pytest.approx(1)


def test_what_nobody_was_shown_is_said() -> None:
    """A catalogue of which the last ten items were never shown, recommended to everyone."""
    held = held_out_of(SPLIT).rows
    train = SPLIT.train.where(SPLIT.train.items < 20)
    few = replace(train, impressions=SPLIT.train.rows.where(SPLIT.train.rows.items < 20))
    last = scorer_of(np.tile(np.arange(30.0), (120, 1)))
    split = replace(SPLIT, train=few)
    found = diagnose(last, split, k=5, held_out=HeldOut(held.where(held.items < 20), "a test"))
    assert found.evidence.shares()["never_shown"] == 1
    clicks = found.evidence.expected_clicks()
    assert (clicks.low, clicks.high) == (0, 1)
    assert any("only showing them can tell" in warning for warning in found.warnings)
    assert found.overlap is not None
    assert found.overlap.never_logged_mass == pytest.approx(1)
    assert [bound.name for bound in found.bounds.bounds] == ["Theorem 2"]


def test_positions_of_the_log_are_those_of_the_list() -> None:
    rows = held_out_of(SPLIT).rows
    placed = replace(rows, positions=(np.arange(len(rows)) % 3 + 1).astype(np.int32))
    far = replace(rows, positions=np.full(len(rows), MOST_POSITIONS + 1, dtype=np.int32))
    one, three, none = (
        diagnose(noisy(), SPLIT, k=1, held_out=HeldOut(r, "a test")).overlap for r in (rows, placed, far)
    )
    assert one is not None
    assert three is not None
    assert one.ess_share != three.ess_share
    assert none == one


def test_distances_tell_a_shift_from_noise() -> None:
    same, far = (
        diagnose(scorer_of(scores), SPLIT, k=5).distances
        for scores in (Rng(1).numpy("s").random((120, 30)), np.tile(np.arange(30.0), (120, 1)))
    )
    assert same.log_to_recommended < far.log_to_recommended
    assert far.log_to_recommended > 1.3 * far.log_to_itself
    found = diagnose(noisy(), SPLIT, k=5, players=PLAYERS).distances
    assert found.log_to_weighted is not None
    assert far.own_critic is None
    assert found.weighted_to_recommended is not None
    assert found.log_to_weighted < found.weighted_to_recommended + found.log_to_itself


def test_critics_stand_next_to_every_exact_distance_and_never_exceed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(critic, "STEPS", 300)
    found = diagnose(noisy(), SPLIT, k=5, players=PLAYERS).distances
    assert found.own_critic is not None
    for name, seen in found.critic.items():
        exact = getattr(found, name)
        assert 0.3 * exact < seen <= exact, name
        assert abs(found.own_critic[name]) <= exact
    assert set(found.critic) == set(found.own_critic)


def test_bounds_have_their_terms_and_say_what_they_are() -> None:
    learned = {b.name: b for b in diagnose(noisy(), SPLIT, k=5, players=PLAYERS).bounds.bounds}
    logged = {b.name: b for b in diagnose(noisy(), SPLIT, k=5).bounds.bounds}
    assert set(learned) == set(logged) == {
        "importance weighting", "empirical Bernstein", "PAC-Bayes", "Proposition 1, lower", "Theorem 1",
        "Theorem 2",
    }  # fmt: skip
    assert set(learned["Theorem 1"].terms) == {"linear", "C_n"}
    assert set(learned["Theorem 2"].terms) == {"transported risk", "deviation", "multiplier"}
    assert "learned weights" in learned["Theorem 1"].says
    assert "importance weights" in logged["Theorem 1"].says
    # Weights of one and logistic losses at score zero.
    assert learned["Theorem 1"].terms["C_n"] == pytest.approx(
        np.sqrt(18 * np.log(2) ** 2 * np.log(80) / len(SPLIT.train))
    )


def test_bounds_are_explicit_where_the_log_has_one_propensity() -> None:
    """Every item alike: the largest weight and the divergence are 1 / (k p) = 30 / 5."""
    rows = held_out_of(SPLIT).rows
    even = replace(rows, propensities=np.full(len(rows), 1 / 30, dtype=np.float32))
    found = {b.name: b for b in diagnose(noisy(), SPLIT, k=5, held_out=HeldOut(even, "a")).bounds.bounds}
    kinds = {name: bound.kind for name, bound in found.items() if name[:7] not in ("Theorem", "Proposi")}
    assert set(kinds.values()) == {"explicit"}
    assert found["importance weighting"].terms["divergence"] == pytest.approx(
        np.sqrt(2 * 6 * np.log(20) / len(rows)), rel=1e-5
    )


def test_items_without_evidence_are_named_most_first() -> None:
    last = scorer_of(np.tile(np.arange(30.0), (120, 1)))
    held = held_out_of(SPLIT).rows
    found = diagnose(last, SPLIT, k=5, held_out=HeldOut(held.where(held.items < 20), "a test"))
    counts = [item.without_evidence for item in found.items]
    assert counts == sorted(counts, reverse=True)
    assert {item.item for item in found.items} <= {f"i{n}" for n in range(10, 30)}
    assert sum(counts) == sum(found.by_segment[:, 2:].sum(axis=1))


def test_the_same_call_gives_the_same_diagnosis() -> None:
    one, two = (json.dumps(diagnose(noisy(), SPLIT, k=5).to_json()) for _ in range(2))
    assert one == two


def test_without_held_out_rows_there_is_no_diagnosis() -> None:
    nothing = held_out_of(SPLIT).rows
    empty = nothing.where(np.zeros(len(nothing), dtype=np.bool_))
    with pytest.raises(DataError, match="not trained on"):
        diagnose(noisy(), SPLIT, held_out=HeldOut(empty, "nothing"))


def test_rows_that_were_picked_by_their_clicks_have_no_rates() -> None:
    """Everyone's last two clicks: among rows that are there because of a click, clicks are everywhere."""
    picked = held_out_of(split_leave_last_two(impressions_log()))
    assert picked.by_clicks
    found = diagnose(noisy(), SPLIT, k=5, held_out=picked)
    assert found.evidence.expected_clicks().to_json() == {
        "low": 0, "high": 1, "interval": [0, 1], "interval_if_similar_users_click_alike": [0, 1],
    }  # fmt: skip
    assert found.warnings[0].startswith("The held-out rows were picked by their clicks")
    assert found.evidence.shares()["shown_to_user"] > 0.05
    even = replace(picked.rows, propensities=np.full(len(picked.rows), 1 / 30, dtype=np.float32))
    bounds = diagnose(noisy(), SPLIT, k=5, held_out=replace(picked, rows=even)).bounds.bounds
    assert {bound.kind for bound in bounds} == {"order only"}


def test_users_that_are_held_out_because_of_later_clicks_are_not_counted() -> None:
    rows = join(SPLIT.validation, SPLIT.test).rows
    few = replace(SPLIT, train=SPLIT.train.where(SPLIT.train.users != rows.users[0]))
    kept = held_out_of(few)
    gone = int((rows.users == rows.users[0]).sum())
    assert len(kept.rows) == len(rows) - gone
    assert kept.remarks[0].startswith(f"{gone:,} of {len(rows):,} held-out rows are not counted")
    assert held_out_of(SPLIT).remarks == ()
    outside = replace(few, outside=("validation", "test"))
    assert len(held_out_of(outside).rows) == len(rows)


def test_missing_propensities_leave_out_what_rests_on_them() -> None:
    rows = held_out_of(SPLIT).rows
    holes = rows.propensities.copy()
    holes[[3, 5]] = np.nan
    found = diagnose(noisy(), SPLIT, k=5, held_out=HeldOut(replace(rows, propensities=holes), "a test"))
    assert (found.ess_share, found.overlap) == (None, None)
    assert found.remarks[0].startswith(f"2 of {len(rows):,} rows have no propensity")
    assert {bound.name for bound in found.bounds.bounds} == {"Theorem 2"}
