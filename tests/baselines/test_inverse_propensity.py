import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from contracts import SCORERS
from small import small_split
from towpath.baselines.inverse_propensity import (
    InversePropensityLearner,
    InversePropensitySettings,
    non_negative_risk,
    squared_loss,
    unbiased_loss,
    weighted_loss,
)
from towpath.errors import ConfigError, DataError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.registry import build, is_trainable
from towpath.models.scorer import Scorer, Sizes
from towpath.rng import Rng
from towpath.training.losses import logistic_loss
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

HARD = {"hard_negatives": 1, "hard_negative_depth": 12}

SPLIT = small_split()
TRAINING = TrainingSettings(batch_size=64, epochs=3)
FAST = {"batch_size": 64, "epochs": 3, "embedding_dim": 8, "learning_rate": 0.03}
VARIANTS = ["unbiased", "squared", "weighted", "non-negative"]


def model() -> Scorer:
    scorer = build("mf", {"embedding_dim": 8}, Sizes(SPLIT.train.n_users, SPLIT.train.n_items))
    scorer.initialise(SPLIT.train, Rng(0))
    return scorer


def grid(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores, true relevance and true propensities of a few pairs."""
    draw = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(40, generator=draw, dtype=torch.float64)
    relevance, propensity = (torch.rand(40, generator=draw, dtype=torch.float64) for _ in range(2))
    return scores, relevance, 0.2 + 0.8 * propensity


def equal(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    return all(torch.equal(value, b.state_dict()[name]) for name, value in a.state_dict().items())


@pytest.mark.parametrize("variant", ["unbiased", "weighted"])
@pytest.mark.parametrize("pairs", [{}, HARD, {"pairs": "catalogue"}])
def test_propensity_one_is_plain_training_float_for_float(variant: str, pairs: dict) -> None:
    training = TRAINING.model_copy(update=pairs)
    settings = InversePropensitySettings(power=0, variant=variant)
    weighted = InversePropensityLearner(TrainingTask(model(), SPLIT.train, training, Rng(0)), settings)
    plain = PlainLearner(TrainingTask(model(), SPLIT.train, training, Rng(0)))
    for number in (1, 2, 3):
        assert weighted.epoch(number)["loss"] == plain.epoch(number)["loss"]
    assert equal(weighted.scorer, plain.scorer)


@pytest.mark.parametrize("variant", VARIANTS)
def test_with_propensity_one_every_variant_is_an_ordinary_loss(variant: str) -> None:
    scores, relevance, _ = grid()
    labels, ones = (relevance > 0.5).double(), torch.ones_like(relevance)
    plain = logistic_loss(scores, labels).mean()
    squared = (torch.sigmoid(scores) - labels).square().mean()
    found = {
        "unbiased": unbiased_loss(scores, labels, ones, 8.0).mean(),
        "squared": squared_loss(scores, labels, ones).mean(),
        "weighted": weighted_loss(scores, labels, ones).mean(),
        "non-negative": non_negative_risk(scores, labels, ones),
    }[variant]
    torch.testing.assert_close(found, squared if variant == "squared" else plain)


def simulated_risk(loss, draws: int = 20_000) -> tuple[float, float, float]:
    """The mean over simulated exposure, its standard error, and the ideal loss of relevance."""
    scores, relevance, propensity = grid()
    draw = torch.Generator().manual_seed(1)
    uniform = torch.rand(2, draws, len(scores), generator=draw, dtype=torch.float64)
    clicks = ((uniform[0] < propensity) & (uniform[1] < relevance)).double()
    risks = loss(scores, clicks, propensity).mean(1)
    ones = torch.ones_like(scores)
    ideal = relevance * loss(scores, ones, ones) + (1 - relevance) * loss(scores, 0 * ones, ones)
    return float(risks.mean()), float(risks.std() / math.sqrt(draws)), float(ideal.mean())


@pytest.mark.parametrize(
    "loss", [lambda s, y, p: unbiased_loss(s, y, p, math.inf), squared_loss], ids=["unbiased", "squared"]
)
def test_its_expectation_over_exposure_is_the_ideal_loss(loss) -> None:
    mean, error, ideal = simulated_risk(loss)
    assert abs(mean - ideal) < 4 * error


def test_plain_and_weighted_losses_are_biased_where_the_unbiased_one_is_not() -> None:
    for loss in (lambda s, y, p: logistic_loss(s, y), weighted_loss):
        mean, error, ideal = simulated_risk(loss)
        assert abs(mean - ideal) > 20 * error


def test_losses_by_hand() -> None:
    score, positive, negative, half = (torch.tensor([x]) for x in (2.0, 1.0, 0.0, 0.5))
    up, down = math.log1p(math.exp(-2)), math.log1p(math.exp(2))
    assert float(unbiased_loss(score, positive, half, 8.0)) == pytest.approx(2 * up - down, abs=1e-6)
    assert float(unbiased_loss(score, negative, half, 8.0)) == pytest.approx(down)
    assert float(weighted_loss(score, positive, half)) == pytest.approx(2 * up)
    assert float(weighted_loss(score, negative, half)) == pytest.approx(down)
    chance = 1 / (1 + math.exp(-2))
    assert float(squared_loss(score, positive, half)) == pytest.approx(2 * (1 - chance) ** 2 - chance**2)
    # One unlabelled part that would be negative is held at zero.
    assert float(non_negative_risk(score, positive, half)) == pytest.approx(2 * up)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_gradients(label: float) -> None:
    scores, _, propensity = grid()
    labels = torch.full_like(scores, label)
    scores = scores.clone().requires_grad_()
    for loss in (lambda s: unbiased_loss(s, labels, propensity, 5.0), *_others(labels, propensity)):
        assert torch.autograd.gradcheck(loss, scores)


def _others(labels: torch.Tensor, propensity: torch.Tensor):
    return [
        lambda s, loss=loss: loss(s, labels, propensity)
        for loss in (squared_loss, weighted_loss, non_negative_risk)
    ]


def test_only_rare_positives_are_clamped_and_only_upwards() -> None:
    scores = torch.tensor([9.0, -9.0, 9.0, 9.0], requires_grad=True)
    labels, propensity = torch.tensor([1.0, 1.0, 1.0, 0.0]), torch.tensor([0.5, 0.5, 1.0, 0.5])
    loss = unbiased_loss(scores, labels, propensity, 8.0)
    (slope,) = torch.autograd.grad(loss.sum(), scores)
    assert slope[0] == 0  # would otherwise fall without end
    assert slope[1] < -1  # still pulled up
    assert slope[2] < 0  # propensity one: plain cross entropy
    assert slope[3] > 0.9  # negatives are pushed down however high they are


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("propensity", ["popularity", "model"])
def test_every_variant_trains_and_says_what_was_held_back(variant: str, propensity: str) -> None:
    chosen = FAST | {"variant": variant, "propensity": propensity, "floor": 0.6, "exposure_epochs": 1}
    result = fit(SPLIT, Recipe("mf", "ipw", chosen))
    assert 0 <= result.history[-1]["clamped_logits"] <= 1
    assert 0 <= result.history[-1]["floored"] <= 1
    kinds = {key.split(".")[0] for key in result.auxiliary_state}
    assert kinds == ({"propensity"} if propensity == "model" else set())


def test_the_shares_held_back_are_those_of_positives() -> None:
    settings = InversePropensitySettings(floor=0.3, logit_limit=2.0)
    learner = InversePropensityLearner(TrainingTask(model(), SPLIT.train, TRAINING, Rng(0)), settings)
    batch = next(iter(learner._batches.epoch(1, Rng(0))))
    scores, propensity = torch.full(batch.labels.shape, 9.0), torch.full(batch.labels.shape, 0.1)
    scores[:48, 0], propensity[:16, 0] = 1.0, 0.5  # of 64 positives, in the first column
    assert learner._limits(scores, batch, propensity).tolist() == [0.25, 0.75]


def test_floored_propensities_are_counted_over_the_epoch() -> None:
    row = fit(SPLIT, Recipe("mf", "ipw", FAST | {"floor": 0.7, "batch_size": 60})).history[-1]
    counts = SPLIT.train.item_counts
    low = (counts[SPLIT.train.items] / counts.max()) ** 0.5 < 0.7
    assert row["floored"] == pytest.approx(low.mean(), abs=1e-6)


def test_given_propensities_train_and_matter() -> None:
    train = SPLIT.train
    chances = np.linspace(0.05, 1, len(train), dtype=np.float32)
    known = replace(SPLIT, train=replace(train, propensities=chances))
    one, two = (fit(known, Recipe("mf", "ipw", FAST | {"propensity": p})) for p in ("given", "popularity"))
    assert not equal(one.scorer, two.scorer)
    with pytest.raises(DataError, match="no propensity column"):
        fit(SPLIT, Recipe("mf", "ipw", FAST | {"propensity": "given"}))


@pytest.mark.parametrize("propensity", ["popularity", "model"])
def test_same_seed_same_floats_and_resumed_to_the_same_floats(tmp_path: Path, propensity: str) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    chosen = FAST | {"patience": 9, "propensity": propensity, "exposure_epochs": 2}
    whole, again = (fit(SPLIT, Recipe("mf", "ipw", chosen | {"epochs": 5})) for _ in range(2))
    fit(SPLIT, Recipe("mf", "ipw", chosen | {"epochs": 2}), checkpoint=checkpoint)
    resumed = fit(SPLIT, Recipe("mf", "ipw", chosen | {"epochs": 5}), checkpoint=checkpoint)
    assert whole.best_epoch > 2
    assert equal(whole.scorer, again.scorer)
    assert equal(whole.scorer, resumed.scorer)
    assert all(
        torch.equal(whole.auxiliary_state[k], resumed.auxiliary_state[k]) for k in whole.auxiliary_state
    )
    assert [r["loss"] for r in whole.history] == [r["loss"] for r in resumed.history]


@pytest.mark.parametrize("name", [name for name in SCORERS if is_trainable(name)])
def test_it_works_with_every_model(name: str) -> None:
    chosen = {"epochs": 1, "batch_size": 64, "propensity": "model", "exposure_epochs": 1}
    result = fit(SPLIT, Recipe(name, "ipw", {**SCORERS[name], **chosen}))
    assert math.isfinite(result.history[-1]["loss"])
    assert 0 <= result.history[-1]["floored"] <= 1


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"floor": 0}, "The setting floor cannot be 0"),
        ({"floor": 1.5}, "less than or equal to 1"),
        ({"variant": "clipped"}, "variant cannot be 'clipped'"),
        ({"propensity": "uniform"}, "propensity cannot be 'uniform'"),
    ],
)
def test_what_cannot_be_is_said(settings: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        fit(SPLIT, Recipe("mf", "ipw", FAST | settings))
