import numpy as np
import pytest

from small_logs import DAY, MINUTE, assigned, click, log_of, order, request
from towpath.abtest.from_log import EVER, Excluded, Window, assignment_of, experiment_log
from towpath.errors import DataError


def totals_of(*rows, **window):
    return experiment_log(log_of(*rows), Window(**window))


def test_totals_by_hand():
    found = totals_of(
        assigned(0, "control", "new", shares=(0.25, 0.75)),
        request(0, "ann", "control", 10 * MINUTE),
        request(1, "ann", "control", 39 * MINUTE),  # the same visit
        request(2, "ann", "control", 80 * MINUTE, items="ab"),  # another one
        request(3, "bob", "new", DAY + MINUTE),
        click("e1", 0, "a", 11 * MINUTE),
        click("e1", 0, "a", 12 * MINUTE),  # sent again
        click("e2", 0, "a", 13 * MINUTE),  # clicked again: one item of one answer is clicked once
        click("e3", 0, "b", 13 * MINUTE),
        order("e4", 1, DAY + MINUTE, units=2, value=30),  # late, on the next day
        order("e4", 1, DAY + MINUTE, units=2, value=30),
        order("e5", 3, DAY + 2 * MINUTE, value=5),
    )
    totals = found.totals
    assert found.assignment.arms == ("control", "new")
    assert found.assignment.shares == (0.25, 0.75)
    assert totals.arm_of.tolist() == [0, 1]
    assert totals.users.tolist() == [0, 0, 1]
    assert totals.days.tolist() == [0, 1, 1]
    assert totals.did.visits.tolist() == [2, 0, 1]
    assert totals.did.impressions.tolist() == [8, 0, 3]
    assert totals.did.clicks.tolist() == [2, 0, 0]
    assert totals.did.orders.tolist() == [0, 1, 1]
    assert totals.did.units.tolist() == [0, 2, 1]
    assert totals.did.value.tolist() == [0, 30, 5]
    assert totals.before is None
    assert found.excluded == Excluded(0, 0, 0)


def test_the_length_of_a_visit_is_a_setting():
    rows = [request(n, "ann", "control", 20 * n * MINUTE) for n in range(4)]
    assert totals_of(*rows).totals.did.visits.sum() == 1
    assert totals_of(*rows, visit_minutes=10).totals.did.visits.sum() == 4


def test_what_does_not_belong_is_counted():
    found = totals_of(
        request(0, "ann", "a", 0),
        request(1, "ann", "b", 1),
        request(2, None, "a", 2),
        request(3, "bob", "b", 3),
        click("e", 9, "a", 4),
    )
    assert found.excluded == Excluded(1, 1, 1)
    assert len(found.totals.arm_of) == 1


def test_an_experiment_begins_when_the_arms_change_and_what_was_before_is_the_past():
    rows = (
        assigned(0, "only"),
        assigned(1, "only"),  # a restart
        request(0, "ann", "only", 5),
        order("e0", 0, 6, value=8),
        assigned(DAY, "control", "new"),
        assigned(DAY + 5, "control", "new"),
        request(1, "ann", "new", DAY + 1),
        request(2, "bob", "control", DAY + 2),
        order("e1", 1, DAY + 3, value=3),
    )
    found = totals_of(*rows)
    assert found.assignment.since == DAY
    assert found.totals.arms == ("control", "new")
    assert found.totals.did.value.tolist() == [3, 0]
    assert found.totals.before is not None
    assert found.totals.before.value.tolist() == [8, 0]
    assert found.totals.before.visits.tolist() == [1, 0]
    assert totals_of(*rows, since=DAY + 2).totals.did.value.tolist() == [0]


def test_without_assignments_shares_are_equal_and_control_is_first():
    log = log_of(request(0, "ann", "a", 0), request(1, "bob", "control", 0))
    assert assignment_of(log).arms == ("control", "a")
    assert assignment_of(log).shares == (0.5, 0.5)
    assert assignment_of(log).since == EVER


def test_an_arm_that_is_not_configured_is_said():
    with pytest.raises(DataError, match="the arm 'old'"):
        totals_of(assigned(0, "control", "new"), request(0, "ann", "old", 1))


def test_many_users_keep_their_own_totals():
    rows = [request(n, f"u{n % 50}", "ab"[n % 2], n * DAY // 40) for n in range(200)]
    totals = totals_of(*rows).totals
    by_user = np.bincount(totals.users, weights=totals.did.impressions)
    assert by_user.tolist() == [12.0] * 50
    assert (np.diff(totals.days) >= 0).all()
