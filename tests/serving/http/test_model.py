from dataclasses import replace

import numpy as np
import pytest
import torch

from contracts import SCORERS
from served import SPLIT, save_model
from towpath.rng import Rng
from towpath.serving.http.answers import Answerer
from towpath.serving.http.messages import RecommendBody, SimilarBody
from towpath.serving.http.model import load_model
from towpath.serving.http.settings import ArmSettings, ServerSettings
from towpath.serving.recommender import load

USERS = [f"u{n}" for n in range(60)] + ["nobody"]


def answerer(folder, seen=()):
    settings = ServerSettings((ArmSettings("only", str(folder)),), None)
    return Answerer(settings, {"only": load_model(folder)}, lambda user: seen, lambda: 7, Rng(0).numpy("x"))


@pytest.mark.parametrize("model", SCORERS)
def test_lists_are_those_of_the_recommender(model, tmp_path):
    folder = save_model(tmp_path / model, model)
    served, recommender = answerer(folder), load(folder)
    for user in USERS:
        for k in (1, 10, 40):
            mine = served.recommend(RecommendBody(user, k)).answer
            theirs = recommender.recommend(user, k)
            assert [slot.id for slot in mine.items] == list(theirs.items)
            assert [slot.score for slot in mine.items] == pytest.approx(theirs.scores, abs=1e-4)
            assert mine.fallback == theirs.fallback
            assert [slot.position for slot in mine.items] == list(range(1, len(mine.items) + 1))


@pytest.mark.parametrize("model", ["mf", "ease"])
def test_similar_items_are_those_of_the_recommender(model, tmp_path):
    folder = save_model(tmp_path / model, model)
    served, recommender = answerer(folder), load(folder)
    for item in SPLIT.train.item_ids.ids(np.arange(40)):
        mine = served.similar(SimilarBody(item, 7)).answer
        assert [slot.id for slot in mine.items] == list(recommender.similar(item, 7).items)


def test_equal_scores_are_in_the_recommenders_order(tmp_path):
    folder = save_model(tmp_path / "mf")
    recommender, served = load(folder), answerer(folder)
    model, scorer = served.models["only"], recommender.artifact.scorer
    with torch.no_grad():
        scorer.items.weight[::2] = scorer.items.weight[0]  # half of the catalogue ties
    model._scorer = scorer
    model._tables = replace(model._tables, items=scorer.items.weight[:, :-1].T.detach().numpy().copy())
    for user in USERS:
        mine = served.recommend(RecommendBody(user, 12)).answer
        assert [slot.id for slot in mine.items] == list(recommender.recommend(user, 12).items)


def test_seen_history_candidates_and_exclusions_are_heeded(tmp_path):
    folder = save_model(tmp_path / "mf")
    plain = [slot.id for slot in answerer(folder).recommend(RecommendBody("u3", 10)).answer.items]

    def asked(seen=(), **more):
        return [
            slot.id for slot in answerer(folder, seen).recommend(RecommendBody("u3", 10, **more)).answer.items
        ]

    assert plain[0] not in asked(seen=[plain[0], "gone"])
    assert asked(exclude=[plain[1], "gone"])[:2] == [plain[0], plain[2]]
    assert asked(candidates=[plain[5], plain[2], "gone"]) == [plain[2], plain[5]]
    assert asked(candidates=[]) == []
    # A history in the request takes the place of the one in the training data, so that one may come again.
    assert set(asked(history=[plain[0]])) - set(plain)
    assert plain[0] not in asked(history=[plain[0]])


@pytest.mark.parametrize("model", SCORERS)
def test_lists_after_a_history_are_those_of_the_recommender(model, tmp_path):
    folder = save_model(tmp_path / model, model)
    served, recommender = answerer(folder), load(folder)
    for user in ("nobody", "u3", "u4"):
        for history in (["i1", "i3", "i5"], ["i8", "unknown", "i2"], [], ["i7"] * 3):
            mine = served.recommend(RecommendBody(user, 10, history=history)).answer
            theirs = recommender.recommend(user, 10, history=history)
            assert [slot.id for slot in mine.items] == list(theirs.items)
            assert mine.fallback == theirs.fallback


@pytest.mark.parametrize("model", ["mf", "ease", "attention"])
def test_a_stranger_is_known_by_what_they_have_clicked_here(model, tmp_path):
    folder = save_model(tmp_path / model, model)
    assert answerer(folder).recommend(RecommendBody("nobody", 5)).answer.fallback
    after = answerer(folder, ["i1", "i3"]).recommend(RecommendBody("nobody", 5)).answer
    theirs = load(folder).recommend("nobody", 5, history=["i1", "i3"])
    assert [slot.id for slot in after.items] == list(theirs.items)
    assert not after.fallback


def test_a_history_that_the_model_does_not_know_counts_as_none(tmp_path):
    served = answerer(save_model(tmp_path / "mf"))
    for user in ("nobody", "u3"):
        asked = [served.recommend(RecommendBody(user, 5, history=h)).answer for h in (None, ["gone"])]
        assert asked[0].items == asked[1].items
        assert asked[0].fallback == asked[1].fallback
