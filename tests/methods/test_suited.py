"""Defaults that a method has on logs of impressions only."""

from dataclasses import replace

import numpy as np
import pytest

import towpath
from small_impressions import small_log
from towpath.methods.recipe import Recipe
from towpath.methods.registry import METHODS


@pytest.mark.parametrize("method", ["plain", "ipw", "expomf"])
def test_unset_settings_are_those_for_impressions(method: str) -> None:
    train = small_log().train
    suited = Recipe("mf", method).suited_to(train).resolved()["settings"]
    wanted = METHODS[method].on_impressions["mf"]
    assert wanted
    assert {key: suited[key] for key in wanted} == dict(wanted)


def test_a_penalty_comes_with_the_negatives_that_it_was_chosen_with() -> None:
    # With mf's own 20 negatives the penalty of ipw left a third fewer true clicks.
    for name in ("plain", "ipw"):
        assert {"l2", "negatives"} <= set(METHODS[name].on_impressions["mf"])


def test_what_was_set_stays() -> None:
    recipe = Recipe("mf", "plain", {"l2": 0.5}).suited_to(small_log().train)
    assert recipe.settings["l2"] == 0.5
    assert recipe.settings["learning_rate"] == METHODS["plain"].on_impressions["mf"]["learning_rate"]


def test_a_log_of_clicks_alone_and_other_models_keep_their_defaults() -> None:
    train = small_log().train
    recipe = Recipe("mf", "plain")
    assert recipe.suited_to(replace(train, impressions=None)) == recipe
    log = train.rows
    all_clicked = replace(train, impressions=replace(log, labels=np.ones(len(log), dtype=np.bool_)))
    assert recipe.suited_to(all_clicked) == recipe
    assert Recipe("attention", "plain").suited_to(train).settings == {}
    assert Recipe("ncf", "ipw").suited_to(train).settings == {}


def test_a_fit_says_what_it_was_trained_with() -> None:
    fitted = towpath.fit(small_log(), "mf", "plain", epochs=1)
    assert fitted.recipe is not None
    assert fitted.recipe.settings["l2"] == METHODS["plain"].on_impressions["mf"]["l2"]
