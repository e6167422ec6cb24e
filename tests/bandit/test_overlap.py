"""How far a log vouches for a policy."""

import numpy as np
import pytest

from towpath.bandit.overlap import WeightedRows, assess_overlap, item_evidence


def rows_of(weights: np.ndarray, **others: object) -> WeightedRows:
    n = len(weights)
    known: dict[str, object] = {
        "rewards": np.zeros(n),
        "propensities": np.linspace(0.1, 0.9, n),
        "actions": np.zeros(n, dtype=np.int64),
        "mass": np.array([1.0]),
        "never_logged_mass": 0.0,
    }
    return WeightedRows(weights, **(known | others))  # type: ignore[arg-type]


def test_numbers_by_hand() -> None:
    found = assess_overlap(rows_of(np.array([0.5, 0.5, 1.0, 2.0]), rewards=np.array([1, 0, 0, 1.0])))
    assert found.ess_share == pytest.approx(16 / 5.5 / 4)
    assert found.unsupported_mass == pytest.approx(0.0)
    assert found.unsupported_mass_se == pytest.approx(np.sqrt(0.5) / 2)  # s^2 = 1.5 / 3
    assert (found.largest_weight, found.influential_row) == (2.0, 3)
    assert found.influential_share == pytest.approx(0.5)
    assert found.snips_without_it == pytest.approx(0.25)  # .5 of .5 + .5 + 1


def test_a_log_of_the_target_itself_gives_no_warning() -> None:
    found = assess_overlap(rows_of(np.ones(1000)))
    assert (found.level, found.warnings) == ("green", ())
    assert found.mass_with_evidence == 1


def test_one_row_that_carries_the_weight_is_named() -> None:
    weights = np.ones(1000)
    weights[17] = 4000.0
    found = assess_overlap(rows_of(weights, rewards=np.r_[np.ones(10), np.zeros(990)]))
    assert found.level == "red"
    assert found.warnings[0].startswith(
        "One row of 1,000 (row 18) carries 80% of the weight; without it SNIPS"
    )
    assert "0.0100, not 0.0020" in found.warnings[0]


def test_weights_whose_mean_is_too_high_are_said_and_one_huge_weight_is_not_proof_of_it() -> None:
    found = assess_overlap(rows_of(np.tile([1.0, 2.0], 500)))
    assert any("mean 1.50 (standard error 0.02) where at most 1 is possible" in w for w in found.warnings)
    huge = np.ones(1000)
    huge[0] = 3000.0  # a mean of 4 by chance
    assert not any("where at most 1" in w for w in assess_overlap(rows_of(huge)).warnings)


@pytest.mark.parametrize(("share", "level"), [(0.04, "red"), (0.1, "amber"), (0.5, "green")])
def test_levels(share: float, level: str) -> None:
    weights = np.zeros(1000)
    weights[: int(1000 * share)] = 1 / share
    found = assess_overlap(rows_of(weights))
    assert found.ess_share == pytest.approx(share)
    assert found.level == level
    assert any("effective" in w or "worth" in w for w in found.warnings) == (level != "green")


def test_evidence_is_counted_for_each_item() -> None:
    actions = np.repeat([0, 1], [40, 10])
    evidence = item_evidence(np.ones(50), actions, 3)
    assert evidence.tolist() == [40, 10, 0]
    mass = np.array([0.6, 0.3, 0.1])
    found = assess_overlap(rows_of(np.ones(50), actions=actions, mass=mass, never_logged_mass=0.1))
    assert found.mass_with_evidence == pytest.approx(0.6)
    assert any(w.startswith("10.0% of what the target would show") for w in found.warnings)
    assert any(w.startswith("Only 60% of what the target would show") for w in found.warnings)


def test_missing_mass_is_said_where_the_weights_show_it() -> None:
    found = assess_overlap(rows_of(np.full(1000, 0.7) + np.linspace(-0.1, 0.1, 1000)))
    assert found.unsupported_mass == pytest.approx(0.3)
    assert any("mean 0.700 instead of 1" in w for w in found.warnings)


def test_propensities_that_look_floored() -> None:
    floored = np.maximum(np.linspace(0.0001, 0.5, 1000), 0.01)
    shown = {"actions": np.arange(1000) % 5, "mass": np.full(5, 0.2)}
    found = assess_overlap(rows_of(np.ones(1000), propensities=floored, **shown))
    assert any("rows of 5 items have the same smallest" in w for w in found.warnings)
    rarest = assess_overlap(rows_of(np.ones(1000), propensities=floored))  # one item has it by right
    assert rarest.warnings == ()
    uniform = assess_overlap(rows_of(np.ones(1000), propensities=np.full(1000, 0.001)))
    assert uniform.warnings == ()  # one propensity throughout is a uniform policy, not a floor
