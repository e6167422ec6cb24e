"""A comparison that cannot be made says so before anything is trained."""

import pytest

from small import small_split
from towpath.errors import TowpathError
from towpath.experiments import compare
from towpath.experiments.compare import compare_fits
from towpath.experiments.pool import Work
from towpath.experiments.run_result import EvaluationConfig
from towpath.methods.recipe import Recipe

SPLIT = small_split()


@pytest.mark.parametrize(
    ("evaluation", "sentence"),
    [
        (EvaluationConfig(k=0), "k must lie between 1 and the 40 candidates of the full protocol"),
        (EvaluationConfig(k=41), "k must lie between 1 and the 40 candidates"),
        (EvaluationConfig(protocols=("full", "ful")), "did you mean 'full'"),
        (EvaluationConfig(on="tset"), "did you mean 'test'"),
        (EvaluationConfig(protocols=("full", "sampled")), "needs 100 items that a user has no event with"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_the_first_fit(
    evaluation: EvaluationConfig, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "fit", lambda *_: pytest.fail("it began to train"))
    with pytest.raises(TowpathError, match=sentence):
        compare_fits(SPLIT, {"mf": Recipe("mf")}, seeds=[0], evaluation=evaluation)


@pytest.mark.parametrize(("recipes", "seeds"), [({}, [0]), ({"mf": Recipe()}, [])])
def test_nothing_to_compare_is_refused(recipes: dict[str, Recipe], seeds: list[int]) -> None:
    with pytest.raises(TowpathError, match="at least one model and one seed"):
        compare_fits(SPLIT, recipes, seeds=seeds)


def test_the_first_recipe_is_the_baseline() -> None:
    recipes = {"popularity": Recipe("popularity"), "ease": Recipe("ease", settings={"ridge": 10.0})}
    found = compare_fits(SPLIT, recipes, seeds=[0, 1])
    assert {(d.a, d.b) for d in found.differences} == {("ease", "popularity")}


def test_a_closed_form_is_fitted_once_and_stands_for_every_seed() -> None:
    fitted: list[tuple[str, int]] = []
    recipes = {"mf": Recipe("mf", settings={"epochs": 1}), "popularity": Recipe("popularity")}
    heard = Work(on_result=lambda done: fitted.append((done.label, done.seed)))
    found = compare_fits(SPLIT, recipes, seeds=[3, 4], work=heard)
    assert sorted(fitted) == [("mf", 3), ("mf", 4), ("popularity", 3)]
    spread = {(row.label, row.metric): row.sd for row in found.rows}
    assert spread["popularity", "hit"] == 0
