"""Rows without a policy are the earlier recommender's; those with one may be a served model's own."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import towpath
from towpath.data.joining import join
from towpath.data.policies import chosen_elsewhere, shown_at_random, with_policy, without_policy
from towpath.data.sql import NO_POLICY, RANDOM_POLICY
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world

LOG = make_latent_world(LatentWorld(users=8, items=12, shown_per_user=5), Rng(0)).exposures


def test_a_served_row_is_told_from_the_earlier_log():
    both = join(without_policy(LOG), with_policy(LOG, 0))
    assert chosen_elsewhere(both).tolist() == (both.policies == NO_POLICY).tolist()
    assert chosen_elsewhere(both).sum() == len(LOG)


@pytest.mark.parametrize("log", [LOG, without_policy(LOG), with_policy(LOG, 3)])
def test_where_nothing_tells_rows_apart_all_of_them_count(log):
    assert chosen_elsewhere(log).all()


@pytest.mark.parametrize("unnamed", [None, ""])
def test_rows_that_name_no_policy_are_read_as_such(unnamed):
    table = pa.table(
        {
            "user": ["a", "a", "b", "b", "b"],
            "item": ["x", "y", "x", "y", "z"],
            "time": [1, 2, 1, 2, 3],
            "label": [1, 0, 1, 0, 1],
            "policy": [unnamed, "transport", unnamed, "plain", "transport"],
        }
    )
    log = towpath.read(table).interactions.rows
    assert (log.policies == NO_POLICY).tolist() == [True, False, True, False, False]
    named = log.policies[log.policies != NO_POLICY]
    assert named[0] == named[2] != named[1]
    assert np.array_equal(chosen_elsewhere(log), log.policies == NO_POLICY)
    assert chosen_elsewhere(replace(log, policies=None)).all()


def test_a_policy_called_random_marks_what_was_shown_by_chance():
    table = pa.table(
        {
            "user": ["a", "a", "b", "b", "b"],
            "item": ["x", "y", "x", "y", "z"],
            "label": [1, 0, 1, 0, 1],
            "policy": ["", "random", "Random", "plain", None],
        }
    )
    log = towpath.read(table).interactions.rows
    assert shown_at_random(log).tolist() == [False, True, True, False, False]
    assert (log.policies == NO_POLICY).tolist() == [True, False, False, False, True]
    # By chance is no choice, and a named policy may be a model of this log.
    assert chosen_elsewhere(log).tolist() == [True, False, False, False, True]
    assert not shown_at_random(replace(log, policies=None)).any()


def test_what_was_shown_by_chance_counts_where_there_is_nothing_else():
    random = with_policy(LOG, RANDOM_POLICY)
    assert chosen_elsewhere(random).all()
    both = join(random, with_policy(LOG, 3))
    assert chosen_elsewhere(both).tolist() == (both.policies == 3).tolist()
