"""The step size falls for whoever moves f."""

import pytest

from small_fits import FAST, SPLIT
from towpath.methods.recipe import Recipe
from towpath.methods.registry import METHODS
from towpath.methods.run import fit
from towpath.training.settings import TrainingSettings


def test_the_pace_falls_evenly_and_stays_by_default() -> None:
    falling = TrainingSettings(epochs=4, final_lr_factor=0.2)
    assert [falling.lr_scale(epoch) for epoch in (1, 2, 3, 4)] == pytest.approx([1, 0.8, 0.6, 0.4])
    assert TrainingSettings(epochs=4).lr_scale(4) == 1


# expomf takes no steps; learners from bandit feedback need another log (tests/bandit/test_learning.py).
ELSEWHERE = {"expomf", "bandit-ips", "bandit-snips", "poem", "norm-poem", "bandit-dm", "bandit-dr"}


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ELSEWHERE])
def test_the_first_epoch_is_the_same_and_later_ones_are_slower(method: str) -> None:
    constant, falling = (
        fit(SPLIT, Recipe("mf", method, {**FAST, "final_lr_factor": rate})).history for rate in (1, 0)
    )
    assert constant[0]["loss"] == falling[0]["loss"]
    assert constant[2]["loss"] != falling[2]["loss"]
