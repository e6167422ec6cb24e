import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fixed_scorers import Constant, Fixed, events, split_of
from small import small_split
from towpath.data.split import Split
from towpath.errors import ConfigError, TrainingError
from towpath.evaluation import protocols
from towpath.evaluation.evaluate import Validator, evaluate
from towpath.ranking import blocks

RANKED = ("full", "sampled", "paper")

# Three users, five items. Scores fall from item 0 to item 4 for everyone.
HAND = split_of(
    [(0, 0), (1, 1), (2, 4)], [(0, 1), (1, 0), (2, 3)], [(0, 3), (1, 2), (2, 0), (2, 2)], users=3, items=5
)
FALLING = Fixed(np.tile(np.arange(5.0, 0.0, -1.0), (3, 1)))


def test_full_by_hand() -> None:
    result = evaluate(FALLING, HAND, k=2)
    # Left to rank on test: user 0 has 2 3 4, user 1 has 2 3 4, user 2 has 0 1 2.
    assert result.users.tolist() == [0, 1, 2]
    assert result.per_user["hit"].tolist() == [1, 1, 1]
    assert result.per_user["recall"].tolist() == [1, 1, 0.5]
    assert result.per_user["rel"].tolist() == [1, 1, 1]
    assert result.per_user["mrr"].tolist() == [0.5, 1, 1]
    second = 1 / np.log2(3)
    assert_allclose(result.per_user["ndcg"], [second, 1, 1 / (1 + second)])
    # Lists: 2 3, 2 3, 0 1: four of five items; items 0 and 1 have one of three training users each.
    assert_allclose(result.overall["coverage"], 4 / 5)
    assert_allclose(result.overall["popularity"], (1 / 3 + 1 / 3) / 6)
    assert result.metrics()["hit"] == 1
    assert (result.protocol, result.on, result.k, result.users_left_out) == ("full", "test", 2, 0)


def test_the_worked_example_of_the_docs_with_a_tie() -> None:
    tied = Fixed(np.tile(np.array([4.0, 4.0, 3.0, 2.0, 1.0]), (3, 1)))
    result = evaluate(tied, HAND, k=2)
    assert_allclose(result.per_user["mrr"][2], 0.667, atol=5e-4)
    assert_allclose(result.per_user["ndcg"][2], 0.464, atol=5e-4)


def test_validation_hides_training_items_only() -> None:
    result = evaluate(FALLING, HAND, on="validation", k=1)
    assert result.per_user["hit"].tolist() == [1, 1, 0]


def test_true_relevance_is_summed_over_the_list() -> None:
    relevance = np.arange(15.0).reshape(3, 5) / 15
    result = evaluate(FALLING, HAND, k=2, relevance=relevance)
    assert_allclose(result.per_user["rel"], [(2 + 3) / 15, (7 + 8) / 15, (10 + 11) / 15])
    same = evaluate(FALLING, HAND, k=2, relevance=lambda users, items: relevance[users, items])
    assert_allclose(same.per_user["rel"], result.per_user["rel"])
    # Three items are left to each user: a list of four ends in an empty place, which is worth nothing.
    longer = evaluate(FALLING, HAND, k=4, relevance=relevance)
    assert_allclose(longer.per_user["rel"], [(2 + 3 + 4) / 15, (7 + 8 + 9) / 15, (10 + 11 + 12) / 15])


def random_scorer(split: Split, seed: int = 0, ties: bool = False) -> Fixed:
    draw = np.random.default_rng(seed).normal(size=(split.train.n_users, split.train.n_items))
    return Fixed((np.round(draw) if ties else draw).astype(np.float32))


@pytest.mark.parametrize("protocol", RANKED)
@pytest.mark.parametrize("on", ["validation", "test"])
def test_a_constant_scorer_scores_nothing(protocol, on) -> None:
    split = small_split(users=30, items=150, per_user=12)
    result = evaluate(Constant(np.ones((30, 150))), split, protocol=protocol, on=on)
    assert {name: float(values.max()) for name, values in result.per_user.items()} == dict.fromkeys(
        ("hit", "ndcg", "recall", "mrr", "rel"), 0.0
    )


@pytest.mark.parametrize("protocol", RANKED)
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_the_size_of_blocks_does_not_matter(protocol, rows, monkeypatch) -> None:
    split = small_split(users=40, items=150, per_user=12)
    scorer = random_scorer(split, ties=True)
    whole = evaluate(scorer, split, protocol=protocol)
    for module in (protocols, blocks):
        monkeypatch.setattr(module, "rows_per_block", lambda *a, **k: rows)
    again = evaluate(scorer, split, protocol=protocol)
    assert again.overall == whole.overall
    assert all(np.array_equal(again.per_user[name], whole.per_user[name]) for name in whole.per_user)


@settings(deadline=None, max_examples=25)
@given(st.permutations(range(120)), st.sampled_from(["validation", "test"]))
def test_the_order_of_items_does_not_matter_under_full(order: list[int], on) -> None:
    split = small_split(users=20, items=120, per_user=12)
    scorer = random_scorer(split, ties=True)
    new = np.array(order)

    def renamed(part):
        return events(list(zip(part.users, new[part.items], strict=True)), 20, 120)

    parts = (renamed(p) for p in (split.train, split.validation, split.test))
    table = torch.empty_like(scorer.table)
    table[:, torch.from_numpy(new)] = scorer.table
    before, after = evaluate(scorer, split, on=on), evaluate(Fixed(table), Split(*parts, "renamed"), on=on)
    for name, values in before.per_user.items():
        assert np.array_equal(values, after.per_user[name]), name


