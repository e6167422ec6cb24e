"""A diagnosis as a whole: contract, truth within its bounds, what it warns of."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import towpath
from fixed_scorers import Fixed
from impressions import click_chances, impressions_split
from towpath.diagnostics.diagnose import MOST_POSITIONS, HeldOut, diagnose, held_out_of
from towpath.diagnostics.distances import Pairs
from towpath.errors import DataError
from towpath.rng import Rng

SPLIT = impressions_split()
CHANCES = click_chances(120, 30)


def scorer_of(scores: np.ndarray) -> Fixed:
    return Fixed(torch.tensor(scores, dtype=torch.float32))


def noisy(seed: int = 0) -> Fixed:
    return scorer_of(CHANCES + 0.5 * Rng(seed).numpy("noise").random(CHANCES.shape))


def test_the_bounds_hold_the_true_clicks_of_the_lists() -> None:
    found = diagnose(noisy(), SPLIT, k=5)
    lists = found.evidence.lists
    users = np.flatnonzero(SPLIT.train.histories.lengths > 0)
    truth = float(np.take_along_axis(CHANCES[users], lists, axis=1).mean())
    low, high = found.evidence.expected_clicks()
    assert low.low <= truth <= high.high
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
    assert (found.ess_share, found.overlap, found.bounds) == (None, None, ())
    assert found.evidence.expected_clicks()[1].mean == pytest.approx(1)


def test_what_nobody_was_shown_is_said() -> None:
    """A catalogue of which the last ten items were never shown, recommended to everyone."""
    held = held_out_of(SPLIT).rows
    train = SPLIT.train.where(SPLIT.train.items < 20)
    few = replace(train, impressions=SPLIT.train.rows.where(SPLIT.train.rows.items < 20))
    last = scorer_of(np.tile(np.arange(30.0), (120, 1)))
    split = replace(SPLIT, train=few)
    found = diagnose(last, split, k=5, held_out=HeldOut(held.where(held.items < 20), "a test"))
    assert found.evidence.shares()["never_shown"] == 1
    low, high = found.evidence.expected_clicks()
    assert (low.mean, high.mean) == (0, 1)
    assert any("only showing them can tell" in warning for warning in found.warnings)
    assert found.overlap is not None
    assert found.overlap.never_logged_mass == pytest.approx(1)
    assert found.bounds == ()


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
    train = SPLIT.train
    weighted = Pairs(train.users, train.items, np.ones(len(train)))
    found = diagnose(noisy(), SPLIT, k=5, weighted=weighted).distances
    assert found.log_to_weighted is not None
    assert found.weighted_to_recommended is not None
    assert found.log_to_weighted < found.weighted_to_recommended + found.log_to_itself


def test_the_same_call_gives_the_same_diagnosis() -> None:
    one, two = (json.dumps(diagnose(noisy(), SPLIT, k=5).to_json()) for _ in range(2))
    assert one == two


def test_without_held_out_rows_there_is_no_diagnosis() -> None:
    nothing = held_out_of(SPLIT).rows
    empty = nothing.where(np.zeros(len(nothing), dtype=np.bool_))
    with pytest.raises(DataError, match="not trained on"):
        diagnose(noisy(), SPLIT, held_out=HeldOut(empty, "nothing"))
