"""Impressions that were shown at random: they have the last word on the weights, where there are enough."""

from dataclasses import replace

import numpy as np
import pytest

from towpath.data.interactions import Interactions
from towpath.data.policies import shown_at_random
from towpath.data.split import split_leave_last_two
from towpath.data.sql import NO_POLICY, RANDOM_POLICY
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.rng import Rng
from towpath.transport.impressions.held_out import HeldOut
from towpath.transport.impressions.settings import LibrarySettings
from towpath.transport.impressions.stack import RandomPart, stack_heads
from towpath.transport.impressions.targets import likeness_rows
from towpath.worlds.latent import LatentWorld, make_latent_world

WORLD = make_latent_world(
    LatentWorld(
        users=60,
        items=60,
        shown_per_user=40,
        exploration=0.75,
        mean_relevance=0.4,
        logger_taste=0.3,
        random_named=True,
    ),
    Rng(0),
)
LOG = split_leave_last_two(WORLD.log)
FAST = {"library_epochs": 1, "member_dim": 4}


def held_out(log: Interactions, which: str = "auto") -> HeldOut:
    return HeldOut(log, 0.5, Rng(0), which=which)  # type: ignore[arg-type]  # one of two names


def test_random_rows_of_a_world_are_those_that_were_not_certain() -> None:
    log = WORLD.exposures
    assert log.policies is not None
    assert log.propensities is not None
    assert set(log.policies.tolist()) == {NO_POLICY, RANDOM_POLICY}
    assert np.array_equal(shown_at_random(log), log.propensities < 1)
    assert shown_at_random(log).mean() == 0.75


def test_held_out_impressions_that_were_random_are_told_apart() -> None:
    log = LOG.train.rows
    held = held_out(log)
    assert held.random is not None
    random = shown_at_random(log)[held.rows]
    assert held.random.rows.tolist() == np.flatnonzero(random).tolist()
    assert held.n_random == random.sum() == len(held.random.rows)
    assert "last word" in held.remark()
    assert held_out(log, "all").random is None
    assert "alike" in held_out(log, "all").remark()


def test_rows_weigh_by_their_chances_of_being_shown() -> None:
    log = LOG.train.rows
    chances = np.where(log.items % 2 == 0, 0.1, 0.3).astype(np.float32)
    held = held_out(replace(log, propensities=chances))
    assert held.random is not None
    assert held.random.weights is not None
    even = log.items[held.rows[held.random.rows]] % 2 == 0
    assert np.allclose(held.random.weights[even].mean() / held.random.weights[~even].mean(), 3)
    assert held.random.weights.mean() == pytest.approx(1)
    chances[0::3] = np.nan
    for unknown in (None, chances):
        part = held_out(replace(log, propensities=unknown)).random
        assert part is not None
        assert part.weights is None


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_too_few_of_them_or_no_others_decide_nothing(share: float) -> None:
    log = LOG.train.rows
    random = np.random.default_rng(0).random(len(log)) < share
    named = replace(log, policies=np.where(random, RANDOM_POLICY, NO_POLICY).astype(np.int32))
    held = held_out(named)
    assert held.n_random > 0
    assert held.random is None


def opposite() -> tuple[np.ndarray, np.ndarray]:
    """A head that is right about the first 400 pairs and wrong about the others."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((800, 1))
    truth = np.where(np.arange(800) < 400, 1.0, -1.0)[:, None] * scores
    return scores, (rng.random(800) < 1 / (1 + np.exp(-3 * truth[:, 0]))).astype(np.float64)


def test_the_random_part_has_the_last_word_and_few_of_it_change_little() -> None:
    scores, clicks = opposite()
    of_all = stack_heads(scores, clicks, 10.0).weights[0]
    wrong = stack_heads(scores, clicks, 10.0, RandomPart(np.arange(400, 800))).weights[0]
    few = stack_heads(scores, clicks, 10.0, RandomPart(np.arange(400, 408))).weights[0]
    assert abs(of_all) < 0.3
    assert wrong < -1
    assert wrong < few < of_all + 1e-9
    assert abs(few - of_all) < 0.5 * abs(wrong - of_all)


def test_pairs_that_count_nothing_change_nothing() -> None:
    scores, clicks = opposite()
    weights = np.where(np.arange(800) < 400, 0.0, 2.0)
    by_weights = stack_heads(scores, clicks, 1e-6, RandomPart(np.arange(800), weights)).weights
    by_rows = stack_heads(scores, clicks, 1e-6, RandomPart(np.arange(400, 800))).weights
    assert np.allclose(by_weights, by_rows, rtol=1e-3)


def test_what_was_random_does_not_teach_likeness() -> None:
    log = LOG.train.rows
    rows = likeness_rows(log, LibrarySettings()).numpy() > 0
    assert np.array_equal(rows, ~shown_at_random(log))
    assert likeness_rows(log, LibrarySettings(likeness_rows="all")).all()


def test_a_fit_says_what_weighed_the_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towpath.transport.impressions.held_out._ENOUGH_RANDOM", 5)
    found, alike = (
        fit(LOG, Recipe("mf", "transport", {**FAST, "stack_rows": rows})) for rows in ("auto", "all")
    )
    assert found.history[-1]["held_out_random"] > 0
    assert alike.history[-1]["held_out_random"] == 0
    assert any("last word" in remark for remark in found.scorer.remarks)
    assert any("alike" in remark for remark in alike.scorer.remarks)
    unnamed = split_leave_last_two(replace(WORLD.exposures, policies=None).positives)
    assert "held_out_random" not in fit(unnamed, Recipe("mf", "transport", FAST)).history[-1]
