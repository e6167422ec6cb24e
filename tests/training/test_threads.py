"""The same seed gives the same floats on one and on two threads; docs/train.md lists the exception."""

from collections.abc import Iterator

import pytest
import torch

from contracts import METHOD_SETTINGS, SCORERS
from small import small_split
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit

SPLIT = small_split()
# Attention is the exception: torch splits its matrix products by threads, and sums round in another order.
MODELS = [model for model in SCORERS if model != "attention"]
# The other methods need a log of impressions and train the same models by the same kernels.
METHODS = ["transport", "ipw", "expomf", "adversarial", "causal-embedding", "doubly-robust"]
RECIPES = [(model, "plain") for model in MODELS] + [("mf", method) for method in METHODS]


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("model", "method"), RECIPES)
def test_threads_do_not_change_a_float(model: str, method: str) -> None:
    settings = {**SCORERS[model], **METHOD_SETTINGS[method], "epochs": 2}
    states = []
    for count in (1, 2):
        torch.set_num_threads(count)
        states.append(fit(SPLIT, Recipe(model, method, settings, 0)).scorer.state_dict())
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name
