import subprocess
import sys

import pytest

from towpath.errors import ConfigError
from towpath.serving.http.assignment import Assignment
from towpath.serving.http.settings import ArmSettings, Exploration, ServerSettings
from towpath.stats.sample_ratio import e_value

USERS = [f"user-{n}" for n in range(20_000)]


def test_users_are_split_as_the_shares_say():
    shares = {"a": 0.5, "b": 0.3, "c": 0.2}
    arms = [Assignment("salt", shares).arm_of(user) for user in USERS]
    counts = [arms.count(name) for name in shares]
    assert e_value(counts, list(shares.values())) < 1


def test_a_user_keeps_their_arm_in_another_process():
    code = (
        "from towpath.serving.http.assignment import Assignment\n"
        "a = Assignment('salt', {'a': .5, 'b': .5})\n"
        "print(''.join(a.arm_of(f'user-{n}') for n in range(50)))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    here = Assignment("salt", {"a": 0.5, "b": 0.5})
    assert told.strip() == "".join(here.arm_of(user) for user in USERS[:50])


def test_another_salt_deals_anew_and_growing_an_arm_moves_only_to_it():
    one, other = (Assignment(salt, {"a": 0.5, "b": 0.5}) for salt in ("x", "y"))
    same = sum(one.arm_of(user) == other.arm_of(user) for user in USERS)
    assert 0.45 < same / len(USERS) < 0.55
    grown = Assignment("x", {"a": 0.6, "b": 0.4})
    moved = {(one.arm_of(user), grown.arm_of(user)) for user in USERS}
    assert moved == {("a", "a"), ("b", "b"), ("b", "a")}


def test_an_arm_without_a_share_gets_nobody():
    arms = {Assignment("s", {"a": 1.0, "b": 0.0}).arm_of(user) for user in USERS[:1000]}
    assert arms == {"a"}


def test_shares_follow_from_weights_and_holdout():
    arms = (ArmSettings("a", "x", 3.0), ArmSettings("b", "y", 1.0))
    assert ServerSettings(arms, None).shares == {"a": 0.75, "b": 0.25}
    assert ServerSettings(arms, None, holdout=0.2).shares == pytest.approx(
        {"a": 0.6, "b": 0.2, "holdout": 0.2}
    )
    stored = ServerSettings(arms, None, holdout=0.2)
    assert ServerSettings.from_json(stored.to_json()) == stored


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ServerSettings((), None), "at least one --arm"),
        (lambda: ServerSettings((ArmSettings("a", "x"),) * 2, None), "different names"),
        (lambda: ServerSettings((ArmSettings("holdout", "x"),), None), "other than 'holdout'"),
        (lambda: ServerSettings((ArmSettings("a", "x", -1.0),), None), "must not be negative"),
        (lambda: ServerSettings((ArmSettings("a", "x"),), None, holdout=1.0), "--holdout is a share"),
        (lambda: Exploration(epsilon=2), "--epsilon must lie"),
        (lambda: Exploration(softmax=-1), "temperature above 0"),
        (lambda: Exploration(epsilon=0.1, softmax=1), "not with both"),
    ],
)
def test_settings_that_cannot_be_are_said(make, said):
    with pytest.raises(ConfigError, match=said):
        make()
