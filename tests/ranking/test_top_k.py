import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from towpath.errors import ConfigError, TrainingError
from towpath.ranking.blocks import rows_per_block
from towpath.ranking.top_k import HIDDEN, rank_targets, top_k

# Few different values, so that ties are everywhere; HIDDEN among them.
tied_scores = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 8), st.integers(1, 30)),
    elements=st.sampled_from([-1.0, 0.0, 0.5, 2.0, HIDDEN]),
)


def rank_by_hand(row: np.ndarray, target: int) -> float:
    others = np.delete(row, target)
    return float((others > row[target]).sum() + (others == row[target]).sum() / 2)


@given(tied_scores, st.data())
def test_ranks_count_the_higher_and_half_of_the_equal(scores: np.ndarray, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(scores) - 1), max_size=20))
    targets = [data.draw(st.integers(0, scores.shape[1] - 1)) for _ in rows]
    places = torch.tensor([rows, targets], dtype=torch.int64)
    ranks = rank_targets(torch.from_numpy(scores), *places)
    assert ranks.tolist() == [rank_by_hand(scores[r], t) for r, t in zip(rows, targets, strict=True)]


def test_hidden_candidates_are_no_competitors() -> None:
    scores = torch.tensor([[HIDDEN, 1.0, HIDDEN, 1.0, 0.0]])
    assert rank_targets(scores, torch.tensor([0]), torch.tensor([1])).tolist() == [0.5]


@given(tied_scores, st.data())
def test_lists_are_sorted_by_score_then_column(scores: np.ndarray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, scores.shape[1]))
    values, columns = top_k(torch.from_numpy(scores), k)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    assert columns.tolist() == expected.tolist()
    assert values.tolist() == np.take_along_axis(scores, expected, axis=1).tolist()


@given(tied_scores)
def test_a_list_does_not_depend_on_the_other_rows(scores: np.ndarray) -> None:
    table, k = torch.from_numpy(scores), min(5, scores.shape[1])
    alone = torch.cat([top_k(row[None], k)[1] for row in table])
    assert top_k(table, k)[1].equal(alone)


@pytest.mark.parametrize("k", [0, -1, 4])
def test_lists_longer_than_the_candidates_or_empty_are_refused(k: int) -> None:
    with pytest.raises(ConfigError, match="between 1 and the 3 candidates"):
        top_k(torch.zeros(2, 3), k)


def test_nan_is_refused_by_name() -> None:
    scores = torch.zeros(3, 4)
    scores[1, 2] = torch.nan
    with pytest.raises(TrainingError, match="1 of the 4 scores of row 1 are NaN"):
        top_k(scores, 2)
    with pytest.raises(TrainingError, match="of user 'b' are NaN"):
        rank_targets(scores, torch.tensor([0]), torch.tensor([0]), name=lambda row: f"user {'abc'[row]!r}")


@given(st.integers(1, 10**8), st.integers(10**3, 10**9))
def test_blocks_stay_within_the_budget(width: int, budget: int) -> None:
    rows = rows_per_block(width, budget=budget)
    assert rows == 1 or rows * width * 16 <= budget


def test_a_large_catalogue_gets_small_blocks() -> None:
    assert rows_per_block(100_000) * 100_000 * 16 <= 2**28
    assert rows_per_block(100_000) >= 16
