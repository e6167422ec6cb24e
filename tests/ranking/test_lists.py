"""Lists of the best items, worked out by hand."""

import numpy as np
import pytest
import torch

from fixed_scorers import Fixed, events
from small import small_split
from towpath.data.vocabulary import UNKNOWN
from towpath.models.popularity import Popularity, PopularitySettings
from towpath.models.scorer import sizes_of
from towpath.ranking import blocks
from towpath.ranking.blocks import NOTHING, candidate_block
from towpath.ranking.lists import best_of_block, top_k_lists
from towpath.ranking.scoring import score_block
from towpath.ranking.top_k import HIDDEN
from towpath.rng import Rng

TABLE = torch.tensor([[5.0, 4.0, 3.0, 2.0], [1.0, 1.0, 2.0, 1.0], [0.0, 1.0, 2.0, 3.0]])
PAIRS = [(0, 0), (2, 0), (2, 1), (2, 2), (2, 3)]  # user 2 has everything
HISTORIES = events(PAIRS, users=3, items=4).histories


def test_lists_by_hand() -> None:
    found = top_k_lists(Fixed(TABLE), np.array([1, 0]), HISTORIES, 3)
    assert found.items.tolist() == [[2, 0, 1], [1, 2, 3]]
    assert found.scores.tolist() == [[2, 1, 1], [4, 3, 2]]
    assert found.lengths.tolist() == [3, 3]


def test_what_is_hidden_is_the_callers_choice() -> None:
    shown = events([(0, 1), (0, 2)], users=3, items=4).histories
    everyone = np.arange(3)
    assert top_k_lists(Fixed(TABLE), everyone, HISTORIES, 2, hide="nothing").items[0].tolist() == [0, 1]
    assert top_k_lists(Fixed(TABLE), everyone, HISTORIES, 2, hide=shown).items[0].tolist() == [0, 3]


def test_who_has_everything_gets_an_empty_list() -> None:
    found = top_k_lists(Fixed(TABLE), np.array([2]), HISTORIES, 2)
    assert found.items.tolist() == [[NOTHING, NOTHING]]
    assert found.scores.tolist() == [[HIDDEN, HIDDEN]]
    assert found.lengths.tolist() == [0]


def test_lists_longer_than_the_catalogue_are_filled_up() -> None:
    found = top_k_lists(Fixed(TABLE), np.array([0]), HISTORIES, 6)
    assert found.items.tolist() == [[1, 2, 3, NOTHING, NOTHING, NOTHING]]


def test_a_user_that_nobody_knows_has_nothing_hidden() -> None:
    train = small_split().train
    scorer = Popularity(PopularitySettings(), sizes_of(train))
    scorer.initialise(train, Rng(0))
    found = top_k_lists(scorer, np.array([UNKNOWN, 3, UNKNOWN]), train.histories, 5)
    best = np.argsort(-train.item_counts, kind="stable")
    assert found.items[0].tolist() == found.items[2].tolist() == best[:5].tolist()
    mine = train.items[train.users == 3]
    assert found.items[1].tolist() == best[~np.isin(best, mine)][:5].tolist()


def test_the_size_of_a_block_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    users = np.array([1, 0, 2, 1, 0])
    whole = top_k_lists(Fixed(TABLE), users, HISTORIES, 2)
    monkeypatch.setattr(blocks, "rows_per_block", lambda width: 2)
    parts = top_k_lists(Fixed(TABLE), users, HISTORIES, 2)
    assert parts.items.tolist() == whole.items.tolist()
    assert parts.scores.tolist() == whole.scores.tolist()


def test_the_best_of_ones_own_candidates() -> None:
    block = candidate_block(np.array([0, 2]), np.array([[3, 0, 2], [1, NOTHING, NOTHING]]))
    scores = score_block(Fixed(TABLE), block, HISTORIES)
    assert best_of_block(scores, block, 2).tolist() == [[0, 2], [1, NOTHING]]


def test_the_best_of_shared_candidates_in_their_own_codes() -> None:
    everyone, candidates = np.array([0, 1, 2]), np.array([0, 2, 3])
    found = top_k_lists(Fixed(TABLE), everyone, HISTORIES, 4, candidates=candidates)
    assert found.items.tolist() == [[2, 3, NOTHING, NOTHING], [2, 0, 3, NOTHING], [NOTHING] * 4]
    assert found.scores[1, :3].tolist() == [2, 1, 1]
    open_to_all = top_k_lists(Fixed(TABLE), everyone, HISTORIES, 1, hide="nothing", candidates=candidates)
    assert open_to_all.items.tolist() == [[0], [2], [3]]


def test_all_items_as_candidates_are_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    users = np.array([1, UNKNOWN, 2, 1, 0])
    fixed = Fixed(torch.cat([TABLE, TABLE[:1]]))  # the last row is whom nobody knows
    whole = top_k_lists(fixed, users, HISTORIES, 3)
    monkeypatch.setattr(blocks, "rows_per_block", lambda width: 2)
    assert (
        top_k_lists(fixed, users, HISTORIES, 3, candidates=np.arange(4)).items.tolist()
        == whole.items.tolist()
    )