@pytest.mark.parametrize("protocol", RANKED)
def test_a_perfect_scorer_gets_everything(protocol) -> None:
    split = small_split(users=30, items=150, per_user=12)
    table = np.zeros((30, 150))
    table[split.test.users, split.test.items] = 1
    result = evaluate(Fixed(table), split, protocol=protocol)
    copies = (result.per_user["hit"] - 1) if protocol == "paper" else np.zeros(30)
    assert_allclose(result.per_user["hit"], 1 + copies)
    assert_allclose(result.per_user["mrr"], 1)
    # A further copy follows right after the target.
    gains = np.cumsum(1 / np.log2(np.arange(10) + 2))
    assert_allclose(result.per_user["ndcg"], gains[copies.astype(int)])
    assert copies.any() == (protocol == "paper")


def test_sampled_ranks_all_targets_of_a_user_in_one_list() -> None:
    split = split_of([(0, 0), (1, 0)], [], [(0, 1), (0, 2), (0, 3), (1, 4)], users=2, items=150)
    table = np.zeros((2, 150))
    table[0, [1, 2, 3]] = [3, 2, -1]
    table[1, 4] = 1
    result = evaluate(Fixed(table), split, protocol="sampled", k=3)
    assert_allclose(result.per_user["recall"], [2 / 3, 1])
    assert_allclose(result.per_user["mrr"], 1)
    # Nobody's list is asked for here, so nothing is said about lists as a whole.
    assert result.overall == {}


@pytest.mark.parametrize("protocol", RANKED)
def test_nan_raises_and_names_the_user(protocol) -> None:
    split = small_split(users=30, items=150, per_user=12)
    table = np.zeros((30, 150))
    table[17] = np.nan
    with pytest.raises(TrainingError, match="of user 'u17' are NaN"):
        evaluate(Fixed(table), split, protocol=protocol)
    with pytest.raises(TrainingError, match="of user 'u17' are NaN"):
        Validator(split)(Fixed(table))


def test_scorers_see_the_history_of_the_part() -> None:
    scorer = Fixed(np.zeros((3, 5)))
    scorer.history_length = 3
    evaluate(scorer, HAND, on="validation", k=1)
    evaluate(scorer, HAND, on="test", k=1)
    assert [h.tolist() for h in scorer.seen_histories] == [[[0], [1], [4]], [[0, 1], [1, 0], [4, 3]]]


def test_a_scorer_is_left_as_it_was() -> None:
    scorer = random_scorer(HAND)
    table = scorer.table.clone()
    for training in (True, False):
        scorer.train(training)
        evaluate(scorer, HAND, k=2)
        Validator(HAND, 2)(scorer)
        assert scorer.training is training
    assert scorer.table.equal(table)


def test_the_mode_comes_back_after_an_error_too() -> None:
    scorer = Fixed(np.full((3, 5), np.nan)).train()
    with pytest.raises(TrainingError):
        evaluate(scorer, HAND, k=2)
    assert scorer.training


def test_the_validator_agrees_with_evaluate() -> None:
    split = small_split(users=50, items=60, per_user=12)
    validator = Validator(split, 5)
    for seed in range(3):
        scorer = random_scorer(split, seed)
        expected = evaluate(scorer, split, on="validation", k=5).metrics()
        assert validator(scorer) == {name: expected[name] for name in ("hit", "ndcg")}


def test_the_validator_of_very_many_pairs_ranks_a_sample_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    split = small_split(users=50, items=60, per_user=12)
    whole = evaluate(random_scorer(split), split, on="validation", k=5)
    assert Validator(split, 5).remarks == ()
    monkeypatch.setattr("towpath.evaluation.evaluate._VALIDATED_SCORES", 60 * 7)
    monkeypatch.setattr("towpath.evaluation.evaluate._FEWEST_VALIDATED", 5)
    validator = Validator(split, 5)
    assert validator.remarks == (
        f"Validation ranked the lists of 7 of {len(whole.users)} users, always the same.",
    )
    some = np.linspace(0, len(whole.users) - 1, 7).astype(int)
    assert validator(random_scorer(split))["hit"] == whole.per_user["hit"][some].mean()
    monkeypatch.setattr("towpath.evaluation.evaluate._FEWEST_VALIDATED", 20)
    assert "20 of" in Validator(split, 5).remarks[0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"k": 0}, "between 1 and the 5 candidates of the full protocol, but it is 0"),
        ({"k": 6}, "between 1 and the 5 candidates"),
        ({"k": 102, "protocol": "paper"}, "101 candidates of the paper protocol"),
        ({"protocol": "sample"}, "no protocol 'sample'; did you mean 'sampled'"),
        ({"on": "tests"}, "no part to evaluate on 'tests'; did you mean 'test'"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options, sentence) -> None:
    with pytest.raises(ConfigError, match=sentence):
        evaluate(FALLING, HAND, **options)
