"""Rates of their own for some parameters, and rates that fall."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn

from towpath.data.interactions import Interactions
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.rng import Rng
from towpath.training.optimiser import Optimiser


class TwoTables(Scorer):
    """A sum of two numbers of the same row, the second of which learns at its own rate."""

    settings_type = Settings

    def __init__(self, factor: float, sparse: bool) -> None:
        super().__init__(Settings(), Sizes(4, 4))
        self.fast = nn.Embedding(4, 2, sparse=sparse)
        self.slow = nn.Embedding(4, 2, sparse=sparse)
        self.factor = factor
        with torch.no_grad():
            self.fast.weight.fill_(1.0)
            self.slow.weight.fill_(1.0)

    def initialise(self, train: Interactions, rng: Rng) -> None: ...

    def rates(self) -> dict[str, float]:
        return {"slow.weight": self.factor}

    def score(self, context: Context, items: Tensor) -> Tensor:
        return self.fast(items).square().sum(-1) + self.slow(items).square().sum(-1)


def steps(scorer: TwoTables, optimiser: Optimiser, count: int) -> None:
    context = Context(torch.arange(2), torch.zeros(2, 0))
    for _ in range(count):
        optimiser.step(scorer.score(context, torch.tensor([[1, 2]])).sum())


@pytest.mark.parametrize("sparse", [False, True])
def test_a_first_step_is_as_long_as_its_rate(sparse: bool) -> None:
    scorer = TwoTables(0.1, sparse)
    steps(scorer, Optimiser([scorer], 0.5), 1)
    assert scorer.fast.weight[1].tolist() == pytest.approx([0.5, 0.5], abs=1e-5)
    assert scorer.slow.weight[1].tolist() == pytest.approx([0.95, 0.95], abs=1e-5)


def test_a_rate_is_found_in_a_scorer_within_a_player() -> None:
    scorer = TwoTables(0.0, False)
    steps(scorer, Optimiser([nn.ModuleList([scorer])], 0.5), 3)
    assert torch.equal(scorer.slow.weight, torch.ones(4, 2))
    assert not torch.equal(scorer.fast.weight, torch.ones(4, 2))


@pytest.mark.parametrize("sparse", [False, True])
def test_the_state_travels_with_several_rates(sparse: bool) -> None:
    whole, parted, other = (TwoTables(0.1, sparse) for _ in range(3))
    steps(whole, Optimiser([whole], 0.1), 5)
    first = Optimiser([parted], 0.1)
    steps(parted, first, 2)
    other.load_state_dict(parted.state_dict())
    second = Optimiser([other], 0.1)
    second.load_state(first.state())
    steps(other, second, 3)
    assert torch.equal(whole.fast.weight, other.fast.weight)
    assert torch.equal(whole.slow.weight, other.slow.weight)


def test_a_rate_for_nothing_is_an_error() -> None:
    scorer = TwoTables(0.1, False)
    scorer.rates = lambda: {"slwo.weight": 0.1}  # type: ignore[method-assign]
    with pytest.raises(AttributeError, match="slwo"):
        Optimiser([scorer], 0.1)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_pace_shortens_every_rate_alike(sparse: bool) -> None:
    scorer = TwoTables(0.1, sparse)
    optimiser = Optimiser([scorer], 0.5)
    optimiser.set_lr_scale(0.1)
    optimiser.set_lr_scale(0.5)  # of the full rate, not of the last one
    steps(scorer, optimiser, 1)
    assert scorer.fast.weight[1].tolist() == pytest.approx([0.75, 0.75], abs=1e-5)
    assert scorer.slow.weight[1].tolist() == pytest.approx([0.975, 0.975], abs=1e-5)


def test_the_compiler_of_graphs_is_not_loaded_for_a_step() -> None:
    step = (
        "import sys, torch\n"
        "from towpath.training.optimiser import Optimiser\n"
        "model = torch.nn.Linear(2, 1)\n"
        "Optimiser([model], 0.1).step(model(torch.ones(1, 2)).sum())\n"
        "print('torch._dynamo' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", step], capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"
