"""What a model trained on the log has chosen to show teaches relevance, not likeness to the log."""

import numpy as np
import torch

from towpath.data.interactions import Interactions
from towpath.data.joining import join
from towpath.data.policies import with_policy, without_policy
from towpath.data.whole import all_for_training
from towpath.experiments.loop import first_clicks
from towpath.methods.recipe import Recipe
from towpath.methods.run import FixedEpochs, fit
from towpath.ranking.scoring import score_blocks
from towpath.rng import Rng
from towpath.transport.impressions.batches import Draws, LibraryBatches
from towpath.transport.impressions.members import CLICK, LIKENESS, RELEVANCE
from towpath.transport.impressions.settings import LibrarySettings
from towpath.transport.impressions.targets import likeness_rows
from towpath.worlds.latent import LatentWorld, make_latent_world

SETTINGS = {"library_epochs": 8}


def served_log(world, scores, rng):
    """The world's log, and five lists of ten for every user by these scores, clicked by relevance."""
    hidden = np.zeros(world.relevance.shape, dtype=bool)
    hidden[world.log.users, world.log.items] = True
    users, items, clicks = [], [], []
    for _ in range(5):
        lists = np.argsort(np.where(hidden, np.inf, -scores), axis=1)[:, :10]
        who = np.repeat(np.arange(len(scores)), 10)
        clicked = rng.random(len(who)) < world.relevance[who, lists.ravel()]
        users.append(who), items.append(lists.ravel()), clicks.append(clicked)
        hidden[who[clicked], lists.ravel()[clicked]] = True
    labels = np.concatenate(clicks)
    own = Interactions(
        users=np.concatenate(users).astype(np.int32),
        items=np.concatenate(items).astype(np.int32),
        user_ids=world.log.user_ids,
        item_ids=world.log.item_ids,
        times=world.exposures.times.max() + 1 + np.arange(len(labels)),
        values=labels.astype(np.float32),
        labels=labels,
    )
    return join(without_policy(world.exposures), with_policy(own, 0))


def scores_of(log, **settings):
    """All users' scores by transport trained on all of this log."""
    recipe = Recipe("mf", "transport", settings={**SETTINGS, **settings})
    found = fit(all_for_training(log.positives, "all"), recipe, fixed=FixedEpochs(16))
    blocks = score_blocks(found.scorer, np.arange(log.n_users), first_clicks(log).histories, hide="nothing")
    return np.concatenate([block.numpy() for _, block in blocks])


def true_clicks(world, scores):
    """Expected clicks on ten of the items that nobody had clicked before the model was served."""
    hidden = np.zeros(world.relevance.shape, dtype=bool)
    hidden[world.log.users, world.log.items] = True
    return float(world.relevance_of(np.argsort(np.where(hidden, np.inf, -scores), axis=1)[:, :10]).mean())


def test_a_model_is_better_for_what_it_has_shown_itself():
    settings = LatentWorld(users=250, items=200, shown_per_user=30)
    gains = []
    for seed in range(2):
        world = make_latent_world(settings, Rng(seed))
        first = scores_of(world.exposures)
        log = served_log(world, first, np.random.default_rng(seed))
        by_rule = {rule: true_clicks(world, scores_of(log, likeness_rows=rule)) for rule in ("auto", "all")}
        before = true_clicks(world, first)
        gains.append([by_rule["auto"] - before, by_rule["auto"] - by_rule["all"]])
    assert np.min(gains) > 0, gains


def test_own_rows_count_for_relevance_alone():
    world = make_latent_world(LatentWorld(users=20, items=30, shown_per_user=8), Rng(0))
    log = served_log(world, np.tile(np.arange(30.0), (20, 1)), np.random.default_rng(0))
    batches = LibraryBatches(log.positives, Draws(6, 3.0), 200)
    batches.elsewhere = likeness_rows(log, LibrarySettings()).numpy()
    pairs, block = next(batches.epoch(1, Rng(0), None))
    served = pairs.weights[:, 0, LIKENESS] == 0
    assert 0 < served.sum() < len(served)
    assert pairs.weights[served][..., CLICK].eq(0).all()
    assert pairs.weights[..., RELEVANCE].gt(0).all()
    totals = pairs.weights.sum((0, 1)) + block.weights.sum((0, 2))
    torch.testing.assert_close(totals, torch.ones(3))
    everything = likeness_rows(log, LibrarySettings(likeness_rows="all"))
    assert everything.eq(1).all()
