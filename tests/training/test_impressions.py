from dataclasses import replace

import numpy as np
import pytest

from small import small_split
from small_impressions import small_log
from towpath.data.interactions import PADDING
from towpath.errors import DataError
from towpath.models.registry import build
from towpath.models.scorer import sizes_of
from towpath.rng import Rng
from towpath.training.impressions import ImpressionBatches, impressions_of

TRAIN = small_log().train


def test_an_epoch_has_every_impression_once_and_draws_no_click() -> None:
    batches = list(ImpressionBatches(TRAIN, 3, 100).epoch(1, Rng(0)))
    assert np.array_equal(np.sort(np.concatenate([b.rows for b in batches])), np.arange(len(TRAIN.rows)))
    clicked, shown = set(TRAIN.pair_keys().tolist()), set(TRAIN.rows.pair_keys().tolist())
    for batch in batches:
        keys = batch.context.users.numpy()[:, None] * TRAIN.n_items + batch.items.numpy()
        assert np.array_equal(keys[:, 0], TRAIN.rows.pair_keys()[batch.rows])
        assert not clicked & set(keys[:, 1:].ravel().tolist())
        assert np.array_equal(batch.shown.numpy() > 0, np.isin(keys, list(shown)))
        assert np.array_equal(batch.clicks.numpy() > 0, TRAIN.rows.labels[batch.rows])


def test_epochs_differ_and_the_same_epoch_does_not() -> None:
    made = ImpressionBatches(TRAIN, 3, 100)
    first, again, other = (next(made.epoch(n, Rng(0))) for n in (1, 1, 2))
    assert np.array_equal(first.rows, again.rows)
    assert np.array_equal(first.items, again.items)
    assert not np.array_equal(first.rows, other.rows)


def test_a_context_holds_the_clicks_before_the_impression() -> None:
    scorer = build("attention", {"history_length": 3}, sizes_of(TRAIN))
    log = TRAIN.rows
    for batch in ImpressionBatches(TRAIN, 1, 64).epoch(1, Rng(0), scorer.history_length):
        for row, history in zip(batch.rows[:20], batch.context.histories.numpy()[:20], strict=False):
            before = np.arange(len(log)) < row
            mine = log.items[before & (log.users == log.users[row]) & log.labels][-3:]
            assert history[history != PADDING].tolist() == mine.tolist()


def test_positives_alone_are_refused_in_one_sentence() -> None:
    with pytest.raises(DataError, match="positives alone; bring a log of impressions"):
        impressions_of(small_split().train)
    all_clicked = replace(TRAIN, impressions=TRAIN.rows.where(np.asarray(TRAIN.rows.labels)))
    with pytest.raises(DataError, match="are clicked; check the column"):
        impressions_of(all_clicked)
