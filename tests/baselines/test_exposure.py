import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Normal

from small_fits import FAST, SPLIT, TRAINING, model, same_floats_again, same_floats_resumed
from towpath.baselines import exposure
from towpath.baselines.exposure import (
    ExposureLearner,
    ExposureSettings,
    exposure_log_odds,
    pair_log_evidence,
)
from towpath.errors import ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.ease import interaction_matrix
from towpath.models.scorer import context_of
from towpath.rng import Rng
from towpath.training.task import TrainingTask

TAKEN = torch.from_numpy(interaction_matrix(SPLIT.train).toarray())


def learner(seed: int = 0, **chosen: float) -> ExposureLearner:
    task = TrainingTask(model(seed), SPLIT.train, TRAINING, Rng(seed))
    return ExposureLearner(task, ExposureSettings(**chosen))


def vectors(learned: ExposureLearner) -> tuple[torch.Tensor, torch.Tensor]:
    """Users and items in double precision."""
    tables = (learned.scorer.users, learned.scorer.items)
    users, items = (table.weight.detach()[:, :-1].double() for table in tables)
    return users, items


def posterior_by_hand(scores: torch.Tensor, mu: torch.Tensor, precision: float) -> torch.Tensor:
    """The formula of the paper, written out."""
    density = torch.exp(Normal(scores, precision**-0.5).log_prob(torch.zeros_like(scores)))
    chances = mu * density / (mu * density + 1 - mu)
    return torch.where(TAKEN > 0, torch.ones_like(chances), chances)


def log_joint_by_hand(learned: ExposureLearner, chosen: ExposureSettings) -> float:
    """Written out pair by pair with torch's own densities."""
    users, items = vectors(learned)
    mu = learned.mu.double()
    normal = Normal(users @ items.T, chosen.precision**-0.5)
    not_interacted = (mu * normal.log_prob(torch.zeros(())).exp() + 1 - mu).log()
    taken = mu.log() + normal.log_prob(torch.ones(()))
    total = torch.where(TAKEN > 0, taken, not_interacted).sum()
    total -= chosen.ridge_users / 2 * users.square().sum() + chosen.ridge_items / 2 * items.square().sum()
    share = torch.from_numpy((SPLIT.train.item_counts / SPLIT.train.item_counts.max()) ** chosen.prior_power)
    a = chosen.prior_shown + 60 * chosen.prior_weight * share
    b = chosen.prior_hidden + 60 * chosen.prior_weight * (1 - share)
    return float(total + ((a - 1) * mu.log() + (b - 1) * (1 - mu).log()).sum())


PUBLISHED = {"ridge_users": 1e-5, "ridge_items": 1e-5, "prior_weight": 0}
VARIANTS = [
    {},
    PUBLISHED,
    PUBLISHED | {"init_mu": 0.3, "precision": 4.0},
    {"ridge_users": 0.5, "ridge_items": 2.0, "precision": 0.2, "prior_weight": 0},
    PUBLISHED | {"prior_shown": 2.0, "prior_hidden": 9.0},
    {"prior_weight": 0.5, "prior_power": 1.0},
]
every_variant = pytest.mark.parametrize("chosen", VARIANTS, ids=str)


def test_the_gaussian_constant_is_right() -> None:
    """log-odds of mu N(0 | s, 1/precision) against 1 - mu."""
    found = exposure_log_odds(torch.tensor(0.7), torch.tensor(0.2), precision=4.0)
    density = math.sqrt(4 / (2 * math.pi)) * math.exp(-4 * 0.7**2 / 2)
    assert float(found) == pytest.approx(math.log(0.2 * density / 0.8), rel=1e-5)


@settings(max_examples=50, deadline=None)
@given(score=st.floats(-3, 3), mu=st.floats(1e-6, 1 - 1e-6), precision=st.floats(0.01, 20, exclude_min=True))
def test_the_chance_of_exposure_lies_between_none_and_the_unconditional_odds(
    score: float, mu: float, precision: float
) -> None:
    """In (0, 1), the lower the more the pair is liked, and 1 - mu plus its weight makes the evidence."""
    point, odds = torch.tensor(score, dtype=torch.float64), torch.tensor(mu, dtype=torch.float64)
    chance = torch.sigmoid(exposure_log_odds(point, odds, precision))
    assert 0 < chance < 1
    assert torch.sigmoid(exposure_log_odds(point.abs() + 0.1, odds, precision)) < chance
    not_interacted, _ = pair_log_evidence(point, odds, precision)
    assert float(not_interacted.exp() * (1 - chance)) == pytest.approx(1 - mu, rel=1e-9)


