import numpy as np
import pytest
import torch

from small import small_split
from towpath.diagnostics.weights import binned, critic_values, weigh_pairs
from towpath.errors import ArtifactError, ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.transport.weights import bounded_weight

SPLIT = small_split()
FAST = {"batch_size": 64, "epochs": 3, "embedding_dim": 8, "patience": 9, "hard_negative_depth": 20}


def weighed(**settings):
    recipe = Recipe("mf", "transport", FAST | settings)
    fitted = fit(SPLIT, recipe)
    return weigh_pairs(fitted.scorer, fitted.auxiliary_state, SPLIT.train, recipe), fitted


def test_weights_are_the_kept_function_of_the_margin():
    recipe, (a, b, c) = Recipe("mf", "transport", FAST), (0.3, 20.0, -15.0)  # margins are small
    fitted = fit(SPLIT, recipe)
    pairs = weigh_pairs(fitted.scorer, {"w.line": torch.tensor([a, b, c])}, SPLIT.train, recipe)
    margins = torch.from_numpy(pairs.margins)
    expected = bounded_weight(a + b * margins + c * margins.clamp(min=0), 0.7, 1.5).numpy()
    reweight_mask = pairs.reweight_mask
    assert np.array_equal(reweight_mask, ~pairs.interacted)  # unlabelled pairs only, by default
    assert pairs.weights[reweight_mask] == pytest.approx(
        expected[reweight_mask] / expected[reweight_mask].mean(), abs=1e-5
    )
    assert (pairs.weights[~reweight_mask] == 1).all()
    assert pairs.weights[reweight_mask].std() > 0.01


def test_pairs_are_drawn_as_training_draws_them():
    pairs, _ = weighed(negatives=3)
    interacted = SPLIT.train.pair_keys()
    assert pairs.interacted.mean() == pytest.approx(1 / 4)  # one positive and three negatives
    assert np.array_equal(
        np.isin(pairs.users * SPLIT.train.n_items + pairs.items, interacted), pairs.interacted
    )
    assert 0 < pairs.shown.mean() < 1


@pytest.mark.parametrize(
    "settings",
    [
        {"players": "models", "reweight": "all"},
        {"players": "models", "w": "gmf", "domain": "sampled", "pool": 20},
        {"pairs": "catalogue", "hard_negatives": 0, "domain": "ranking"},
    ],
)
def test_every_way_to_play_can_be_looked_at(settings):
    pairs, _ = weighed(**settings)
    assert pairs.weights[pairs.reweight_mask].mean() == pytest.approx(1)
    assert np.isfinite(pairs.weights).all()
    assert pairs.reweight_mask[pairs.interacted].any() == (settings.get("reweight") == "all")


def test_the_same_run_gives_the_same_weights():
    recipe = Recipe("mf", "transport", FAST)
    fitted = fit(SPLIT, recipe)
    one, again = (weigh_pairs(fitted.scorer, fitted.auxiliary_state, SPLIT.train, recipe) for _ in range(2))
    assert np.array_equal(one.weights, again.weights)
    assert np.array_equal(one.items, again.items)


def test_methods_without_w_and_players_of_another_form_are_refused():
    fitted = fit(SPLIT, Recipe("mf", "plain", FAST))
    with pytest.raises(ConfigError, match="'plain' has no w"):
        weigh_pairs(fitted.scorer, {}, SPLIT.train, Recipe("mf", "plain", FAST))
    with pytest.raises(ArtifactError, match="does not fit its settings"):
        weigh_pairs(fitted.scorer, {"w.line": torch.zeros(5)}, SPLIT.train, Recipe("mf", "transport", FAST))


def test_bins_hold_every_pair_once_and_keep_equal_ones_together():
    x = np.array([1, 1, 1, 1, 2, 3, 4, 5])
    bins = binned(x, np.arange(8.0), bins=4)
    assert sum(weight.n for _, weight in bins) == 8
    x, weight = bins[0]
    assert (x, weight.n, weight.mean) == (1, 4, 1.5)
    assert [x for x, _ in bins] == sorted(x for x, _ in bins)
    ((_, only),) = binned(np.ones(5), np.arange(5.0))
    assert (only.low, only.high) == pytest.approx((0.4, 3.6))


@pytest.mark.parametrize("lipschitz", ["max-norm", "frozen"])
def test_a_critic_that_is_a_model_can_be_asked_about_any_pair(lipschitz):
    recipe = Recipe("mf", "transport", FAST | {"players": "models", "lipschitz": lipschitz})
    fitted = fit(SPLIT, recipe)
    critic = critic_values(fitted.scorer, fitted.auxiliary_state, SPLIT.train, recipe)
    users, items = np.array([0, 1, 1]), np.array([3, 3, 4])
    assert critic(users, items).shape == (3,)
    assert np.array_equal(critic(users, items)[::-1], critic(np.flip(users).copy(), np.flip(items).copy()))
    assert len(np.unique(critic(users, items))) == 3


def test_a_critic_of_margins_and_methods_without_a_critic_have_none_to_ask():
    for recipe in (Recipe("mf", "transport", FAST), Recipe("mf", "plain", {"epochs": 1})):
        fitted = fit(SPLIT, recipe)
        assert critic_values(fitted.scorer, fitted.auxiliary_state, SPLIT.train, recipe) is None
