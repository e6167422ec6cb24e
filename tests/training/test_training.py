import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from small import small_split
from towpath.data.split import Split
from towpath.errors import ArtifactError, TrainingError
from towpath.models.factorization import Factorization
from towpath.models.registry import build
from towpath.models.scorer import Scorer, sizes_of
from towpath.rng import Rng
from towpath.training.batches import CatalogueBatches, SampledBatches
from towpath.training.checkpoint import load_checkpoint
from towpath.training.fit import EpochMetrics
from towpath.training.loop import train
from towpath.training.losses import logistic_loss
from towpath.training.optimiser import Optimiser, clip_gradients
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

SETTINGS = TrainingSettings(batch_size=64, epochs=6, patience=6)


SMALL_BATCHES = TrainingSettings(batch_size=50, negatives=2)


def learner_on(split: Split, seed: int = 0, settings: TrainingSettings = SETTINGS) -> PlainLearner:
    scorer = build("mf", {"embedding_dim": 8}, sizes_of(split.train))
    scorer.initialise(split.train, Rng(seed))
    return PlainLearner(TrainingTask(scorer, split.train, settings, Rng(seed)))


def rising(scorer: Scorer) -> EpochMetrics:
    """A validation that prefers what was trained longer: the size of the item vectors grows."""
    assert isinstance(scorer, Factorization)
    return {"validation_hit": float(scorer.items.weight.detach().abs().sum())}


def equal_states(a: Scorer, b: Scorer) -> bool:
    other = b.state_dict()
    return all(torch.equal(value, other[key]) for key, value in a.state_dict().items())


def test_logistic_loss_gradient() -> None:
    logits = torch.tensor([-30.0, -1.0, 0.0, 2.0, 30.0], dtype=torch.float64, requires_grad=True)
    for label in (0.0, 1.0):
        assert torch.autograd.gradcheck(lambda s, y=label: logistic_loss(s, torch.full_like(s, y)), logits)


def test_logistic_loss_is_finite_and_linear_far_out() -> None:
    far = logistic_loss(torch.tensor([1e4, -1e4]), torch.tensor([0.0, 1.0]))
    assert far.tolist() == [1e4, 1e4]


@pytest.mark.parametrize(("positives", "size"), [(500, 256), (98_114, 408), (988_129, 4117), (10**8, 65_536)])
def test_batches_grow_with_the_data_within_bounds(positives: int, size: int) -> None:
    assert TrainingSettings().batch_size_for(positives) == size
    assert TrainingSettings(batch_size=7).batch_size_for(positives) == 7


def test_a_batch_larger_than_the_data_is_all_of_them() -> None:
    """Nothing is made that is as large as what was asked for."""
    split = small_split()
    source = SampledBatches(split.train, learner_on(split).scorer, TrainingSettings(batch_size=10**15))
    (batch,) = source.epoch(1, Rng(0))
    assert batch.labels.shape == batch.items.shape == (len(split.train), 4)


def test_an_epoch_visits_every_positive_once() -> None:
    split = small_split()
    source = SampledBatches(
        split.train, learner_on(split).scorer, TrainingSettings(batch_size=50, negatives=2)
    )
    seen = [
        (u, i)
        for batch in source.epoch(1, Rng(0))
        for u, i in zip(batch.context.users.tolist(), batch.items[:, 0].tolist(), strict=True)
    ]
    assert sorted(seen) == sorted(zip(split.train.users.tolist(), split.train.items.tolist(), strict=True))


def test_batches_put_the_positive_first_and_redraw_negatives() -> None:
    split = small_split()
    source = SampledBatches(
        split.train, learner_on(split).scorer, TrainingSettings(batch_size=50, negatives=2)
    )
    first, second = (next(iter(source.epoch(number, Rng(0)))) for number in (1, 2))
    assert first.labels[0].tolist() == [1, 0, 0]
    assert not torch.equal(first.items, second.items)


def test_catalogue_batches_hold_every_pair_once() -> None:
    split = small_split()
    settings = TrainingSettings(pairs="catalogue", batch_size=100)
    source = CatalogueBatches(split.train, learner_on(split).scorer, settings)
    batches = list(source.epoch(1, Rng(0)))
    assert len(batches) == len(source) == 6  # ten positives a user, so ten of the sixty users a batch
    assert sorted(u for b in batches for u in b.context.users.tolist()) == list(range(60))
    labels = torch.cat([b.labels for b in batches])[torch.cat([b.context.users for b in batches]).argsort()]
    expected = torch.zeros(60, 40)
    expected[split.train.users, split.train.items] = 1
    assert torch.equal(labels, expected)
    assert all(b.items.shape == (1, 40) for b in batches)


def test_training_lowers_the_loss() -> None:
    learner = learner_on(small_split())
    losses = [learner.epoch(number)["loss"] for number in range(1, 16)]
    assert losses[-1] < 0.9 * losses[0]


def test_same_seed_same_floats_another_seed_others() -> None:
    split = small_split()
    one, two, three = (train(learner_on(split, seed), rising, SETTINGS).scorer for seed in (0, 0, 1))
    assert equal_states(one, two)
    assert not equal_states(one, three)


def test_a_resumed_run_reaches_the_same_floats(tmp_path: Path) -> None:
    split, checkpoint = small_split(), tmp_path / "checkpoint.safetensors"
    whole = train(learner_on(split), rising, SETTINGS)
    train(learner_on(split), rising, SETTINGS.model_copy(update={"epochs": 2}), checkpoint=checkpoint)
    resumed = train(learner_on(split), rising, SETTINGS, checkpoint=checkpoint)
    assert equal_states(whole.scorer, resumed.scorer)
    assert [row["loss"] for row in whole.history] == [row["loss"] for row in resumed.history]


