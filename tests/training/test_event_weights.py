"""Positives count by their values where that is asked for."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import towpath
from small import small_interactions, small_split
from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.errors import ConfigError, DataError
from towpath.models.registry import build
from towpath.models.scorer import Sizes
from towpath.rng import Rng
from towpath.training.batches import make_batches
from towpath.training.event_weights import event_weights
from towpath.training.losses import catalogue_softmax_risk, softmax_loss
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

BY_VALUE = TrainingSettings(weights="value")
MODELS = [
    ("mf", {}),
    ("mf", {"pairs": "catalogue"}),
    ("ncf", {}),
    ("attention", {}),
    ("attention", {"pairs": "sampled"}),
]


def valued(values: np.ndarray | None = None) -> Interactions:
    whole = small_interactions()
    return replace(whole, values=np.arange(len(whole), dtype=np.float32) % 4 if values is None else values)


def valued_split(of: float = 1.0) -> Split:
    split = small_split()
    train = replace(split.train, values=np.full(len(split.train), of, dtype=np.float32))
    return replace(split, train=train)


def test_weights_are_values_over_their_mean() -> None:
    train = valued(np.tile([1, 3], 360).astype(np.float32))
    assert event_weights(train, BY_VALUE).tolist()[:4] == [0.5, 1.5, 0.5, 1.5]
    assert event_weights(train, TrainingSettings()) is None


@pytest.mark.parametrize(("model", "settings"), MODELS)
def test_every_row_has_the_weight_of_its_event(model: str, settings: dict[str, str]) -> None:
    train = valued()
    weight_of = dict(zip(zip(train.users.tolist(), train.items.tolist(), strict=True),
                         event_weights(train, BY_VALUE).tolist(), strict=True))  # fmt: skip
    scorer = build(model, {}, Sizes(train.n_users, train.n_items))
    loss = "softmax" if model == "attention" and settings.get("pairs") != "sampled" else "logistic"
    pairs = "catalogue" if loss == "softmax" else settings.get("pairs", "sampled")
    asked = TrainingSettings(weights="value", pairs=pairs, loss=loss, batch_size=100)
    seen = 0
    for batch in make_batches(train, scorer, asked).epoch(1, Rng(0)):
        assert batch.weights is not None
        if batch.weights.shape[1] == 1:
            pairs_of = zip(batch.context.users.tolist(), batch.items[:, 0].tolist(), strict=True)
            assert batch.weights[:, 0].tolist() == [pytest.approx(weight_of[pair]) for pair in pairs_of]
        else:
            rows, items = batch.labels.nonzero(as_tuple=True)
            found = zip(batch.context.users[rows].tolist(), items.tolist(), strict=True)
            assert batch.weights[rows, items].tolist() == [pytest.approx(weight_of[pair]) for pair in found]
            assert (batch.weights[batch.labels == 0] == 1).all()
        seen += len(batch.weights)
    assert seen


@pytest.mark.parametrize(("model", "settings"), MODELS)
def test_equal_values_change_nothing(model: str, settings: dict[str, str]) -> None:
    split = valued_split(of=5.0)
    one, other = (
        towpath.fit(split, model, epochs=2, **settings, weights=weights) for weights in ("none", "value")
    )
    for name, tensor in one.scorer.state_dict().items():
        assert torch.allclose(tensor, other.scorer.state_dict()[name], atol=1e-5), name


def test_a_value_of_two_counts_as_two_events() -> None:
    """The gradient of a step is that of the same batch with those rows twice."""
    split = small_split()
    values = np.where(np.arange(len(split.train)) % 2, 2, 1).astype(np.float32)
    train = replace(split.train, values=values)

    def moved(batch_of: str) -> torch.Tensor:
        scorer = build("mf", {"embedding_dim": 4}, Sizes(train.n_users, train.n_items))
        scorer.initialise(train, Rng(0))
        task = TrainingTask(scorer, train, TrainingSettings(weights="value", l2=0.0), Rng(0))
        learner = PlainLearner(task)
        batch = next(iter(learner._batches.epoch(1, Rng(0))))
        if batch_of == "copies":
            times = torch.where(batch.weights[:, 0] > batch.weights[:, 0].min() + 1e-3, 2, 1)
            rows = torch.arange(len(times)).repeat_interleave(times)
            context = replace(batch.context, users=batch.context.users[rows],
                              histories=batch.context.histories[rows])  # fmt: skip
            batch = replace(batch, context=context, items=batch.items[rows], labels=batch.labels[rows],
                            weights=None)  # fmt: skip
        captured: dict[torch.Tensor, torch.Tensor] = {}
        learner._optimiser.apply_gradients = captured.update  # type: ignore[method-assign]
        learner._step(batch, 1.0)
        return captured[scorer.items.weight]

    weighted, copied = moved("weights"), moved("copies")
    assert torch.allclose(weighted / weighted.norm(), copied / copied.norm(), atol=1e-5)


def test_the_catalogue_softmax_takes_weights() -> None:
    generator = torch.Generator().manual_seed(0)
    states, table = (torch.randn(n, 3, generator=generator) for n in (4, 6))
    targets, weights = torch.tensor([0, 5, 2, 2]), torch.tensor([1.0, 0.0, 2.0, 0.5])
    labels = torch.nn.functional.one_hot(targets, 6).float()
    expected = (softmax_loss(states @ table.T, labels) * weights).mean()
    assert catalogue_softmax_risk(states, table, targets, weights).item() == pytest.approx(
        expected.item(), 1e-5
    )


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (None, "needs a value for every event, but the data have none"),
        (np.full(720, np.nan, np.float32), "720 of 720 have none or a negative one .first: user 'u0'"),
        (np.full(720, -1, np.float32), "0 or more for every event"),
        (np.zeros(720, np.float32), "values above 0, but all are 0"),
    ],
)
def test_values_that_are_no_weights_get_a_sentence(values: np.ndarray | None, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        event_weights(replace(small_interactions(), values=values), BY_VALUE)


@pytest.mark.parametrize(
    ("method", "settings", "sentence"),
    [
        ("ipw", {}, "'ipw' does not weigh positives by their values"),
        ("plain", {"loss": "softmax", "pairs": "catalogue"}, "one positive in each row"),
        ("plain", {"model": "ease"}, "weights=value needs a model with parameters to train"),
        ("plain", {"pairs": "shown"}, "pairs=shown learns from what was not clicked too"),
    ],
)
def test_what_cannot_be_weighted_is_refused(method: str, settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        towpath.fit(valued_split(), settings.pop("model", "mf"), method, weights="value", **settings)
