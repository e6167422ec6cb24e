"""The same seed gives the same floats on one and on two threads; docs/train.md lists the exceptions."""

from collections.abc import Iterator

import pytest
import torch

from contracts import METHOD_SETTINGS, SCORERS
from small import small_split
from small_impressions import small_log
from towpath.data.split import Split
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit

SPLIT = small_split()
# Attention is the exception: threads share the sequences of a batch, and sums round in another order.
MODELS = [model for model in SCORERS if model != "attention"]
METHODS = ["transport", "ipw", "expomf", "adversarial", "causal-embedding", "doubly-robust"]
RECIPES = [(model, "plain") for model in MODELS] + [("mf", method) for method in METHODS]
# The others need a log of impressions.
IMPRESSIONS = [method for method in METHOD_SETTINGS if method not in ("plain", *METHODS)]


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("model", "method"), RECIPES)
def test_threads_do_not_change_a_float(model: str, method: str) -> None:
    settings = {**SCORERS[model], **METHOD_SETTINGS[method], "epochs": 2}
    assert_same_floats(SPLIT, model, method, settings)


@pytest.mark.parametrize("method", IMPRESSIONS)
def test_threads_do_not_change_a_float_on_impressions(method: str) -> None:
    model = "headed" if method in ("esmm", "escm2") else "mf"
    size = {} if model == "headed" else {"embedding_dim": 4}
    settings = {**METHOD_SETTINGS[method], **size, "epochs": 1}
    assert_same_floats(small_log(), model, method, settings)


def test_threads_that_share_a_batch_change_rounding_alone() -> None:
    """Dropout included: what a step loses does not depend on who computes it."""
    settings = {**SCORERS["attention"], **METHOD_SETTINGS["plain"], "dropout": 0.3, "epochs": 2}
    one, two = states_by_threads(SPLIT, "attention", "plain", settings)
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        # Biases of keys are not seen by a softmax: they follow rounding alone.
        if not name.endswith("inputs.bias"):
            torch.testing.assert_close(tensor, two[name], rtol=1e-4, atol=1e-5)


def assert_same_floats(split: Split, model: str, method: str, settings: dict[str, object]) -> None:
    """A fit on one thread and one on two have equal parameters."""
    one, two = states_by_threads(split, model, method, settings)
    for name, tensor in one.items():
        assert torch.equal(tensor, two[name]), name


def states_by_threads(
    split: Split, model: str, method: str, settings: dict[str, object]
) -> list[dict[str, torch.Tensor]]:
    """The parameters of a fit on one thread and of one on two."""
    states = []
    for count in (1, 2):
        torch.set_num_threads(count)
        states.append(fit(split, Recipe(model, method, settings, 0)).scorer.state_dict())
    return states