def test_the_best_epoch_is_kept() -> None:
    quality = iter([0.0, 1.0, 5.0, 2.0, 2.0, 2.0, 2.0])  # the first is that of the start
    kept: dict[float, dict[str, torch.Tensor]] = {}
    learner = learner_on(small_split())

    def validate(scorer: Scorer) -> EpochMetrics:
        value = next(quality)
        kept[value] = {k: v.clone() for k, v in scorer.state_dict().items()}
        return {"validation_hit": value}

    fit = train(learner, validate, SETTINGS.model_copy(update={"patience": 2}))
    assert fit.best_epoch == 2
    assert len(fit.history) == 5
    assert "not risen for 3 epochs" in fit.stopped_because
    assert all(torch.equal(v, kept[5.0][k]) for k, v in fit.scorer.state_dict().items())


class WithAPlayerBeside(PlainLearner):
    """A learner whose second player has learned the number of the epoch."""

    epoch_number = 0

    def epoch(self, number: int) -> EpochMetrics:
        self.epoch_number = number
        return super().epoch(number)

    def auxiliary_state(self) -> dict[str, torch.Tensor]:
        return {"w.epoch": torch.tensor(self.epoch_number)}


def test_other_players_are_kept_as_they_were_in_the_best_epoch(tmp_path: Path) -> None:
    split = small_split()
    quality = iter([0.0, 1.0, 5.0, 2.0, 2.0])

    def validate(scorer: Scorer) -> EpochMetrics:
        return {"validation_hit": next(quality)}

    def learner() -> WithAPlayerBeside:
        plain = learner_on(split)
        return WithAPlayerBeside(TrainingTask(plain.scorer, split.train, SETTINGS, Rng(0)))

    checkpoint = tmp_path / "checkpoint.safetensors"
    train(learner(), validate, SETTINGS.model_copy(update={"epochs": 3}), checkpoint=checkpoint)
    fit = train(learner(), validate, SETTINGS.model_copy(update={"epochs": 4}), checkpoint=checkpoint)
    assert (fit.best_epoch, fit.auxiliary_state) == (2, {"w.epoch": torch.tensor(2)})


def test_a_start_that_training_makes_worse_is_kept() -> None:
    quality = iter([5.0, 1.0, 1.0, 1.0])
    learner = learner_on(small_split())
    before = {k: v.clone() for k, v in learner.scorer.state_dict().items()}
    chosen = SETTINGS.model_copy(update={"patience": 2})
    fit = train(learner, lambda scorer: {"validation_hit": next(quality)}, chosen)
    assert fit.best_epoch == 0
    assert fit.stopped_because.endswith("the start is kept")
    assert all(torch.equal(v, before[k]) for k, v in fit.scorer.state_dict().items())


def test_a_number_that_breaks_stops_training() -> None:
    values = iter([0.0, 0.5, math.nan])
    with pytest.raises(
        TrainingError, match=r"validation_hit became nan in epoch 2 \(last finite value: 0.5\)"
    ):
        train(learner_on(small_split()), lambda scorer: {"validation_hit": next(values)}, SETTINGS)


def test_a_loss_that_breaks_is_said_before_the_scores_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learner_on(small_split())
    monkeypatch.setattr(learner, "epoch", lambda number: {"loss": math.nan})
    quality = iter([0.0])  # that of the start; there is no other
    with pytest.raises(TrainingError, match="loss became nan in epoch 1"):
        train(learner, lambda scorer: {"validation_hit": next(quality)}, SETTINGS)


@pytest.mark.parametrize("damage", ["truncate", "empty"])
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "checkpoint.safetensors"
    train(learner_on(small_split()), rising, SETTINGS.model_copy(update={"epochs": 1}), checkpoint=path)
    path.write_bytes(path.read_bytes()[:-7] if damage == "truncate" else b"")
    with pytest.raises(ArtifactError, match="delete it to start over"):
        load_checkpoint(path)


def tables(sparse: bool) -> nn.Embedding:
    table = nn.Embedding(6, 3, sparse=sparse)
    with torch.no_grad():
        table.weight.copy_(torch.arange(18.0).view(6, 3) / 10)
    return table


def test_clipping_treats_sparse_like_dense() -> None:
    lengths, gradients = [], []
    for sparse in (False, True):
        table = tables(sparse)
        loss = table(torch.tensor([0, 2, 2])).square().sum()
        (gradient,) = torch.autograd.grad(loss, [table.weight])
        gradient = gradient.coalesce() if sparse else gradient
        lengths.append(float(clip_gradients([gradient], 0.5)))
        gradients.append(gradient.to_dense())
    assert lengths[0] == pytest.approx(lengths[1])
    torch.testing.assert_close(gradients[0], gradients[1])
    assert float(gradients[0].norm()) == pytest.approx(0.5)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_optimisers_state_travels(sparse: bool) -> None:
    def steps(table: nn.Embedding, optimiser: Optimiser, count: int) -> None:
        for _ in range(count):
            optimiser.step(table(torch.tensor([1, 4])).square().sum())

    whole, parted, other = tables(sparse), tables(sparse), tables(sparse)
    steps(whole, Optimiser([whole], 0.1), 5)
    first = Optimiser([parted], 0.1)
    steps(parted, first, 2)
    other.load_state_dict(parted.state_dict())
    second = Optimiser([other], 0.1)
    second.load_state(first.state())
    steps(other, second, 3)
    assert torch.equal(whole.weight, other.weight)


def test_histories_before_a_row_hold_only_the_past() -> None:
    train_part = small_split(users=3, per_user=5).train
    before = train_part.histories.padded_before(np.array([0, 2, 4]), 2)
    items = train_part.items
    assert before.tolist() == [[-1, -1], [items[0], items[1]], [-1, items[3]]]
