"""A curve goes over the values of one setting, and at its plain end it is plain training."""

import pytest

from small import small_split
from towpath.errors import ConfigError
from towpath.experiments.compare import compare_fits
from towpath.experiments.sweep import SweepResult, label_of, labelled, sweep_recipes
from towpath.methods.recipe import Recipe

FAST = {"epochs": 2, "embedding_dim": 4, "batch_size": 64, "learning_rate": 0.03}
BASE = Recipe("mf", "ipw", FAST)


@pytest.fixture(scope="module")
def curve() -> SweepResult:
    swept = sweep_recipes(BASE, "floor", [".2", "1"])
    recipes = labelled("floor", swept) | {"plain": Recipe("mf", "plain", FAST)}
    comparison = compare_fits(small_split(), recipes, seeds=[0, 1])
    return SweepResult(BASE, "floor", tuple(swept), ("plain",), comparison)


def test_points_are_those_of_the_comparison(curve: SweepResult) -> None:
    assert [value for value, _ in curve.points("full", "hit")] == [0.2, 1.0]
    for value, point in curve.points("full", "ndcg"):
        (row,) = [r for r in curve.comparison.rows if (r.label, r.metric) == (f"floor={value}", "ndcg")]
        assert point.mean == row.estimate.mean
        assert row.sd is not None
        assert (point.low, point.high) == (point.mean - row.sd, point.mean + row.sd)


def test_a_floor_of_one_is_plain_training(curve: SweepResult) -> None:
    assert curve.points("full", "ndcg")[1][1].mean == curve.reference("full", "ndcg")["plain"]


def test_it_is_json_with_everything_needed_to_draw_it(curve: SweepResult) -> None:
    told = curve.to_json()
    assert (told["setting"], told["values"], told["references"]) == ("floor", [0.2, 1.0], ["plain"])
    assert {row["label"] for row in told["rows"]} == {"floor=0.2", "floor=1.0", "plain"}


def test_values_are_named_as_they_are_used() -> None:
    assert list(sweep_recipes(BASE, "variant", ["weighted", "squared"])) == ["weighted", "squared"]
    assert list(sweep_recipes(BASE, "negatives", ["1", "5"])) == [1, 5]
    assert label_of("floor", 0.1) == "floor=0.1"


@pytest.mark.parametrize(
    ("setting", "values", "sentence"),
    [
        ("flor", ["0.1", "0.2"], "did you mean 'floor'"),
        ("floor", ["0.1"], "at least two different values of floor"),
        ("floor", ["0.1", ".10"], "at least two different values of floor"),
        ("floor", ["0.1", "7"], "The setting floor cannot be '7'"),
        ("epochs", ["1", "2"], "leave --set epochs=… out"),
    ],
)
def test_what_cannot_be_swept_is_said(setting: str, values: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        sweep_recipes(BASE, setting, values)
