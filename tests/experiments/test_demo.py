import numpy as np
import pytest

from towpath.experiments.demo import ROUNDS, SEEDS, K, demonstrate, recipes, steps
from towpath.methods.recipe import Recipe
from towpath.worlds.latent import LatentWorld

SMALL = LatentWorld(users=150, items=120, shown_per_user=30)
QUICK = {
    "popularity": Recipe("popularity"),
    "plain": Recipe("mf", settings={"epochs": 2, "embedding_dim": 4}),
}


@pytest.fixture(scope="module")
def told():
    heard = []
    return demonstrate(SMALL, 0, compared=QUICK, on_progress=heard.append), heard


def test_nothing_beats_the_best_possible_list(told):
    demo, _ = told
    oracle = demo.oracle()
    for trial in demo.results:
        assert oracle["random choice"] < trial.mean("rel") < oracle["best possible"]


def test_popularity_earns_what_the_world_says_it_would(told):
    demo, _ = told
    # The same lists by another way: counts of the training part, seen items hidden.
    counts = np.tile(demo.split.train.item_counts.astype(float), (SMALL.users, 1))
    for seen in (demo.split.train, demo.split.validation):
        counts[seen.users, seen.items] = -1
    best = -np.sort(-counts, axis=1)[:, :K].sum(axis=1)
    trial = next(t for t in demo.results if t.name == "popularity")
    users = trial.full[0].users
    shares = best[users].sum() / (K * len(users))
    assert trial.mean("popularity") * np.count_nonzero(demo.split.train.histories.lengths) == pytest.approx(
        shares
    )


def test_differences_are_to_the_baseline_and_paired(told):
    demo, _ = told
    popularity, plain = demo.results
    (gap,) = [d for d in demo.comparison.differences if d.metric == "rel"]
    assert (gap.a, gap.b) == ("popularity", "plain")
    assert gap.estimate.mean == pytest.approx(popularity.mean("rel") - plain.mean("rel"))
    assert gap.estimate.covers(gap.estimate.mean)


def test_seeds_differ_only_where_something_is_trained(told):
    popularity, plain = told[0].results
    assert len({run.metrics()["rel"] for run in popularity.full}) == 1
    assert len({run.metrics()["rel"] for run in plain.full}) == len(plain.full) == SEEDS


def test_what_was_tried_is_a_share(told):
    assert all(0 < trial.tried_share < 1 for trial in told[0].results)


def test_every_step_is_said(told):
    assert 0 < len(told[1]) <= steps(QUICK)
    assert f"Deployed plain, round {ROUNDS} of {ROUNDS}" in told[1]
    assert told[1][-1] == "Learning from a log of which 100% is random"


def test_every_recipe_has_settings_that_exist():
    assert list(recipes()) == ["popularity", "plain", "ipw", "shown", "imitation", "transport"]
    for recipe in recipes().values():
        recipe.resolve()


def test_the_baseline_is_deployed(told):
    demo, _ = told
    assert demo.arms == ["plain"]
    assert [one.number for one in demo.rounds_of("plain")] == [1, 2, 3]
    assert all(one.relevance <= one.best for one in demo.rounds)


def test_the_example_is_the_list_that_was_evaluated(told):
    demo, _ = told
    for trial in demo.results:
        user = trial.full[0].users[0]
        assert len(set(trial.example.tolist())) == K
        assert demo.world.relevance[user, trial.example].sum() == pytest.approx(
            trial.full[0].per_user["rel"][0], rel=1e-5
        )


def test_the_dial_goes_from_no_overlap_to_full(told):
    demo, _ = told
    assert [one.exploration for one in demo.overlap] == [0.0, 0.5, 1.0]
    assert all(set(one.clicks) == {"plain"} and one.clicks["plain"] > 0 for one in demo.overlap)
