from pathlib import Path

import numpy as np
import pytest
import torch

from small import small_interactions
from small_fits import (
    FAST,
    SPLIT,
    TRAINING,
    copied,
    model,
    plainly_trained,
    same_floats_again,
    same_floats_resumed,
    unchanged,
)
from towpath.baselines.causal_embedding import (
    CausalEmbeddingLearner,
    CausalEmbeddingSettings,
    item_distance,
    sample_treatment,
)
from towpath.errors import ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.rng import Rng
from towpath.training.batches import Batch
from towpath.training.losses import logistic_loss
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

DISTANCES = ["l1", "l2", "cosine"]


def learner(training: TrainingSettings = TRAINING, **chosen: object) -> CausalEmbeddingLearner:
    return CausalEmbeddingLearner(
        TrainingTask(model(), SPLIT.train, training, Rng(0)), CausalEmbeddingSettings(**chosen)
    )


def apart(learned: CausalEmbeddingLearner) -> CausalEmbeddingLearner:
    """The same with treatment vectors that are no longer those of the start."""
    with torch.no_grad():
        learned.treatment.items.weight.normal_(0, 0.3, generator=Rng(5).torch("apart"))
    return learned


def first_batch(learned: CausalEmbeddingLearner) -> Batch:
    return next(iter(learned._batches.epoch(1, Rng(0))))


@pytest.mark.parametrize("pairs", [{}, {"hard_negatives": 1, "hard_negative_depth": 12}])
@pytest.mark.parametrize("distance", DISTANCES)
def test_without_treatment_and_pull_it_is_plain_training_float_for_float(pairs: dict, distance: str) -> None:
    training = TRAINING.model_copy(update=pairs)
    learned = learner(training, treatment_share=0, pull=0, distance=distance)
    start = copied(learned.treatment.items)
    for number in (1, 2, 3):
        learned.epoch(number)
    assert unchanged(learned.scorer, copied(plainly_trained(training)))
    assert unchanged(learned.treatment.items, start)


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_pull_reaches_control_rows_and_never_treatment_rows(distance: str) -> None:
    learned = apart(learner(distance=distance))
    items = torch.tensor([[1, 4], [4, 7]])
    tables = [learned.scorer.items.weight, learned.treatment.items.weight, learned.scorer.users.weight]
    gradients = torch.autograd.grad(learned._apart(items), tables, allow_unused=True)
    control = gradients[0]
    assert control is not None
    assert gradients[1:] == (None, None)
    assert np.flatnonzero(control.abs().sum(1)).tolist() == [1, 4, 7]
    assert (control[:, -1] == 0).all()  # biases are free


@pytest.mark.parametrize("distance", DISTANCES)
def test_a_step_along_the_pull_brings_control_closer(distance: str) -> None:
    learned = apart(learner(distance=distance))
    items = torch.arange(40)[None]
    before = learned._apart(items)
    (gradient,) = torch.autograd.grad(before, learned.scorer.items.weight)
    with torch.no_grad():
        learned.scorer.items.weight -= 0.1 * gradient
    assert learned._apart(items) < before


def test_distances_by_hand() -> None:
    control, treatment = torch.tensor([[3.0, 4.0], [1.0, 0.0]]), torch.tensor([[3.0, 2.0], [0.0, 2.0]])
    assert item_distance(control, treatment, "l1").tolist() == [2.0, 3.0]
    assert item_distance(control, treatment, "l2").tolist() == [4.0, 5.0]
    expected = [1 - 17 / (5 * 13**0.5), 1.0]
    assert item_distance(control, treatment, "cosine").tolist() == pytest.approx(expected)


