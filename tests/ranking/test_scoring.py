"""What is hidden from a block of scores, and that nothing else changes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fixed_scorers import Constant, Fixed, events
from towpath.data.interactions import Histories
from towpath.ranking import blocks
from towpath.ranking.blocks import NOTHING, candidate_block
from towpath.ranking.scoring import inference_mode, score_block, score_blocks
from towpath.ranking.top_k import HIDDEN

PAIRS = [(0, 1), (0, 3), (0, 1), (2, 0), (2, 4)]  # user 1 has interacted with nothing, user 0 one item twice
HISTORIES = events(PAIRS, users=3, items=5).histories
SHOWN = [(0, 0), (1, 2), (2, 2)]
TABLE = torch.arange(15.0).view(3, 5)


def scores_of(users: list[int], **hide: Histories | str) -> torch.Tensor:
    return torch.cat([s for _, s in score_blocks(Fixed(TABLE), np.array(users), HISTORIES, **hide)])  # type: ignore[arg-type]


@given(users=st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_the_catalogue_is_scored_but_for_what_was_interacted_with(users: list[int]) -> None:
    for row, user in enumerate(users):
        for item in range(5):
            expected = HIDDEN if (user, item) in PAIRS else TABLE[user, item]
            assert scores_of(users)[row, item] == expected


def test_what_is_hidden_is_the_callers_choice() -> None:
    assert scores_of([2, 0], hide="nothing").equal(TABLE[[2, 0]])
    shown = scores_of([0, 1, 2], hide=events(SHOWN, users=3, items=5).histories)
    assert shown.isinf().nonzero().tolist() == [list(pair) for pair in SHOWN]


def test_a_scorer_sees_the_histories_whatever_is_hidden() -> None:
    scorer = Fixed(TABLE)
    scorer.history_length = 2
    list(score_blocks(scorer, np.array([2, 1]), HISTORIES, hide=events(SHOWN, users=3, items=5).histories))
    assert scorer.seen_histories[0].tolist() == [[0, 4], [-1, -1]]


def test_blocks_are_runs_of_the_users_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "rows_per_block", lambda width: 2)
    users = np.array([2, 0, 1, 1, 0])
    found = list(score_blocks(Fixed(TABLE), users, HISTORIES, hide="nothing"))
    assert [(rows.start, rows.stop) for rows, _ in found] == [(0, 2), (2, 4), (4, 5)]
    for rows, scores in found:
        assert scores.equal(TABLE[users[rows]])


def test_no_users_make_no_blocks() -> None:
    assert list(score_blocks(Fixed(TABLE), np.empty(0, dtype=np.int64), HISTORIES)) == []


@pytest.mark.parametrize("scorer", [Fixed(TABLE), Constant(TABLE)])
def test_hiding_does_not_write_into_the_scorer(scorer: Fixed) -> None:
    before = scorer.table.clone()
    [(_, scores)] = score_blocks(scorer, np.array([0, 2]), HISTORIES)
    assert scores.isinf().sum() == 4
    assert torch.equal(scorer.table, before)


def test_each_user_may_have_candidates_of_their_own() -> None:
    block = candidate_block(np.array([0, 1]), np.array([[4, 2], [NOTHING, 1]]))
    assert score_block(Fixed(TABLE), block, HISTORIES).tolist() == [[4.0, 2.0], [HIDDEN, 6.0]]


def test_between_blocks_the_scorer_is_as_it_was() -> None:
    scorer = Fixed(TABLE).train()
    for _, scores in score_blocks(scorer, np.arange(3), HISTORIES):
        assert scorer.training
        assert torch.is_grad_enabled()
        assert not scores.requires_grad


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_comes_back_after_an_error_too(training: bool) -> None:
    scorer = Fixed(TABLE).train(training)

    def fail() -> None:
        with inference_mode(scorer):
            assert not scorer.training
            assert not torch.is_grad_enabled()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert scorer.training is training
    assert torch.is_grad_enabled()
