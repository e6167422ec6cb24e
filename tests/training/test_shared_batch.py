"""Threads that share a batch find the gradient of the whole batch."""

from collections.abc import Iterator

import pytest
import torch

from small import small_split
from towpath.kernels.threads import coarse
from towpath.models.registry import build
from towpath.models.scorer import Scorer, sizes_of
from towpath.rng import Rng
from towpath.training.batch import Batch
from towpath.training.batches import make_batches
from towpath.training.settings import TrainingSettings
from towpath.training.shared_batch import SharedBatches

SPLIT = small_split()
SETTINGS = {"embedding_dim": 8, "history_length": 6, "dropout": 0.3}


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def attention() -> Scorer:
    scorer = build("attention", SETTINGS, sizes_of(SPLIT.train))
    scorer.initialise(SPLIT.train, Rng(0))
    return scorer.train()


def batches(scorer: Scorer, size: int) -> list[Batch]:
    training = TrainingSettings(loss="softmax", pairs="catalogue", batch_size=size)
    return list(make_batches(SPLIT.train, scorer, training).epoch(1, Rng(0)))


def mean_square(scorer: Scorer, batch: Batch) -> torch.Tensor:
    return (scorer.score(batch.context, batch.items[:, :1]) - 1).square().mean()


def gradient_of_all(scorer: Scorer, batch: Batch) -> tuple[dict[str, torch.Tensor], float]:
    names, parameters = zip(*scorer.named_parameters(), strict=True)
    loss = mean_square(scorer, batch)
    return dict(zip(names, torch.autograd.grad(loss, parameters), strict=True)), loss.item()


@pytest.mark.parametrize("size", [100, 1])
def test_threads_add_up_to_the_gradient_of_the_batch(size: int) -> None:
    """Of parts of different sizes, steps in a row with dropout, and batches too small to share."""
    alone, shared = attention(), attention()
    with coarse():
        together = SharedBatches(shared)
        for batch in batches(alone, size)[:3]:
            wanted, loss = gradient_of_all(alone, batch)
            found, found_loss = together.gradients(batch, mean_square)
            assert float(found_loss) == pytest.approx(loss, rel=1e-5)
            for name, parameter in shared.named_parameters():
                torch.testing.assert_close(found[parameter], wanted[name], rtol=1e-4, atol=1e-6)
