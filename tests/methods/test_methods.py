"""Laws that every method obeys."""

import pytest

from contracts import METHOD_SETTINGS
from towpath.methods.registry import METHODS
from towpath.testing import MethodContract

# Every method on the model that it trains, and those with players of their own on other ones too.
CASES = [(method, "mf") for method in METHOD_SETTINGS]
CASES += [("plain", "attention"), ("transport", "attention"), ("adversarial", "gmf")]


def test_no_method_is_left_out() -> None:
    assert set(METHOD_SETTINGS) == set(METHODS)


class TestEveryMethod(MethodContract):
    """The suite that authors of methods get."""

    @pytest.fixture(autouse=True, params=CASES, ids=" ".join)
    def _one_method(self, request: pytest.FixtureRequest) -> None:
        self.method, self.model = request.param
        self.settings = {"embedding_dim": 8, **METHOD_SETTINGS[self.method]}
