import math
from pathlib import Path

import pytest
import torch

from contracts import SCORERS
from small import small_split
from towpath.baselines.doubly_robust import (
    DoublyRobustLearner,
    DoublyRobustSettings,
    doubly_robust_risk,
    imputation_risk,
    imputed_loss,
)
from towpath.errors import ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.factorization import Factorization
from towpath.models.registry import build, is_trainable
from towpath.models.scorer import Sizes
from towpath.rng import Rng
from towpath.training.batches import Batch
from towpath.training.losses import logistic_loss
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

SPLIT = small_split()
TRAINING = TrainingSettings(batch_size=64, epochs=3)
FAST = {"batch_size": 64, "epochs": 3, "embedding_dim": 8, "learning_rate": 0.03}
PAIRS = 50
DRAWS = 3_000


def learner(**settings: object) -> DoublyRobustLearner:
    scorer = build("mf", {"embedding_dim": 8}, Sizes(SPLIT.train.n_users, SPLIT.train.n_items))
    scorer.initialise(SPLIT.train, Rng(0))
    return DoublyRobustLearner(
        TrainingTask(scorer, SPLIT.train, TRAINING, Rng(0)), DoublyRobustSettings(**settings)
    )


def copied(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def unchanged(module: torch.nn.Module, before: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def estimates(imputed_right: bool, propensity_right: bool, scaled: bool = True) -> tuple[float, float, float]:
    """Mean and standard error of the estimate over simulated observation, and the truth."""
    draw = torch.Generator().manual_seed(0)
    losses, wrong, truth, guess = torch.rand(4, PAIRS, generator=draw, dtype=torch.float64)
    truth, guess = 0.2 + 0.8 * truth, 0.2 + 0.3 * guess  # guessed too low
    imputed = losses if imputed_right else 2 * wrong
    propensity = truth if propensity_right else guess
    observed = torch.rand(DRAWS, PAIRS, generator=draw, dtype=torch.float64) < truth
    risks = torch.stack(
        [
            doubly_robust_risk(
                imputed, (losses - imputed)[seen], propensity[seen], torch.tensor(PAIRS if scaled else 1)
            )
            for seen in observed
        ]
    )
    return float(risks.mean()), float(risks.std() / math.sqrt(DRAWS)), float(losses.mean())


@pytest.mark.parametrize(("imputed_right", "propensity_right"), [(True, False), (False, True)])
def test_unbiased_if_either_part_is_right(imputed_right: bool, propensity_right: bool) -> None:
    mean, error, truth = estimates(imputed_right, propensity_right)
    assert abs(mean - truth) < 4 * error + 1e-12


def test_biased_if_both_parts_are_wrong() -> None:
    mean, error, truth = estimates(imputed_right=False, propensity_right=False)
    assert abs(mean - truth) > 10 * error


def test_what_was_observed_counts_as_a_part_of_all_pairs() -> None:
    """Known slip: the sum over observed pairs without its share of all pairs."""
    mean, error, truth = estimates(imputed_right=False, propensity_right=True, scaled=False)
    assert abs(mean - truth) > 10 * error


def test_imputed_losses_are_corrected_under_the_same_propensity() -> None:
    """Known slip: e / p - e_hat, with the imputed part left unweighted."""
    imputed, loss, propensity = torch.tensor([3.0]), torch.tensor([1.0]), torch.tensor([0.25])
    assert float(doubly_robust_risk(imputed, loss - imputed, propensity, torch.tensor(1))) == 3 - 2 / 0.25


def test_the_imputed_label_is_the_target_and_not_the_prediction() -> None:
    """Known slip: the arguments of the cross entropy swapped."""
    score, label = torch.tensor(2.0), torch.tensor(0.3)
    chance = 1 / (1 + math.exp(-2))
    expected = -0.3 * math.log(chance) - 0.7 * math.log(1 - chance)
    assert float(imputed_loss(score, label)) == pytest.approx(expected)


def test_imputation_is_evaluated_under_inverse_propensities() -> None:
    imputed, losses = torch.tensor([1.0, 5.0]), torch.tensor([3.0, 4.0])
    found = imputation_risk(imputed, losses, torch.tensor([0.5, 0.25]))
    assert float(found) == pytest.approx((2 * 4 + 4 * 1) / 6)


def one_batch(robust: DoublyRobustLearner) -> Batch:
    return next(iter(robust._batches.epoch(1, Rng(0))))


def test_each_step_reaches_its_own_model_only() -> None:
    robust = learner()
    batch = one_batch(robust)
    scores = robust.scorer.score(batch.context, batch.items)
    f, imputation = copied(robust.scorer), copied(robust.imputation)
    robust._move_imputation(batch, scores.detach(), torch.ones_like(scores))
    assert unchanged(robust.scorer, f)
    assert not unchanged(robust.imputation, imputation)

    imputation = copied(robust.imputation)
    robust._move_imputation = lambda *_: torch.zeros(())  # type: ignore[method-assign]  # f alone moves
    robust._round(batch, batch.items.flip(1))
    assert not unchanged(robust.scorer, f)
    assert unchanged(robust.imputation, imputation)
    for module in (robust.scorer, robust.imputation):
        assert all(p.grad is None for p in module.parameters())


def test_with_labels_imputed_rightly_the_correction_is_gone() -> None:
    """Then f sees the imputed losses alone."""
    robust = learner(imputation_dim=40, learning_rate_imputation=0.1)
    robust._training = TRAINING.model_copy(update={"l2": 0.0})
    batch = one_batch(robust)
    with torch.no_grad():
        scores = 2 + robust.scorer.score(batch.context, batch.items)  # at a score of 0 all labels are alike
    risks = [
        float(robust._move_imputation(batch, scores, torch.ones_like(scores)).detach()) for _ in range(300)
    ]
    assert risks[-1] < 0.02 * risks[0]
    with torch.no_grad():
        pseudo = torch.sigmoid(robust.imputation.score(batch.context, batch.items))
        residual = logistic_loss(scores, batch.labels) - imputed_loss(scores, pseudo)
    assert residual.abs().mean() < 0.1


def test_unlabelled_pairs_are_observed_too_so_imputed_labels_do_not_all_become_one() -> None:
    """Known slip: positives alone are observed, and the imputation model learns that all labels are one."""
    result = fit(SPLIT, Recipe("mf", "doubly-robust", FAST | {"epochs": 20, "patience": 20}))
    tables = {k.removeprefix("imputation."): v for k, v in result.auxiliary_state.items()}
    logits = tables["users.weight"][:, :-1] @ tables["items.weight"][:, :-1].T
    logits += tables["users.weight"][:, -1:] + tables["items.weight"][:, -1] + tables["bias"]
    chances = torch.sigmoid(logits)
    taken = torch.zeros_like(chances, dtype=torch.bool)
    taken[SPLIT.train.users, SPLIT.train.items] = True
    assert chances[~taken].mean() < 0.5
    assert chances[taken].mean() > chances[~taken].mean()


def test_scores_far_out_are_corrected_no_further() -> None:
    robust = learner(logit_limit=1e-9)
    row = robust.epoch(1)
    assert row["clamped_logits"] == pytest.approx(1)


def test_the_imputation_model_is_like_f_but_narrow_or_the_one_that_was_named() -> None:
    found = learner(imputation_dim=5).imputation
    assert isinstance(found, Factorization)
    assert found.settings.embedding_dim == 5
    assert isinstance(learner(imputation="mf").imputation, Factorization)


@pytest.mark.parametrize("propensity", ["popularity", "model"])
def test_same_seed_same_floats_and_resumed_to_the_same_floats(tmp_path: Path, propensity: str) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    chosen = FAST | {"patience": 9, "propensity": propensity, "exposure_epochs": 2}
    whole, again = (fit(SPLIT, Recipe("mf", "doubly-robust", chosen | {"epochs": 5})) for _ in range(2))
    fit(SPLIT, Recipe("mf", "doubly-robust", chosen | {"epochs": 2}), checkpoint=checkpoint)
    resumed = fit(SPLIT, Recipe("mf", "doubly-robust", chosen | {"epochs": 5}), checkpoint=checkpoint)
    assert whole.best_epoch > 2
    for other in (again, resumed):
        assert unchanged(whole.scorer, copied(other.scorer))
        assert all(
            torch.equal(whole.auxiliary_state[k], other.auxiliary_state[k]) for k in whole.auxiliary_state
        )
        assert [r["correction"] for r in whole.history] == [r["correction"] for r in other.history]


@pytest.mark.parametrize("name", [name for name in SCORERS if is_trainable(name)])
def test_it_works_with_every_model(name: str) -> None:
    chosen = {"epochs": 1, "batch_size": 64, "propensity": "model", "exposure_epochs": 1}
    result = fit(SPLIT, Recipe(name, "doubly-robust", {**SCORERS[name], **chosen}))
    assert math.isfinite(result.history[-1]["loss"])
    assert 0 <= result.history[-1]["floored"] <= 1


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"imputation": "ease"}, "imputation needs a model with parameters to train"),
        ({"imputation": "mff"}, "did you mean 'mf'"),
        ({"pairs": "catalogue"}, "pairs=catalogue leaves nothing to impute"),
        ({"floor": 0}, "The setting floor cannot be 0"),
    ],
)
def test_what_cannot_be_is_said(settings: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        fit(SPLIT, Recipe("mf", "doubly-robust", FAST | settings))
