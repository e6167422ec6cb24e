"""What the log has seen of two sets of lists: by hand, and the sentence that follows."""

from dataclasses import replace

import numpy as np
import pytest

from fixed_scorers import Fixed
from impressions import click_chances, impressions_split
from towpath.data.split import Split
from towpath.diagnostics.contrast import Contrast, contrast, lists_for_evidence, vouch_for
from towpath.diagnostics.diagnose import diagnose
from towpath.diagnostics.log_view import all_rows, view_log
from towpath.rng import Rng

SPLIT = impressions_split()
VIEW = view_log(SPLIT, all_rows(SPLIT), Rng(0))


def shown_to(user: int) -> tuple[list[int], list[int]]:
    """The items that the held-out parts showed this user, and the others."""
    rows = VIEW.held_out.rows
    seen = set(rows.items[rows.users == user].tolist())
    return sorted(seen), sorted(set(range(30)) - seen)


def test_only_slots_in_which_lists_differ_are_counted() -> None:
    seen, unseen = shown_to(0)
    one = np.array([[seen[0], seen[1], unseen[0]]])
    other = np.array([[unseen[0], unseen[1], seen[0]]])  # differs in seen[1] and unseen[1]
    found = contrast(("a", "b"), (one, other), np.array([0]), VIEW)
    assert (found.slots, found.unseen) == (2, 0.5)
    assert found.warning is None
    worse = contrast(("a", "b"), (one, np.array([[seen[0], unseen[1], unseen[2]]])), np.array([0]), VIEW)
    assert (worse.slots, worse.unseen) == (4, 0.75)
    assert worse.warning is not None
    assert worse.warning.startswith(
        "75.0% of the 4 slots in which a and b differ hold an item that the log never"
    )


def test_the_same_lists_do_not_differ() -> None:
    lists = np.array([[1, 2, 3]])
    found = contrast(("a", "b"), (lists, lists[:, ::-1]), np.array([0]), VIEW)
    assert (found.slots, found.unseen, found.warning) == (0, 0.0, None)


def test_a_log_of_clicks_cannot_tell_what_was_shown() -> None:
    warning = Contrast("a", "b", 10, 0.9, complete=False).warning
    assert warning is not None
    assert "cannot tell whether it was shown" in warning


def test_evidence_is_that_of_a_diagnosis() -> None:
    scorer = Fixed(np.asarray(click_chances(120, 30), dtype=np.float32))
    lists = {"a": lists_for_evidence(scorer, SPLIT, 5)}
    found = vouch_for(lists, SPLIT).to_json()["models"]["a"]
    told = diagnose(scorer, SPLIT, k=5).to_json()
    assert found == {**told["evidence"], "expected_clicks": told["expected_clicks"]}


def test_what_was_shown_counts_whoever_is_held_out_for_which_reason() -> None:
    """User 0 has no training clicks left, so rates leave them out; what they were shown was shown."""
    train = SPLIT.train.where(SPLIT.train.users != 0)
    split: Split = replace(SPLIT, train=train)
    scorer = Fixed(np.asarray(click_chances(120, 30), dtype=np.float32))
    one = lists_for_evidence(scorer, split, 5)
    found = vouch_for({"a": one, "b": one[:, ::-1].copy()}, split)
    assert found.contrasts[0].slots == 0
    assert found.warnings == ()
    assert found.to_json()["differences"][0]["unseen"] == pytest.approx(0)
