import numpy as np
import pytest
import torch

from small import small_split
from towpath.models.registry import build
from towpath.models.scorer import Scorer, Sizes
from towpath.ranking.snapshot import take_snapshot
from towpath.rng import Rng
from towpath.training.batches import SampledBatches
from towpath.training.settings import TrainingSettings
from towpath.transport.domain import Deployment
from towpath.transport.game_batch import GameBatch
from towpath.transport.reco import pool_thresholds, shown
from towpath.transport.settings import TransportSettings

SPLIT = small_split(users=80, items=300, per_user=20)
TRAINING = TrainingSettings(batch_size=400, negatives=3)


def scorer() -> Scorer:
    model = build("mf", {"embedding_dim": 8, "init_std": 0.5}, Sizes(80, 300))
    model.initialise(SPLIT.train, Rng(0))
    return model


def table(model: Scorer, **settings: object) -> GameBatch:
    chosen = TransportSettings(**settings)  # type: ignore[arg-type]
    deployment = Deployment(model, SPLIT.train, TRAINING, chosen)
    deployment.begin_epoch(1, Rng(0))
    batch = next(iter(SampledBatches(SPLIT.train, model, TRAINING).epoch(1, Rng(0))))
    scores = model.score(batch.context, batch.items).detach()
    return deployment.game_batch(batch, scores, scores.square(), batch.labels == 0)


def test_exact_and_sampled_agree_when_the_pool_is_the_catalogue() -> None:
    """Thresholds over all unseen items, by partial sort of the catalogue and as a pool."""
    model = scorer()
    snapshot = take_snapshot(model, SPLIT.train, shown=10, depth=10)
    every = torch.arange(300)
    for user in (0, 33, 79):
        taken = SPLIT.train.items[SPLIT.train.users == user]
        unseen = torch.from_numpy(np.setdiff1d(every.numpy(), taken))[None]
        from towpath.models.scorer import context_of

        pool = model.score(context_of(model, np.array([user]), SPLIT.train.histories), unseen).detach()
        assert pool_thresholds(pool, 10)[0] == pytest.approx(float(snapshot.thresholds[user]), abs=1e-5)
        assert int(shown(pool - snapshot.thresholds[user] + 1e-6).sum()) == 10


def test_random_unseen_pairs_are_shown_k_in_m_times() -> None:
    model, shares = scorer(), []
    for seed in range(20):
        chosen = TransportSettings(domain="sampled", pool=100, list_length=10)
        deployment = Deployment(model, SPLIT.train, TRAINING, chosen)
        deployment.begin_epoch(1, Rng(seed))
        batch = next(iter(SampledBatches(SPLIT.train, model, TRAINING).epoch(1, Rng(seed))))
        scores = model.score(batch.context, batch.items).detach()
        found = deployment.game_batch(batch, scores, scores, batch.labels == 0)
        shares.append(float(found.shown[:, 1:].mean()))
    # A random unseen item beats the tenth best of 100 random ones with probability 10 / 101.
    assert np.mean(shares) == pytest.approx(10 / 101, abs=0.01)


def test_the_exact_domain_shows_k_items_of_every_user() -> None:
    model = scorer()
    snapshot = take_snapshot(model, SPLIT.train, shown=10, depth=50)
    assert snapshot.head.shape == (80, 50)
    assert snapshot.counts.tolist() == [50] * 80
    taken = set(zip(SPLIT.train.users.tolist(), SPLIT.train.items.tolist(), strict=True))
    assert not any((u, i) in taken for u, row in enumerate(snapshot.head.tolist()) for i in row)


def test_lists_are_drawn_from_the_head() -> None:
    model = scorer()
    found = table(model, domain="ranking")
    head = take_snapshot(model, SPLIT.train, shown=10, depth=10).head
    users = found.deployed.context.users
    assert all(item in head[user] for user, item in zip(users, found.deployed.items[:, 0], strict=True))
    assert float(found.mass_f.sum()) == pytest.approx(1)
    assert (found.deployed.margins >= -1e-5).all()


def test_what_is_shown_among_the_tuples_has_mass_one() -> None:
    found = table(scorer(), domain="exact", list_length=40)
    assert float(found.mass_f.sum()) == pytest.approx(1)
    assert ((found.mass_f > 0) == ((found.shown > 0) & found.reweight_mask)).all()


def test_relaxations() -> None:
    margins = torch.tensor([-2.0, 0.0, 3.0], requires_grad=True)
    soft = shown(margins, "soft", 2.0)
    torch.testing.assert_close(soft, torch.sigmoid(margins / 2))
    assert soft.requires_grad
    assert not shown(margins).requires_grad
