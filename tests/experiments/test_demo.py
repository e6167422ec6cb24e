import numpy as np
import pytest

from towpath.experiments.demo import K, demonstrate, recipes, steps
from towpath.methods.recipe import Recipe
from towpath.worlds.latent import LatentWorld

SMALL = LatentWorld(users=150, items=120, shown_per_user=30)
QUICK = {"popularity": Recipe("popularity"), "mf": Recipe("mf", settings={"epochs": 2, "embedding_dim": 4})}


@pytest.fixture(scope="module")
def told():
    heard = []
    return demonstrate(SMALL, 0, compared=QUICK, watch=heard.append), heard


def test_nothing_beats_the_best_possible_list(told):
    demo, _ = told
    oracle = demo.oracle()
    for trial in demo.trials:
        assert oracle["blind choice"] < trial.mean("rel") < oracle["best possible"]


def test_popularity_earns_what_the_world_says_it_would(told):
    demo, _ = told
    # The same lists by another way: counts of the training part, seen items hidden.
    counts = np.tile(demo.split.train.item_counts.astype(float), (SMALL.users, 1))
    for seen in (demo.split.train, demo.split.validation):
        counts[seen.users, seen.items] = -1
    best = -np.sort(-counts, axis=1)[:, :K].sum(axis=1)
    trial = next(t for t in demo.trials if t.name == "popularity")
    users = trial.full[0].users
    shares = best[users].sum() / (K * len(users))
    assert trial.mean("popularity") * np.count_nonzero(demo.split.train.histories.lengths) == pytest.approx(
        shares
    )


def test_differences_are_to_the_baseline_and_paired(told):
    demo, _ = told
    popularity, mf = demo.trials
    (gap,) = [d for d in demo.comparison.differences if d.metric == "rel"]
    assert (gap.a, gap.b) == ("popularity", "mf")
    assert gap.mean == pytest.approx(popularity.mean("rel") - mf.mean("rel"))
    assert gap.low <= gap.mean <= gap.high


def test_seeds_differ_only_where_something_is_trained(told):
    popularity, mf = told[0].trials
    assert len({run.metrics()["rel"] for run in popularity.full}) == 1
    assert len({run.metrics()["rel"] for run in mf.full}) == len(mf.full) == 3


def test_what_was_tried_is_a_share(told):
    assert all(0 < trial.tried_share < 1 for trial in told[0].trials)


def test_every_step_is_said(told):
    assert 0 < len(told[1]) <= steps(QUICK)
    assert told[1][-1] == "Comparing"


def test_every_recipe_has_settings_that_exist():
    assert list(recipes()) == ["popularity", "ease", "mf", "transport"]
    for recipe in recipes().values():
        recipe.resolve()
