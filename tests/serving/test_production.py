"""Refit and update: everything is learned from, old ids keep what they had, new ones join."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

import towpath
from contracts import SCORERS
from small import small_interactions, small_split
from towpath.data.growing import grow
from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.data.vocabulary import Vocabulary
from towpath.data.whole import whole_split
from towpath.errors import ConfigError, DataError
from towpath.methods.recipe import Recipe
from towpath.methods.run import FixedEpochs, fit
from towpath.models.growth import take_over
from towpath.serving.production import refit_run, update_run
from towpath.serving.run import Plan, Run, open_run

SPLIT = small_split()
FAST = {"epochs": 4, "embedding_dim": 4, "batch_size": 64}


def run_of(folder: Path, model: str = "mf", split: Split = SPLIT, **settings: object) -> Run:
    chosen = {**SCORERS[model], **settings}
    plan = Plan(split, Recipe(model, settings=chosen), {"source": "made", "repeats": "first"})
    run = open_run(folder, plan, resume=False)
    run.train(plan)
    return run


def new_events(pairs: list[tuple[str, str]], labels: list[bool] | None = None) -> Interactions:
    users, items = (list(dict.fromkeys(side)) for side in zip(*pairs, strict=True))
    order = sorted(range(len(pairs)), key=lambda n: users.index(pairs[n][0]))
    table = Interactions(
        np.array([users.index(pairs[n][0]) for n in order], np.int32),
        np.array([items.index(pairs[n][1]) for n in order], np.int32),
        Vocabulary(pa.array(users)),
        Vocabulary(pa.array(items)),
        np.full(len(pairs), 100, np.int64),
        labels=None if labels is None else np.array([labels[n] for n in order]),
    )
    return table.positives


def test_everything_is_for_training_but_a_test_file() -> None:
    whole = whole_split(SPLIT)
    assert len(whole.train) == 720
    assert len(whole.validation) == len(whole.test) == 0
    assert np.array_equal(whole.train.items, small_interactions().items)  # in the order of time
    assert len(whole_split(replace(SPLIT, outside=("test",))).train) == 660


def test_impressions_stay_with_their_positives() -> None:
    shown = new_events([("u0", "i1"), ("u0", "i2"), ("u1", "i1")], [True, False, True])
    none = shown.rows.where(np.zeros(3, bool)).positives
    plain = replace(shown, impressions=None)
    for parts in ((shown, none, none), (shown, replace(plain, items=plain.items + 1), none)):
        whole = whole_split(Split(*parts, "by hand"))
        positives = sum(len(part) for part in parts)
        assert len(whole.train) == positives
        assert len(whole.train.rows) == positives + 1
        assert whole.train.rows.labels.sum() == positives


@pytest.mark.parametrize("model", ["mf", "ease", "attention"])
def test_refit_is_the_recipe_on_everything_for_the_chosen_epochs(model: str) -> None:
    done = towpath.fit(SPLIT, model, **{**SCORERS[model], "epochs": 3})
    final = towpath.refit(done, SPLIT)
    again = fit(whole_split(SPLIT), done.recipe, fixed=FixedEpochs(done.best_epoch))
    assert len(final.history) == done.best_epoch
    assert all("validation_hit" not in row for row in final.history)
    for name, tensor in final.scorer.state_dict().items():
        assert torch.equal(tensor, again.scorer.state_dict()[name])
    served = towpath.recommender(final, SPLIT)
    assert served.artifact.history.item_counts.sum() == 720
    with pytest.raises(ConfigError, match="nothing is left to test it on"):
        towpath.evaluate(final, SPLIT)
    with pytest.raises(ConfigError, match="nothing is left to test it on"):
        towpath.evaluate(served, SPLIT)


def test_refit_needs_a_recipe_and_a_split() -> None:
    done = towpath.fit(SPLIT, "ease", ridge=1.0)
    for arguments in ((replace(done, recipe=None), SPLIT), (done, None)):
        with pytest.raises(ConfigError, match="refit takes a fit that towpath"):
            towpath.refit(*arguments)


def test_the_step_size_falls_as_in_the_run() -> None:
    """Epoch 2 of 8 has the step size that it had in the run, not that of epoch 2 of 2."""
    recipe = Recipe("mf", settings=FAST | {"epochs": 8, "final_lr_factor": 0.0, "patience": 9})
    whole = fit(SPLIT, recipe)
    two = fit(SPLIT, recipe, fixed=FixedEpochs(2))
    assert [row["loss"] for row in two.history] == [row["loss"] for row in whole.history[:2]]


def test_a_refitted_run(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", **FAST)
    final = refit_run(run, tmp_path / "final")
    best = run.artifact.about["best_epoch"]
    assert len(final.history) == best
    assert final.record["data"]["made_from"] == str(tmp_path / "run")
    assert len(final.split.train) == 720
    assert final.artifact.history.item_counts.tolist() == small_interactions().item_counts.tolist()
    by_hand = towpath.refit(tmp_path / "run")
    for name, tensor in final.artifact.scorer.state_dict().items():
        assert torch.equal(tensor, by_hand.scorer.state_dict()[name])
    with pytest.raises(ConfigError, match="trained on all of its events already; refit the run"):
        refit_run(final, tmp_path / "again")
    with pytest.raises(ConfigError, match="nothing is left to test it on"):
        towpath.evaluate(towpath.load(tmp_path / "final"), SPLIT)


def test_codes_stay_and_new_ones_follow() -> None:
    new = new_events([("u3", "new"), ("ann", "i5"), ("ann", "new")])
    grown, added = grow(whole_split(SPLIT).train, new, keep_repeats=False)
    assert (added.rows, added.users, added.items, added.repeated) == (3, 1, 1, 0)
    assert grown.user_ids.ids(np.array([0, 59, 60])) == ["u0", "u59", "ann"]
    assert grown.item_ids.ids(np.array([39, 40])) == ["i39", "new"]
    assert len(grown) == 723
    assert grown.items[grown.users == 60].tolist() == [5, 40]
    assert grown.items[grown.users == 3][-1] == 40  # the latest comes last
    assert (np.diff(grown.users) >= 0).all()


def test_repeated_pairs_are_left_out_and_clicks_win() -> None:
    old = new_events([("a", "x"), ("a", "y"), ("b", "x")], [True, False, False])
    new = new_events([("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")], [True, True, False, False])
    grown, added = grow(old, new, keep_repeats=False)
    assert (added.rows, added.repeated) == (2, 2)
    pairs = zip(grown.rows.users.tolist(), grown.rows.items.tolist(), grown.rows.labels.tolist(), strict=True)
    assert sorted(pairs) == [(0, 0, True), (0, 1, True), (1, 0, False), (1, 1, False)]
    both, added = grow(old, new, keep_repeats=True)
    assert (len(both.rows), added.repeated) == (7, 0)


def test_nothing_new_and_ids_of_another_kind() -> None:
    old = whole_split(SPLIT).train
    first = small_interactions()
    pair = first.item_ids.ids(first.items[:1])[0]
    with pytest.raises(DataError, match="Each of the 1 new rows repeats a pair"):
        grow(old, new_events([("u0", pair)]), keep_repeats=False)
    numbered = replace(old, user_ids=Vocabulary(pa.array(range(60))))
    with pytest.raises(DataError, match="New user ids should be written like the old ones, which are int64"):
        grow(numbered, new_events([("ann", "i1")]), keep_repeats=False)


def test_slates_of_new_events_are_new_slates() -> None:
    old = replace(new_events([("a", "x"), ("b", "y")]), requests=np.array([0, 1]))
    new = replace(new_events([("a", "y")]), requests=np.array([0]))
    assert sorted(grow(old, new, keep_repeats=False)[0].requests.tolist()) == [0, 1, 2]


@pytest.mark.parametrize("model", ["mf", "gmf", "mlp", "ncf", "attention", "wide_deep"])
def test_old_rows_are_taken_over_and_new_ones_are_their_mean(model: str) -> None:
    old = towpath.fit(SPLIT, model, **{**SCORERS[model], "epochs": 1}).scorer
    new = towpath.fit(small_split(users=61, items=42), model, **{**SCORERS[model], "epochs": 1}).scorer
    take_over(old, new)
    learned = dict(old.named_parameters())
    grown = 0
    for name, parameter in new.named_parameters():
        if parameter.shape == learned[name].shape:
            assert torch.equal(parameter, learned[name])
            continue
        rows = len(learned[name])
        assert torch.equal(parameter[:rows], learned[name])
        assert torch.allclose(parameter[rows:], learned[name].mean(0).expand_as(parameter[rows:]))
        grown += 1
    assert grown == {"mf": 2, "gmf": 2, "mlp": 2, "ncf": 4, "attention": 1, "wide_deep": 4}[model]


def test_models_of_another_shape_are_refused() -> None:
    one, other = (towpath.fit(SPLIT, "mf", epochs=1, embedding_dim=d).scorer for d in (4, 8))
    with pytest.raises(ConfigError, match=r"users.weight has another shape than before; fit again"):
        take_over(one, other)


@pytest.mark.parametrize("model", ["mf", "ease", "attention"])
def test_an_updated_run(model: str, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", model, epochs=2)
    new = new_events([("ann", f"i{n}") for n in (1, 3, 5)] + [("u4", "new")])
    made, added = update_run(run, new, tmp_path / "next", epochs=2)
    assert (added.users, added.items) == (1, 1)
    assert len(made.history) == (0 if model == "ease" else 2)
    served = towpath.load(tmp_path / "next")
    answer = served.recommend("ann", 10)
    assert answer.how == "model"
    assert not {"i1", "i3", "i5"} & set(answer.items)
    assert "new" not in served.recommend("u4", 41).items
    assert "new" in served.recommend("u5", 41).items
    again, _ = update_run(made, new_events([("bob", "new")]), tmp_path / "third", epochs=1)
    assert len(again.split.train) == len(made.split.train) + 1
    with pytest.raises(ConfigError, match="refit the run that it was made from"):
        refit_run(made, tmp_path / "fourth")


def test_an_update_goes_on_from_what_was_learned(tmp_path: Path) -> None:
    """After a tiny step, vectors are nearly those of the run; a fit anew would be somewhere else."""
    run = run_of(tmp_path / "run", **FAST, learning_rate=1e-6)
    made, _ = update_run(run, new_events([("ann", "i1"), ("ann", "i2")]), tmp_path / "next", epochs=1)
    before, after = (one.artifact.scorer.users.weight for one in (run, made))
    assert torch.allclose(after[:60], before, atol=1e-4)
    assert torch.allclose(after[60], before.mean(0), atol=1e-4)
