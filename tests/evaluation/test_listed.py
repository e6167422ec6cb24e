"""Listed candidates, outside test sets, ips and snips, position bias: values by hand and known truths."""

import numpy as np
import pyarrow as pa
import pytest
import torch

import towpath
from fixed_scorers import Fixed
from towpath.data.interactions import Interactions
from towpath.data.outside import align, with_test
from towpath.data.sources import read
from towpath.data.split import Split, split_with_files
from towpath.data.vocabulary import Vocabulary
from towpath.errors import DataError
from towpath.evaluation.evaluate import EvaluationOptions, evaluate, evaluate_candidates
from towpath.evaluation.listed import ListedPairs, listed_metrics, row_metrics
from towpath.evaluation.position_bias import estimate_position_bias

TRAIN = {"user": ["a", "a", "b", "b"], "item": ["p", "q", "q", "r"], "time": [1, 2, 1, 2]}
TEST = {"user": ["a", "a", "a", "b", "b"], "item": ["p", "r", "s", "p", "s"], "click": [1, 0, 1, 0, 1]}


def frame(columns: dict[str, list]) -> Interactions:
    return read(pa.table(columns)).interactions


def split_of(train: dict[str, list], test: dict[str, list]) -> Split:
    whole = frame({"user": train["user"] + ["z", "z"], "item": train["item"] + ["s", "p"],
                   "time": train["time"] + [1, 2]})  # fmt: skip
    part, _ = align(frame(test), whole)
    return split_with_files(whole, lambda rows: pytest.fail("not needed"), validation=part, test=part)


def test_auc_ndcg_hit_recall_and_map_by_hand() -> None:
    # One user: scores 3, 2, 1, 0 with labels 0, 1, 0, 1, so positives have the ranks 1 and 3.
    pairs = ListedPairs(
        users=np.array([0]),
        starts=np.array([0, 4]),
        items=np.arange(4),
        labels=np.array([False, True, False, True]),
        gains=np.array([0.0, 1.0, 0.0, 1.0]),
    )
    found = listed_metrics(pairs, np.array([3.0, 2.0, 1.0, 0.0]), k=2)
    ideal = 1 + 1 / np.log2(3)
    expected = {"auc": 0.25, "ndcg": (1 / np.log2(3)) / ideal, "hit": 1.0, "recall": 0.5, "map": 0.25}
    assert {name: float(values[0]) for name, values in found.items()} == pytest.approx(expected)


def test_ties_share_their_rank_and_auc_counts_them_half() -> None:
    pairs = ListedPairs(
        np.array([0]), np.array([0, 2]), np.arange(2), np.array([True, False]), np.array([1.0, 0.0])
    )
    assert listed_metrics(pairs, np.zeros(2), k=1)["auc"][0] == 0.5


def test_log_loss_and_calibration_by_hand() -> None:
    found = row_metrics(np.array([True, False]), np.array([0.0, 0.0]))
    assert found["logloss"] == pytest.approx(np.log(2))
    assert found["calibration"] == pytest.approx(0.5)


