from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from small_impressions import small_log, small_world
from towpath.evaluation.evaluate import evaluate
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.factorization import Factorization
from towpath.rng import Rng
from towpath.transport.impressions.batches import Draws, LibraryBatches
from towpath.transport.impressions.held_out import HeldOut, hold_out
from towpath.transport.impressions.members import ALONE, CLICK, HEADS, JOINT, LIKENESS, RELEVANCE, members_of
from towpath.transport.impressions.settings import LibrarySettings

LOG = small_log()
FAST = {"library_epochs": 3, "member_dim": 4, "embedding_dim": 6}


def test_batches_hold_every_impression_once_and_draws_that_are_no_positives() -> None:
    log, draws = LOG.train.rows, Draws(8, 3.0)
    clicked, shown = set(LOG.train.pair_keys().tolist()), set(log.pair_keys().tolist())
    seen = []
    for pairs, block in LibraryBatches(LOG.train, draws, 64).epoch(1, Rng(0), None):
        seen += (pairs.users * LOG.train.n_items + pairs.items[:, 0]).tolist()
        torch.testing.assert_close(pairs.weights.sum((0, 1)) + block.weights.sum((0, 2)), torch.ones(HEADS))
        assert pairs.targets[:, 0, RELEVANCE].equal(pairs.weights[:, 0, CLICK].gt(0).float())
        assert block.weights[:, RELEVANCE].eq(0).all()  # draws say nothing about a click once shown
        keys = block.users * LOG.train.n_items + block.items[:, None]
        for head, closed in ((LIKENESS, shown), (CLICK, clicked)):
            open_pairs = torch.tensor([[key not in closed for key in row] for row in keys.tolist()])
            counts = pairs.weights[:, 0, head].new_zeros(LOG.train.n_users)
            counts.index_add_(0, pairs.users, pairs.weights[:, 0, head])  # draws follow their impressions
            wanted = open_pairs * counts[block.users] * draws.weight / draws.items
            torch.testing.assert_close(block.weights[:, head], wanted)
    assert sorted(seen) == sorted(log.pair_keys().tolist())


def test_the_first_half_never_hears_of_the_held_out_impressions() -> None:
    held = HeldOut(LOG.train.rows, 0.3, Rng(0))
    keys = {(int(u), int(i)) for u, i in zip(held.users, held.items, strict=True)}
    for pairs, block in LibraryBatches(LOG.train, Draws(8, 3.0), 64).epoch(1, Rng(0), held):
        assert not keys & set(zip(pairs.users.tolist(), pairs.items[:, 0].tolist(), strict=True))
        for item, user in (block.weights.sum(1) > 0).nonzero().tolist():
            assert (int(block.users[user]), int(block.items[item])) not in keys


def test_heads_alone_have_the_smallest_penalty() -> None:
    members = members_of(LibrarySettings())
    assert len(members) == 2 * len(JOINT) + len(ALONE)
    assert {member.l2 for member in members if len(member.heads) == 1} == {0.02}


def test_requests_are_held_out_as_a_whole() -> None:
    requests = np.arange(len(LOG.train.rows)) // 4
    held = hold_out(replace(LOG.train.rows, requests=requests), 0.3, Rng(0))
    by_request = [set(held[requests == r].tolist()) for r in np.unique(requests)]
    assert all(len(kinds) == 1 for kinds in by_request)
    assert 0.15 < held.mean() < 0.45


def test_a_fit_is_a_normal_factorisation_and_the_last_epoch_is_kept() -> None:
    found = fit(LOG, Recipe("mf", "transport", FAST))
    assert type(found.scorer) is Factorization
    assert found.best_epoch == len(found.history) == 6  # three without the held-out impressions
    assert 0 <= found.history[-1]["rank_loss"] < 1
    again, other = (fit(LOG, Recipe("mf", "transport", FAST, seed)) for seed in (0, 1))
    assert torch.equal(found.scorer.items.weight, again.scorer.items.weight)
    assert not torch.equal(found.scorer.items.weight, other.scorer.items.weight)


@pytest.mark.parametrize("done", [2, 3, 4])
def test_a_resumed_fit_ends_where_an_undisturbed_one_does(tmp_path: Path, done: int) -> None:
    whole = fit(LOG, Recipe("mf", "transport", FAST))
    stopped: list[float] = []

    def stop(row: dict[str, float]) -> None:
        stopped.append(row["epoch"])
        if len(stopped) == done:
            raise KeyboardInterrupt

    checkpoint = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        fit(LOG, Recipe("mf", "transport", FAST), checkpoint=checkpoint, watch=stop)
    resumed = fit(LOG, Recipe("mf", "transport", FAST), checkpoint=checkpoint)
    assert torch.equal(whole.scorer.users.weight, resumed.scorer.users.weight)


def test_the_penalty_goes_from_shown_only_to_imitation() -> None:
    def seen(penalty: float) -> float:
        found = fit(LOG, Recipe("mf", "transport", FAST | {"penalty": penalty, "library_epochs": 15}))
        return evaluate(found.scorer, LOG, protocol="truth", relevance=small_world().relevance).overall[
            "shown_share"
        ]

    assert {member.prices for member in members_of(LibrarySettings(penalty=0.0))} == {(0.0, 1.0, 0.0)}
    assert seen(0.0) < seen(0.1) < seen(20.0)


def test_a_distance_finds_its_penalty() -> None:
    def last(distance: float) -> dict[str, float]:
        return fit(
            LOG, Recipe("mf", "transport", FAST | {"target_distance": distance, "library_epochs": 15})
        ).history[-1]

    assert last(100.0)["penalty"] == 0 < last(0.0)["penalty"]


def test_clicks_alone_play_the_game() -> None:
    settings = {"solver": "game", "epochs": 3, "embedding_dim": 6}
    assert "penalty" in fit(LOG, Recipe("mf", "transport", settings)).history[-1]


def test_true_clicks_are_more_than_those_of_plain_training_and_of_shown_pairs() -> None:
    gains = []
    for seed in (1, 2):
        sizes = {"users": 300, "items": 150, "shown": 30, "exploration": 0.1, "seed": seed}
        world, split = small_world(**sizes), small_log(**sizes)
        rels = {
            method: evaluate(
                fit(split, Recipe("mf", method)).scorer, split, protocol="truth", relevance=world.relevance
            ).metrics()["rel"]
            for method in ("plain", "shown", "transport")
        }
        assert rels["transport"] > 1.2 * rels["shown"]
        gains.append(rels["transport"] / rels["plain"])
    assert np.mean(gains) > 1.05
