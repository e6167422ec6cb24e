from dataclasses import replace

import numpy as np
import pytest
import torch

from small import small_split
from small_impressions import small_log
from towpath.baselines.propensity import (
    GivenPropensity,
    ModelPropensity,
    PropensitySettings,
    make_propensity,
    popularity_propensity,
)
from towpath.data.interactions import Interactions
from towpath.errors import DataError
from towpath.models.scorer import Context
from towpath.rng import Rng
from towpath.training.batches import Batch

TRAIN = small_split().train


def logged(train: Interactions = TRAIN) -> Interactions:
    """The same events, each with a propensity of its own."""
    return replace(train, propensities=np.linspace(0.05, 1, len(train), dtype=np.float32))


def batch_of(users: list[int], items: list[list[int]], labels: list[list[int]]) -> Batch:
    context = Context(torch.tensor(users), torch.zeros(len(users), 0, dtype=torch.long))
    return Batch(context, torch.tensor(items), torch.tensor(labels, dtype=torch.float32))


def test_popularity_by_hand() -> None:
    few = TRAIN.where(np.isin(np.arange(len(TRAIN)), [0, 10, 20, 30]))
    few = replace(few, items=np.array([3, 3, 3, 7], dtype=np.int32))
    found = popularity_propensity(few, power=0.5)
    assert found[[3, 7, 0]].tolist() == pytest.approx([1.0, (1 / 3) ** 0.5, 0.0])
    assert popularity_propensity(few, power=0.0)[[3, 7, 0]].tolist() == [1, 1, 0]


def test_popularity_knows_nothing_of_other_parts_and_keeps_the_places_of_items() -> None:
    found = popularity_propensity(TRAIN, power=1.0)
    counts = np.bincount(TRAIN.items, minlength=TRAIN.n_items)
    assert found.shape == (TRAIN.n_items,)
    np.testing.assert_allclose(found.numpy(), counts / counts.max(), rtol=1e-6)


def test_unless_told_otherwise_the_best_source_of_the_log_counts() -> None:
    train = small_log().train
    log = train.rows
    row = int(np.flatnonzero(~log.labels)[5])
    pair = batch_of([int(log.users[row])], [[int(log.items[row])]], [[0]])
    auto = PropensitySettings()
    assert float(make_propensity(train, auto, Rng(0))(pair)) == pytest.approx(log.propensities[row], rel=1e-5)
    bare = replace(train, propensities=None, impressions=replace(log, propensities=None))
    shown = np.bincount(log.items, minlength=log.n_items)
    wanted = (shown[log.items[row]] / shown.max()) ** 0.5
    assert float(make_propensity(bare, auto, Rng(0))(pair)) == pytest.approx(wanted, rel=1e-5)
    clicks = make_propensity(TRAIN, auto, Rng(0)).items
    assert torch.equal(clicks, popularity_propensity(TRAIN, power=0.5))


def test_given_propensities_belong_to_their_pairs() -> None:
    train = logged()
    propensity = GivenPropensity(train)
    rows = np.array([3, 100, 250])
    found = propensity(
        batch_of(
            train.users[rows].tolist(), [[i, 0] for i in train.items[rows].tolist()], [[1, 0]] * len(rows)
        )
    )
    np.testing.assert_allclose(found[:, 0].numpy(), train.propensities[rows], rtol=1e-6)


def test_given_propensities_are_found_when_all_users_share_the_catalogue() -> None:
    train = logged()
    users = [4, 9]
    labels = torch.zeros(2, train.n_items)
    rows = np.flatnonzero(np.isin(train.users, users))
    labels[np.searchsorted(users, train.users[rows]), train.items[rows]] = 1
    found = GivenPropensity(train)(batch_of(users, [list(range(train.n_items))], labels.tolist()))
    places = np.searchsorted(users, train.users[rows]), train.items[rows]
    np.testing.assert_allclose(found.numpy()[places], train.propensities[rows], rtol=1e-6)


def test_a_pair_that_was_not_logged_gets_the_harmonic_mean_of_its_item() -> None:
    train = logged()
    item = int(train.items[0])
    mine = train.propensities[train.items == item]
    other = next(u for u in range(train.n_users) if item not in train.items[train.users == u])
    found = GivenPropensity(train)(batch_of([other], [[item]], [[0]]))
    assert float(found) == pytest.approx(len(mine) / (1 / mine).sum(), rel=1e-5)


def test_what_was_shown_and_not_clicked_has_its_own_propensity() -> None:
    train = small_log().train
    log = train.rows
    row = int(np.flatnonzero(~log.labels)[5])
    found = GivenPropensity(train)(batch_of([int(log.users[row])], [[int(log.items[row])]], [[0]]))
    assert float(found) == pytest.approx(float(log.propensities[row]), rel=1e-5)


def test_the_harmonic_mean_estimates_the_mean_chance_of_an_item() -> None:
    """Logged pairs are those that were shown; the plain mean over them would favour the likely ones."""
    draw = np.random.default_rng(0)
    chances = draw.uniform(0.1, 1, size=(4000, 1)).astype(np.float32)
    shown = np.flatnonzero(draw.random(4000) < chances[:, 0])
    some = small_split(users=4000, per_user=4, items=8).train
    log = replace(
        some.where(np.isin(np.arange(len(some)), np.arange(len(shown)))),
        users=shown.astype(np.int32),
        items=np.zeros(len(shown), dtype=np.int32),
        times=None,
        propensities=chances[shown, 0],
    )
    found = float(GivenPropensity(log).items[0])
    assert found == pytest.approx(chances.mean(), abs=0.02)
    assert abs(chances[shown].mean() - chances.mean()) > 0.05


def test_without_a_column_nothing_is_assumed() -> None:
    with pytest.raises(DataError, match=r"each of the 600 training interactions.*no propensity column"):
        make_propensity(TRAIN, PropensitySettings(propensity="given"), Rng(0))


def test_missing_propensities_are_counted_and_shown() -> None:
    train = logged()
    train.propensities[[7, 19]] = np.nan
    user, item = f"u{train.users[7]}", f"i{train.items[7]}"
    with pytest.raises(DataError, match=rf"; 2 of 600 have none \(first: user '{user}', item '{item}'\)"):
        make_propensity(train, PropensitySettings(propensity="given"), Rng(0))


def test_a_modelled_propensity_prefers_what_is_taken_and_is_at_most_one() -> None:
    propensity = ModelPropensity(TRAIN, PropensitySettings(propensity="model", exposure_epochs=150), Rng(0))
    propensity.fit(TRAIN)
    everyone = list(range(TRAIN.n_users))
    whole = propensity(
        batch_of(everyone, [list(range(TRAIN.n_items))], [[0] * TRAIN.n_items] * len(everyone))
    )
    taken = torch.zeros_like(whole, dtype=torch.bool)
    taken[TRAIN.users, TRAIN.items] = True
    assert whole[taken].mean() > 1.1 * whole[~taken].mean()
    assert float(whole[taken].max()) == pytest.approx(1)
    assert whole.min() > 0
    assert whole.max() <= 1


def test_a_modelled_propensity_does_not_depend_on_who_else_draws() -> None:
    rng = Rng(3)
    one, two = (ModelPropensity(TRAIN, PropensitySettings(propensity="model"), rng) for _ in range(2))
    one.fit(TRAIN)
    rng.numpy("order", 1).random(5)
    two.fit(TRAIN)
    assert all(torch.equal(v, two.state_dict()[k]) for k, v in one.state_dict().items())
