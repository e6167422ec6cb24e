"""One number with its interval."""

import dataclasses
import json

import pytest

from towpath.stats.estimate import Estimate

HALF = Estimate(mean=0.5, low=0.4, high=0.7, n=100, how="95 % normal interval")


def test_an_estimate_becomes_plain_json() -> None:
    found = json.loads(json.dumps(HALF.to_json()))
    assert found == {
        "mean": 0.5,
        "low": 0.4,
        "high": 0.7,
        "n": 100,
        "how": "95 % normal interval",
        "level": 0.95,
        "interval": [0.4, 0.7],
    }


def test_an_interval_holds_its_ends_and_nothing_beyond_them() -> None:
    assert [HALF.covers(value) for value in (0.39, 0.4, 0.5, 0.7, 0.71)] == [False, True, True, True, False]
    assert HALF.width == pytest.approx(0.3)


def test_an_estimate_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        HALF.mean = 1.0  # type: ignore[misc]