@every_variant
def test_an_iteration_is_that_of_the_paper(chosen: dict) -> None:
    learned, ours = learner(**chosen), ExposureSettings(**chosen)
    users, items = vectors(learned)
    taken, mu = TAKEN.double(), learned.mu.double()

    def solved(own: torch.Tensor, other: torch.Tensor, chances: torch.Tensor, y: torch.Tensor, ridge: float):
        gram = ours.precision * torch.einsum("bn,nd,ne->bde", chances, other, other)
        right = ours.precision * (chances * y) @ other
        return torch.linalg.solve(gram + ridge * torch.eye(own.shape[1]), right)

    chances = posterior_by_hand(users @ items.T, mu, ours.precision)
    users = solved(users, items, chances, taken, ours.ridge_users)
    chances = posterior_by_hand(users @ items.T, mu, ours.precision)
    items = solved(items, users, chances.T, taken.T, ours.ridge_items)
    learned.epoch(1)
    for found, expected in zip(vectors(learned), (users, items), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    if not ours.prior_weight:
        a, b = ours.prior_shown, ours.prior_hidden
        mode = (a + chances.sum(0) - 1) / (a + b + len(users) - 2)
        torch.testing.assert_close(learned.mu.double(), mode, rtol=1e-4, atol=1e-6)


@every_variant
def test_the_log_joint_is_exact_and_never_falls(chosen: dict) -> None:
    learned, ours = learner(**chosen), ExposureSettings(**chosen)
    before = learned.log_joint()
    assert before == pytest.approx(log_joint_by_hand(learned, ours), rel=1e-6)
    for number in range(1, 31):
        row = learned.epoch(number)
        now = learned.log_joint()
        assert now >= before - 1e-6 * abs(before), number
        assert row["loss"] == pytest.approx(-now / TAKEN.numel())
        before = now
    assert before == pytest.approx(log_joint_by_hand(learned, ours), rel=1e-6)


def test_another_gaussian_constant_would_let_it_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above can fail: with odds that do not belong to the density, the climb is not one."""
    learned = learner(**PUBLISHED)
    for number in range(1, 20):
        learned.epoch(number)
    before = learned.log_joint()
    right = exposure.exposure_log_odds
    monkeypatch.setattr(exposure, "exposure_log_odds", lambda s, mu, p: right(s, mu, p) + math.log(math.pi))
    learned.epoch(20)
    monkeypatch.undo()
    assert learned.log_joint() < before - 1


def test_what_was_taken_was_shown_and_the_rest_may_have_been() -> None:
    learned = learner()
    learned.epoch(1)
    (block,) = exposure._blocks(learned._by_user, 8)
    users, items = vectors(learned)
    chances = learned._chances((users @ items.T).float(), block, learned.mu[None])
    assert torch.equal(chances[TAKEN > 0], torch.ones(int(TAKEN.sum())))
    assert (chances[TAKEN == 0] > 0).all()
    assert (chances[TAKEN == 0] < 1).all()


def test_the_size_of_blocks_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, parted = learner(), learner()
    whole.epoch(1)
    monkeypatch.setattr(exposure, "rows_per_block", lambda width: 7)
    parted.epoch(1)
    torch.testing.assert_close(whole.scorer.users.weight, parted.scorer.users.weight, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(whole.mu, parted.mu)


def test_scores_are_inner_products_alone() -> None:
    scorer = fit(SPLIT, Recipe("mf", "expomf", FAST | {"start": "ease"})).scorer
    context = context_of(scorer, np.arange(60), SPLIT.train.histories)
    found = scorer.score(context, torch.arange(40)[None])
    expected = scorer.users.weight[:, :-1] @ scorer.items.weight[:, :-1].T
    assert torch.equal(found, expected)


def test_a_popular_prior_believes_in_the_exposure_of_popular_items() -> None:
    flat, popular = learner(**PUBLISHED), learner(prior_weight=1e4, prior_power=0.5)
    for learned in (flat, popular):
        learned.epoch(1)
    share = (SPLIT.train.item_counts / SPLIT.train.item_counts.max()) ** 0.5
    expected = np.clip(share, 1e-6, 1 - 1e-6)
    np.testing.assert_allclose(popular.mu.numpy(), expected, atol=1e-3)
    assert not np.allclose(flat.mu.numpy(), expected, atol=0.1)


def test_it_learns_to_rank() -> None:
    result = fit(SPLIT, Recipe("mf", "expomf", FAST | {"epochs": 10, "ridge_users": 1, "ridge_items": 1}))
    start = model()
    users, taken = SPLIT.train.users.astype(np.int64), TAKEN > 0
    for scorer, better in ((result.scorer, True), (start, False)):
        scores = scorer.score(
            context_of(scorer, np.arange(60), SPLIT.train.histories), torch.arange(40)[None]
        )
        assert bool(scores[taken].mean() > scores[~taken].mean() + 0.2) is better
    assert len(users) == int(TAKEN.sum())
    assert set(result.auxiliary_state) == {"exposure.mu"}


def test_same_seed_same_floats_and_resumed_too(tmp_path: Path) -> None:
    assert same_floats_again("expomf", {})
    assert same_floats_resumed("expomf", {"prior_weight": 0.1, "prior_power": 0.5}, tmp_path)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"pairs": "catalogue"}, "draws no negatives"),
        ({"hard_negatives": 1}, "draws no negatives"),
        ({"loss": "softmax"}, "softmax"),
        ({"init_mu": 1.0}, "init_mu cannot be"),
        ({"prior_shown": 0.5}, "prior_shown cannot be"),
    ],
)
def test_what_does_not_fit_is_said(chosen: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Recipe("mf", "expomf", chosen).resolve()


def test_other_models_are_refused() -> None:
    with pytest.raises(ConfigError, match="closed form"):
        Recipe("ease", "expomf").resolve()
    for method in ("expomf", "causal-embedding"):
        with pytest.raises(ConfigError, match="trains mf only, and the model is 'gmf'"):
            Recipe("gmf", method).resolve()
