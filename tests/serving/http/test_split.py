import json
import math

from towpath.serving.http.assignment import Assignment
from towpath.serving.http.counters import Counters, added, to_prometheus
from towpath.serving.http.split import SplitWatch
from towpath.stats.sample_ratio import ALARM

SHARES = {"control": 0.5, "new": 0.5}


def test_each_user_counts_once_and_a_sound_split_gives_no_alarm():
    watch, assignment = SplitWatch(SHARES), Assignment("salt", SHARES)
    for number in range(4_000):
        user = str(number % 2_000)
        watch.note(user, assignment.arm_of(user))
    assert sum(watch.users.values()) == 2_000
    assert watch.evidence < ALARM


def test_users_that_one_arm_loses_give_an_alarm():
    watch, assignment = SplitWatch(SHARES), Assignment("salt", SHARES)
    for number in range(4_000):
        arm = assignment.arm_of(str(number))
        if arm == "control" or number % 4:  # a quarter of the other arm's users never gets an answer
            watch.note(str(number), arm)
    assert watch.evidence > ALARM


def test_workers_are_added_up_and_their_evidence_is_averaged():
    workers = [
        Counters(users={"control": 2, "new": 1}, evidence=1.0),
        Counters(users={"new": 4}, evidence=3.0),
    ]
    total = added(workers)
    assert total.users == {"control": 2, "new": 5}
    assert total.evidence == 2.0
    assert 'towpath_split_users{arm="new"} 5' in to_prometheus(total, 2)
    assert "towpath_split_evidence 2\n" in to_prometheus(total, 2)


def test_certain_evidence_can_be_told_to_workers_and_to_prometheus():
    told = json.loads(json.dumps(Counters(evidence=math.inf).to_json()))
    assert "towpath_split_evidence +Inf\n" in to_prometheus(added([Counters(**told)]), 1)
