"""Lists out of an artifact: own ids, nothing seen, and a fallback that says so."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from contracts import SCORERS
from small import small_split
from towpath.errors import ConfigError, DataError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.scorer import context_of
from towpath.serving.artifact import artifact_of, save_artifact
from towpath.serving.recommender import Recommender, load

SPLIT = small_split()


def recommender(model: str) -> Recommender:
    quick = {"epochs": 2}
    return Recommender(artifact_of(fit(SPLIT, Recipe(model, settings={**SCORERS[model], **quick})), SPLIT))


def items_of(user: str) -> set[str]:
    code = SPLIT.train.user_ids.code(user)
    parts = (SPLIT.train, SPLIT.validation, SPLIT.test)
    return {i for part in parts for i in part.item_ids.ids(part.items[part.users == code])}


@pytest.mark.parametrize("model", SCORERS)
def test_seen_items_are_hidden_and_scores_fall(model: str) -> None:
    for user in ("u0", "u59"):
        answer = recommender(model).recommend(user, k=12)
        assert answer.user == user
        assert not answer.fallback
        assert len(answer.items) == len(set(answer.items)) == 12
        assert not items_of(user) & set(answer.items)
        assert list(answer.scores) == sorted(answer.scores, reverse=True)


@pytest.mark.parametrize("model", SCORERS)
def test_scores_are_those_of_the_model(model: str) -> None:
    served = recommender(model)
    answer = served.recommend("u3", k=5)
    scorer, past = served.artifact.scorer, served.artifact.history
    items = torch.from_numpy(served.artifact.item_ids.codes(answer.items))[None, :]
    scores = scorer.score(context_of(scorer, np.array([3]), past.histories), items)
    assert answer.scores == pytest.approx(scores[0].tolist(), abs=1e-6)


@pytest.mark.parametrize("model", SCORERS)
def test_many_at_once_are_the_same_as_one_by_one(model: str) -> None:
    served = recommender(model)
    users = ["u5", "nobody", "u1", "u5"]
    together = served.recommend_many(users, k=6)
    for user, answer in zip(users, together, strict=True):
        alone = served.recommend(user, k=6)
        assert answer.items == alone.items
        assert answer.scores == pytest.approx(alone.scores, abs=1e-6)
        assert answer.fallback == alone.fallback
    assert served.recommend_many([], k=6) == []


def test_blocks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    served, users = recommender("ease"), [f"u{n}" for n in range(60)]
    whole = served.recommend_many(users, k=5)
    monkeypatch.setattr("towpath.ranking.blocks.rows_per_block", lambda items: 7)
    assert [a.items for a in served.recommend_many(users, k=5)] == [a.items for a in whole]


def test_unknown_users_get_the_most_popular_items_and_are_told() -> None:
    answer = recommender("mf").recommend("nobody", k=5)
    counts = SPLIT.train.item_counts
    best = np.lexsort((np.arange(len(counts)), -counts))[:5]
    assert answer.fallback
    assert list(answer.items) == SPLIT.train.item_ids.ids(best)
    assert list(answer.scores) == counts[best].tolist()


def test_users_without_training_events_get_the_fallback_without_what_they_had() -> None:
    served = recommender("mf")
    past = replace(served.artifact.history, trained=np.arange(60) != 2)
    answer = Recommender(replace(served.artifact, history=past)).recommend("u2", k=8)
    assert answer.fallback
    assert not items_of("u2") & set(answer.items)


def test_a_user_who_has_had_nearly_everything_gets_a_short_list() -> None:
    answer = recommender("mf").recommend("u2", k=40)
    assert len(answer.items) == 40 - 12
    assert set(answer.items) | items_of("u2") == set(SPLIT.train.item_ids.ids(np.arange(40)))


@pytest.mark.parametrize("k", [0, -3, 41])
def test_a_length_that_cannot_be(k: int) -> None:
    served = recommender("ease")
    for ask in (served.recommend, served.similar):
        with pytest.raises(ConfigError, match=f"between 1 and the 40 items of the catalogue, and {k} was"):
            ask("i1", k)


@pytest.mark.parametrize("model", ["mf", "ease"])
def test_similar_items_without_the_item_itself(model: str) -> None:
    served = recommender(model)
    answer = served.similar("i4", k=39)
    assert answer.item == "i4"
    assert set(answer.items) == set(served.artifact.item_ids.ids(np.arange(40))) - {"i4"}
    assert list(answer.scores) == sorted(answer.scores, reverse=True)


def test_asking_for_similar_items_leaves_the_model_alone() -> None:
    served = recommender("ease")
    before = {name: tensor.clone() for name, tensor in served.artifact.scorer.state_dict().items()}
    served.similar("i4")
    served.recommend("u1")
    for name, tensor in served.artifact.scorer.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_an_unknown_item_is_an_error() -> None:
    with pytest.raises(DataError, match="There is no item 'film' among the 40 items"):
        recommender("ease").similar("film")


def test_popularity_knows_no_similar_items() -> None:
    with pytest.raises(ConfigError, match="fit mf or ease"):
        recommender("popularity").similar("i4")


def test_loaded_from_a_folder(tmp_path: Path) -> None:
    served = recommender("ease")
    save_artifact(served.artifact, tmp_path / "a")
    assert load(tmp_path / "a").recommend("u1") == served.recommend("u1")
    assert load(str(tmp_path / "a")).similar("i1") == served.similar("i1")
