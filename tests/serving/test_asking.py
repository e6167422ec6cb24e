"""What can be asked of a recommender: histories, candidates, what was shown, scores, many items."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import towpath
from contracts import SCORERS
from small import small_interactions, small_split
from towpath.data.split import Split
from towpath.errors import ConfigError, DataError
from towpath.serving.recommender import Recommender

SPLIT = small_split()
ITEMS = [f"i{n}" for n in range(40)]


def recommender(model: str, split: Split = SPLIT) -> Recommender:
    return towpath.recommender(towpath.fit(split, model, **{**SCORERS[model], "epochs": 2}), split)


def history_of(user: int) -> list[str]:
    whole = small_interactions()
    return whole.item_ids.ids(whole.items[whole.users == user])


@pytest.mark.parametrize("model", ["ease", "mf", "attention", "sgns"])
def test_a_stranger_with_a_history_is_folded_in(model: str) -> None:
    answer = recommender(model).recommend("nobody", 6, history=["i1", "i3", "i5"])
    assert (answer.how, answer.fallback) == ("folded in", False)
    assert len(answer.items) == 6
    assert not {"i1", "i3", "i5"} & set(answer.items)
    other = recommender(model).recommend("nobody", 6, history=["i2", "i4"])
    assert other.items != answer.items


def test_ease_knows_a_stranger_by_the_sum_of_its_rows() -> None:
    served = recommender("ease")
    answer = served.recommend("nobody", 5, history=["i3", "i8", "i3"])
    scores = (served.artifact.scorer.weights[3] + served.artifact.scorer.weights[8]).numpy()
    scores[[3, 8]] = -np.inf
    best = np.argsort(-scores, kind="stable")[:5]
    assert list(answer.items) == [f"i{n}" for n in best]
    assert answer.scores == pytest.approx(scores[best].tolist(), abs=1e-6)


@pytest.mark.parametrize("model", ["attention", "sgns"])
def test_the_history_of_a_known_user_gives_their_own_list(model: str) -> None:
    served = recommender(model)
    own, given = served.recommend("u7", 8), served.recommend("nobody", 8, history=history_of(7))
    assert given.items == own.items
    assert given.scores == pytest.approx(own.scores, abs=1e-6)


@pytest.mark.parametrize("model", ["mlp", "wide_deep", "popularity"])
def test_models_that_cannot_fold_in_fall_back_and_hide_the_history(model: str) -> None:
    served = recommender(model)
    answer = served.recommend("nobody", 34, history=["i0", "i1"])
    assert answer.fallback == (answer.how == "popularity")
    assert answer.how == "popularity"
    assert not {"i0", "i1"} & set(answer.items)


def test_a_known_user_of_a_model_that_cannot_fold_in_is_scored_after_the_given_history() -> None:
    """wide_deep looks at the item on the page, the last of the history."""
    served = recommender("wide_deep")
    one, other = (served.score("u1", ITEMS, history=[page]) for page in ("i1", "i2"))
    assert one.how == other.how == "model"
    assert one.scores != other.scores
    listed = served.recommend("u1", 39, history=["i1"])
    assert set(listed.items) == set(ITEMS) - {"i1"}


def test_items_of_a_history_that_nobody_knows_are_ignored_unless_it_is_all_of_them() -> None:
    served = recommender("ease")
    both = served.recommend("nobody", 5, history=["i3", "film"])
    assert both.items == served.recommend("nobody", 5, history=["i3"]).items
    with pytest.raises(DataError, match=r"None of the 2 items of the history .*40 items .*first: 'film'"):
        served.recommend("nobody", history=["film", "book"])
    assert served.recommend("nobody", history=[]).how == "popularity"


@pytest.mark.parametrize("model", SCORERS)
@pytest.mark.parametrize("user", ["u3", "nobody"])
def test_candidates_compete_alone_in_the_order_of_the_whole_list(model: str, user: str) -> None:
    served = recommender(model)
    allowed = [f"i{n}" for n in range(0, 40, 3)]
    whole = served.recommend(user, 40)
    answer = served.recommend(user, 20, candidates=[*allowed, "i3", "film"])
    assert list(answer.items) == [item for item in whole.items if item in allowed]


def test_excluded_items_never_appear() -> None:
    served = recommender("mf")
    whole = served.recommend("u3", 40).items
    assert served.recommend("u3", 40, exclude=[*whole[:2], "film"]).items == whole[2:]
    both = served.recommend("u3", 40, candidates=whole[:3], exclude=whole[1:2])
    assert both.items == (whole[0], whole[2])


def test_impossible_candidates() -> None:
    served = recommender("mf")
    with pytest.raises(DataError, match=r"None of the 1 items of the candidates is among the 40 items"):
        served.recommend("u3", candidates=["film"])
    with pytest.raises(DataError, match="All 1 items that could be recommended are excluded"):
        served.recommend("u3", candidates=["i1"], exclude=["i1"])


def test_seen_items_may_be_recommended_again_where_asked() -> None:
    assert set(recommender("mf").recommend("u2", 40, filter_seen=False).items) == set(ITEMS)


def test_histories_must_be_as_many_as_users() -> None:
    with pytest.raises(ConfigError, match="Each of the 2 users should have a history or None; 1 came"):
        recommender("mf").recommend_many(["u1", "u2"], histories=[["i1"]])


def test_many_users_some_with_histories() -> None:
    served = recommender("ease")
    histories = [None, ["i4"], None]
    answers = served.recommend_many(["u1", "nobody", "nobody"], 4, histories=histories)
    assert [answer.how for answer in answers] == ["model", "folded in", "popularity"]
    assert answers[1] == served.recommend("nobody", 4, history=["i4"])


@pytest.mark.parametrize("model", SCORERS)
def test_scores_of_given_items_are_those_of_the_list(model: str) -> None:
    served = recommender(model)
    listed = served.recommend("u4", 5)
    backwards = listed.items[::-1]
    told = served.score("u4", backwards)
    assert told.items == backwards
    assert told.scores == pytest.approx(listed.scores[::-1], abs=1e-6)
    assert (told.how, told.fallback) == ("model", False)


def test_scores_of_strangers() -> None:
    served = recommender("ease")
    assert served.score("nobody", ["i5"]).scores == (float(SPLIT.train.item_counts[5]),)
    assert served.score("nobody", ["i5"]).how == "popularity"
    folded = served.score("nobody", ["i5"], history=["i6"])
    assert folded.scores == pytest.approx([float(served.artifact.scorer.weights[6, 5])])
    with pytest.raises(DataError, match="There is no item 'film'"):
        served.score("u1", ["i5", "film"])


def test_similar_for_many_items() -> None:
    served = recommender("ease")
    assert served.similar(["i4", "i5"], 3) == [served.similar("i4", 3), served.similar("i5", 3)]


def impressions_split() -> Split:
    """The small split, whose users were also shown item i0 and item i1 without taking them."""

    def seen(part):  # a table of positives with two more rows for each user, shown but not clicked
        users = np.repeat(np.arange(60, dtype=np.int32), 2)
        rows = replace(
            part,
            users=np.concatenate([part.users, users]),
            items=np.concatenate([part.items, np.tile(np.array([0, 1], np.int32), 60)]),
            times=np.concatenate([part.times, np.zeros(120, np.int64)]),
            labels=np.repeat([True, False], [len(part), 120]),
        )
        order = np.lexsort((rows.times, rows.users))
        columns = {name: getattr(rows, name)[order] for name in ("users", "items", "times", "labels")}
        return replace(rows, **columns).positives

    return Split(seen(SPLIT.train), seen(SPLIT.validation), seen(SPLIT.test), "by hand")


def test_what_was_shown_is_hidden_only_where_asked(tmp_path: Path) -> None:
    split = impressions_split()
    model = towpath.fit(split, "mf", epochs=1, embedding_dim=4)
    user = next(user for user in range(60) if not {"i0", "i1"} & set(history_of(user)))
    towpath.save(model, split, tmp_path / "with", keep_shown=True)
    towpath.save(model, split, tmp_path / "without")
    plain = towpath.load(tmp_path / "without").recommend(f"u{user}", 40)
    assert {"i0", "i1"} <= set(plain.items)
    for served in (towpath.load(tmp_path / "with"), towpath.recommender(model, split)):
        assert served.recommend(f"u{user}", 40) == plain
        hidden = served.recommend(f"u{user}", 40, filter_shown=True)
        assert set(hidden.items) == set(plain.items) - {"i0", "i1"}
    with pytest.raises(ConfigError, match="does not keep what users were shown"):
        towpath.load(tmp_path / "without").recommend("u1", filter_shown=True)


def test_evaluate_takes_what_load_gives(tmp_path: Path) -> None:
    model = towpath.fit(SPLIT, "ease", ridge=10.0)
    towpath.save(model, SPLIT, tmp_path / "a")
    loaded = towpath.load(tmp_path / "a")
    assert towpath.evaluate(loaded, SPLIT).metrics() == towpath.evaluate(model, SPLIT).metrics()
    with pytest.raises(ConfigError, match=r"knows 60 users and the split has 50"):
        towpath.evaluate(loaded, small_split(users=50))


def test_notebooks_show_tables() -> None:
    served = recommender("ease")
    answer = served.recommend("u1", 2)
    assert answer._repr_html_().count("<tr>") == 3
    assert "For user u1 (model)" in answer._repr_html_()
    assert "Like item i1" in served.similar("i1", 2)._repr_html_()
    result = towpath.evaluate(served, SPLIT)
    assert "full, test, k = 10, 60 users" in result._repr_html_()
    assert f"<td>{result.metrics()['hit']:.4f}</td>" in result._repr_html_()
    compared = towpath.compare(
        SPLIT, {"<a>": towpath.Recipe("ease"), "b": towpath.Recipe("popularity")}, seeds=[0]
    )
    assert "&lt;a&gt;" in compared._repr_html_()
    assert "<a>" not in compared._repr_html_()
