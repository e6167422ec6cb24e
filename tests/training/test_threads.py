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
# Attention is the exception: torch splits its matrix products by threads, and sums round in another order.
MODELS = [model for model in SCORERS if model != "attention"]
METHODS = ["transport", "ipw", "expomf", "adversarial", "causal-embedding", "doubly-robust"]
RECIPES = [(model, "plain") for model in MODELS] + [("mf", method) for method in METHODS]
# The others need a log of impressions. bandit-dr is the second exception of docs/train.md.
IMPRESSIONS = [method for method in METHOD_SETTINGS if method not in ("plain", "bandit-dr", *METHODS)]


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


def test_threads_change_no_chance_of_bandit_dr() -> None:
    """The biases that all items of a user share follow rounding alone, and a softmax does not see them."""
    log, chances = small_log(), []
    for count in (1, 2):
        torch.set_num_threads(count)
        settings = {**METHOD_SETTINGS["bandit-dr"], "embedding_dim": 4, "epochs": 1}
        state = fit(log, Recipe("mf", "bandit-dr", settings, 0)).scorer.state_dict()
        users, items = state["users.weight"], state["items.weight"]
        chances.append(torch.softmax(users[:, :-1] @ items[:, :-1].T + items[:, -1], dim=1))
    assert torch.allclose(chances[0], chances[1], rtol=0, atol=1e-6)


def assert_same_floats(split: Split, model: str, method: str, settings: dict[str, object]) -> None:
    """A fit on one thread and one on two have equal parameters."""
    states = []
    for count in (1, 2):
        torch.set_num_threads(count)
        states.append(fit(split, Recipe(model, method, settings, 0)).scorer.state_dict())
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name
