"""What is hidden from a block of scores, and that nothing else changes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fixed_scorers import Constant, Fixed, events
from towpath.data.vocabulary import UNKNOWN
from towpath.evaluation.ranking import HIDDEN
from towpath.evaluation.scoring import hide, inference_mode, score_candidates, score_catalogue, seen_indices

PAIRS = [(0, 1), (0, 3), (0, 1), (2, 0), (2, 4)]  # user 1 has interacted with nothing, user 0 one item twice
HISTORIES = events(PAIRS, users=3, items=5).histories
TABLE = torch.arange(15.0).view(3, 5)


@given(users=st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_the_catalogue_is_scored_but_for_what_was_taken(users: list[int]) -> None:
    scores = score_catalogue(Fixed(TABLE), np.array(users), HISTORIES)
    for row, user in enumerate(users):
        for item in range(5):
            assert scores[row, item] == (HIDDEN if (user, item) in PAIRS else TABLE[user, item])


@pytest.mark.parametrize("scorer", [Fixed(TABLE), Constant(TABLE)])
def test_hiding_does_not_write_into_the_scorer(scorer: Fixed) -> None:
    before = scorer.table.clone()
    score_catalogue(scorer, np.array([0, 2]), HISTORIES)
    assert torch.equal(scorer.table, before)


def test_each_user_may_have_candidates_of_their_own() -> None:
    items = torch.tensor([[4, 2], [0, 1]])
    scores = score_candidates(Fixed(TABLE), np.array([0, 1]), HISTORIES, items, torch.tensor([2]))
    assert scores.tolist() == [[4.0, 2.0], [HIDDEN, 6.0]]


def test_a_stranger_has_taken_nothing() -> None:
    users = np.array([UNKNOWN, 2, UNKNOWN])
    assert seen_indices(HISTORIES, users, 5).tolist() == [5, 9]
    assert hide(torch.zeros(3, 5), seen_indices(HISTORIES, users, 5)).isinf().sum(1).tolist() == [0, 2, 0]


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
