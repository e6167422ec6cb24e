"""The step size falls for whoever moves f."""

import pytest

from small_fits import FAST, SPLIT
from small_impressions import small_log
from towpath.methods.recipe import Recipe
from towpath.methods.registry import METHODS
from towpath.methods.run import fit
from towpath.training.settings import TrainingSettings

ON_IMPRESSIONS = ("shown", "imitation", "esmm", "escm2", "conservative")


def test_the_pace_falls_evenly_and_stays_by_default() -> None:
    falling = TrainingSettings(epochs=4, last_rate=0.2)
    assert [falling.pace(epoch) for epoch in (1, 2, 3, 4)] == pytest.approx([1, 0.8, 0.6, 0.4])
    assert TrainingSettings(epochs=4).pace(4) == 1


@pytest.mark.parametrize("method", [name for name in METHODS if name != "expomf"])  # which takes no steps
def test_the_first_epoch_is_the_same_and_later_ones_are_slower(method: str) -> None:
    split = small_log() if method in ON_IMPRESSIONS else SPLIT
    constant, falling = (
        fit(split, Recipe("mf", method, {**FAST, "last_rate": rate})).history for rate in (1, 0)
    )
    assert constant[0]["loss"] == falling[0]["loss"]
    assert constant[2]["loss"] != falling[2]["loss"]