def test_listed_ranks_only_what_the_file_has_for_the_user() -> None:
    split = split_of(TRAIN, TEST)
    # Items are p, q, r, s. q scores best everywhere and is listed for nobody.
    scores = torch.tensor([[1.0, 9.0, 2.0, 3.0], [1.0, 9.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
    result = evaluate(Fixed(scores), split, protocol="listed", k=1)
    assert split.train.user_ids.ids(result.users) == ["a", "b"]
    assert result.per_user["auc"].tolist() == [0.5, 1.0]
    assert result.per_user["hit"].tolist() == [1.0, 1.0]
    assert result.per_user["recall"].tolist() == [0.5, 1.0]
    assert set(result.metrics()) == {"auc", "ndcg", "hit", "recall", "map", "logloss", "calibration"}


def test_graded_gains_are_values() -> None:
    graded = {**TEST, "rating": [1, 5, 3, 2, 4]}
    split = split_of({**TRAIN}, graded)
    scores = torch.tensor([[1.0, 9.0, 2.0, 3.0]] * 3)
    plain = evaluate(Fixed(scores), split, protocol="listed", k=1)
    by_value = towpath.evaluate(
        Fixed(scores), split, protocol="listed", k=1, options=towpath.EvaluationOptions(graded=True)
    )
    assert plain.per_user["ndcg"][0] == 1.0
    assert by_value.per_user["ndcg"][0] == 1.0  # s, worth 3, comes before p, worth 1
    reversed_scores = Fixed(torch.tensor([[5.0, 9.0, 2.0, 3.0]] * 3))
    worse = evaluate(reversed_scores, split, protocol="listed", k=1, options=EvaluationOptions(graded=True))
    assert worse.per_user["ndcg"][0] == pytest.approx(1 / 3)


def test_pairs_that_also_occur_in_training_stay_in_an_outside_test_set() -> None:
    split = split_of(TRAIN, TEST)
    scores = torch.tensor([[9.0, 8.0, 2.0, 1.0]] * 3)
    full = evaluate(Fixed(scores), split, protocol="full", k=1)
    # p, which user a has in training, is a target again and stands first.
    assert full.per_user["hit"][0] == 1.0


def test_unknown_users_and_items_are_counted() -> None:
    train = frame({**TRAIN, "user": ["a", "a", "b", "b"]})
    events, unknown = align(frame({"user": ["a", "x", "b"], "item": ["p", "p", "new"]}), train)
    assert (unknown.rows, unknown.users, unknown.items) == (2, 1, 1)
    assert len(events) == 1
    with pytest.raises(DataError, match="None of the 2 rows has a user and an item that occur"):
        align(frame({"user": ["x", "y"], "item": ["p", "q"]}), train)


def test_candidates_of_a_file_must_contain_the_target() -> None:
    split = split_of(TRAIN, TEST)
    scores = Fixed(torch.tensor([[1.0, 9.0, 2.0, 3.0]] * 3))
    listed, _ = align(frame({"user": ["a"] * 3 + ["b"] * 2, "item": ["p", "q", "s", "s", "q"]}), split.train)
    result = evaluate_candidates(scores, split, listed, k=1)
    assert (result.protocol, result.per_user["hit"].tolist()) == ("candidates", [0.0, 0.0])
    short, _ = align(frame({"user": ["a", "b"], "item": ["p", "s"]}), split.train)
    with pytest.raises(DataError, match="1 of 3 test items are not among them"):
        evaluate_candidates(scores, split, short, k=1)


def test_a_part_without_labels_cannot_be_listed() -> None:
    positives = frame({"user": ["a", "b"], "item": ["s", "p"]})
    split = split_of(TRAIN, TEST)
    part, _ = align(positives, split.train)
    with pytest.raises(DataError, match="it holds positives alone"):
        evaluate(Fixed(torch.zeros(3, 4)), with_test(split, part), protocol="listed", k=1)


def test_several_lengths_are_named() -> None:
    split = split_of(TRAIN, TEST)
    found = evaluate(Fixed(torch.zeros(3, 4)), split, protocol="full", k=(1, 2)).metrics()
    assert {"hit@1", "hit@2", "ndcg@1", "ndcg@2"} <= set(found)


def test_ips_and_snips_by_hand() -> None:
    test = {"user": ["a", "b"], "item": ["s", "p"], "propensity": [0.5, 0.25]}
    split = split_of(TRAIN, test)
    # The target of a stands first, that of b does not: weights 2 and 4.
    scores = Fixed(torch.tensor([[0.0, 0.0, 1.0, 9.0], [0.0, 0.0, 1.0, 9.0], [0.0] * 4]))
    ips = evaluate(scores, split, protocol="ips", k=1).metrics()
    snips = evaluate(scores, split, protocol="snips", k=1).metrics()
    assert ips["hit"] == pytest.approx(2 / 2)
    assert snips["hit"] == pytest.approx(2 / 6)
    with pytest.raises(DataError, match="need the propensity of every test event"):
        evaluate(scores, split_of(TRAIN, TEST), protocol="ips", k=1)


def test_position_bias_is_found_again_in_simulated_slates() -> None:
    rng = np.random.default_rng(0)
    examination, n, items = np.array([1.0, 0.7, 0.5, 0.3]), 60_000, 20
    attraction = rng.uniform(0.05, 0.6, items)
    shown = rng.integers(items, size=n)
    # Attractive items stand higher, so that the raw click rate by position would be wrong.
    draws = (rng.random(n) * 4 + 2 * (attraction[shown] < 0.3)).astype(int)
    positions = np.clip(draws, 0, 3)
    clicks = rng.random(n) < examination[positions] * attraction[shown]
    order = np.argsort(np.zeros(n), kind="stable")
    log = Interactions(
        users=np.zeros(n, dtype=np.int32)[order],
        items=shown.astype(np.int32),
        user_ids=Vocabulary(pa.array(["u"])),
        item_ids=Vocabulary(pa.array(range(items))),
        labels=clicks,
        positions=(positions + 1).astype(np.int32),
    )
    found = estimate_position_bias(log.positives)
    naive = np.array([clicks[positions == k].mean() for k in range(4)])
    assert np.allclose(found.examination, examination, atol=0.05)
    assert not np.allclose(naive / naive[0], examination, atol=0.05)