@pytest.mark.parametrize("distance", DISTANCES)
def test_distances_have_the_gradient_of_their_formula(distance: str) -> None:
    generator = Rng(0).torch("points")
    control, treatment = (torch.randn(3, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    control.requires_grad_()
    assert torch.autograd.gradcheck(lambda c: item_distance(c, treatment, distance), control)


def test_the_loss_is_that_of_the_formula() -> None:
    learned = apart(learner(treatment_share=0.4, pull=0.7, distance="l1"))
    batch = first_batch(learned)
    treated = learned._treated.contains(batch.context.users.numpy(), batch.items[:, 0].numpy())
    assert 0 < treated.sum() < len(treated)
    users, bias = learned.scorer.users.weight.detach(), learned.scorer.bias.detach()
    losses, charges, distances = [], [], []
    for user, items, labels, is_treated in zip(
        batch.context.users, batch.items, batch.labels, treated, strict=True
    ):
        table = learned.treatment.items if is_treated else learned.scorer.items
        vectors, p = table.weight.detach()[items], users[user]
        scores = vectors[:, :-1] @ p[:-1] + vectors[:, -1] + p[-1] + bias
        losses.append(logistic_loss(scores, labels))
        charges.append(vectors[:, :-1].square().sum(1) + p[:-1].square().sum())
        if not is_treated:
            other = learned.treatment.items.weight.detach()[items]
            distances.append((vectors - other)[:, :-1].abs().sum(1))
    expected = torch.cat(losses).mean() + TRAINING.l2 * torch.cat(charges).mean()
    found, distance = learned._step(batch)
    torch.testing.assert_close(distance.detach(), torch.cat(distances).mean())
    torch.testing.assert_close(found.detach(), expected + 0.7 * torch.cat(distances).mean())


def test_users_are_shared_and_items_are_not() -> None:
    learned = learner(treatment_share=0.5)
    assert learned.treatment.users is learned.scorer.users
    assert torch.equal(learned.treatment.items.weight, learned.scorer.items.weight)
    learned.epoch(1)
    assert learned.treatment.users is learned.scorer.users
    assert not torch.equal(learned.treatment.items.weight, learned.scorer.items.weight)


def test_a_strong_pull_ties_the_two() -> None:
    loose, tight = (
        fit(
            SPLIT,
            Recipe("mf", "causal-embedding", FAST | {"pull": pull, "epochs": 6, "treatment_share": 0.5}),
        )
        for pull in (0.0, 3.0)
    )
    assert tight.history[-1]["item_distance"] < 0.3 * loose.history[-1]["item_distance"]


@pytest.mark.parametrize("treatment", ["random", "inverse-popularity"])
def test_the_treatment_set_has_its_share(treatment: str) -> None:
    train = small_interactions(users=400)
    chosen = sample_treatment(train, treatment, 0.25, Rng(0).numpy("t"))
    assert chosen.sum() == round(0.25 * len(train))
    assert not sample_treatment(train, treatment, 0.0, Rng(0).numpy("t")).any()


def test_inverse_popularity_makes_items_even_and_random_does_not() -> None:
    train = small_interactions(users=10_000)
    spread = {}
    for treatment in ("random", "inverse-popularity"):
        chosen = sample_treatment(train, treatment, 0.1, Rng(0).numpy("t"))
        counts = np.bincount(train.items[chosen], minlength=train.n_items)
        spread[treatment] = counts.std() / counts.mean()
    whole = train.item_counts.std() / train.item_counts.mean()
    assert spread["random"] > 0.8 * whole
    assert spread["inverse-popularity"] < 0.4 * whole


def test_every_choice_trains_and_keeps_the_treatment_vectors() -> None:
    for distance in DISTANCES:
        chosen = FAST | {"distance": distance, "treatment": "inverse-popularity"}
        result = fit(SPLIT, Recipe("mf", "causal-embedding", chosen))
        assert result.history[-1]["item_distance"] > 0
        assert result.auxiliary_state["treatment.weight"].shape == (40, 9)


def test_same_seed_same_floats_and_resumed_too(tmp_path: Path) -> None:
    chosen = {"treatment_share": 0.3, "hard_negatives": 1, "hard_negative_depth": 12}
    assert same_floats_again("causal-embedding", chosen)
    assert same_floats_resumed("causal-embedding", chosen, tmp_path)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"pairs": "catalogue"}, "use pairs=sampled"),
        ({"loss": "softmax"}, "softmax"),
        ({"treatment_share": 1.0}, "treatment_share cannot be"),
        ({"treatment": "uniform"}, "treatment cannot be 'uniform'"),
    ],
)
def test_what_does_not_fit_is_said(chosen: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Recipe("mf", "causal-embedding", chosen).resolve()
