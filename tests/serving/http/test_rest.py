import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from served import Client, running, settings_of
from small_impressions import small_log
from towpath.data.interactions import Interactions
from towpath.data.repeats import DAY, HOUR
from towpath.data.vocabulary import UNKNOWN, Vocabulary
from towpath.methods.recipe import Recipe
from towpath.serving.http.rest import ModelRest
from towpath.serving.http.settings import RestRules
from towpath.serving.run import Plan, open_run

SECOND = 1_000_000
START = 1_700_000_000  # seconds since 1970


def log(*rows: tuple[int, int, int, int], unit: int = 1) -> Interactions:
    """A log of (user, item, seconds since the start, clicked), with so many time steps a second."""
    user, item, seconds, clicked = np.array(rows).T
    return Interactions(
        users=user.astype(np.int32),
        items=item.astype(np.int32),
        user_ids=Vocabulary(pa.array(range(2))),
        item_ids=Vocabulary(pa.array(range(4))),
        times=(START + seconds) * unit,
        labels=clicked.astype(np.bool_),
    )


LOG = log((0, 0, 0, 0), (0, 0, 60, 0), (0, 1, 60, 0), (1, 3, 90, 1))
NOW = (START + HOUR) * SECOND


def rested(rules: RestRules, user: int = 0, later=None, past=LOG, now: int = NOW, **more) -> list[float]:
    scores = np.zeros(4, dtype=np.float32)
    ModelRest(past, rules).apply(scores, user, later or {}, now, **more)
    return [float(score) for score in scores]


def test_showings_of_the_log_and_of_the_server_count_together() -> None:
    hidden = -np.inf
    assert rested(RestRules(max_showings=2)) == [hidden, 0, 0, 0]
    assert rested(RestRules(max_showings=2), later={1: [NOW - 1]}) == [hidden, hidden, 0, 0]
    assert rested(RestRules(filter_shown=True), later={2: [NOW - 1]}) == [hidden, hidden, hidden, 0]
    assert rested(RestRules(filter_shown=True), user=UNKNOWN, later={2: [NOW - 1]}) == [0, 0, hidden, 0]
    assert rested(RestRules(filter_shown=True), user=UNKNOWN) == [0, 0, 0, 0]


def test_what_the_log_has_from_the_server_counts_once() -> None:
    exported = {0: [START * SECOND, (START + 60) * SECOND], 1: [(START + 60) * SECOND]}
    assert rested(RestRules(max_showings=2), later=exported) == [-np.inf, 0, 0, 0]
    later = {1: [*exported[1], (START + 91) * SECOND]}
    assert rested(RestRules(max_showings=2), later=later)[1] == -np.inf


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000])
def test_a_discount_goes_by_the_time_since_whatever_the_unit_of_the_log(unit: int) -> None:
    """Within an hour nobody clicks again, after it everybody does as at first."""
    rows = []
    for n in range(400):
        user, at = n % 2, n * 2 * DAY
        rows += [(user, 0, at, 0), (user, 0, at + 60, 0), (user, 1, at, n % 4 < 2), (user, 1, at + 60, 0)]
    past = log(*rows, unit=unit)
    end = (START + rows[-1][2]) * SECOND
    rules = RestRules(discount=True)
    soon, late = (rested(rules, user=1, past=past, now=end + wait * SECOND) for wait in (60, 2 * DAY))
    assert soon[0] < -1
    assert soon[1] < -1
    assert soon[2:] == [0, 0]
    assert abs(late[0]) < abs(soon[0])
    assert rested(rules, user=1, past=past, now=end + 60 * SECOND, counts=True) == [0] * 4


def test_a_server_does_not_show_again_what_it_has_shown(tmp_path) -> None:
    run = tmp_path / "run"
    plan = Plan(small_log(), Recipe("mf", "plain", {"epochs": 2, "embedding_dim": 4}), {"source": "by hand"})
    open_run(run, plan, resume=False).train(plan)
    settings = replace(settings_of(tmp_path / "log", only=run), rest=RestRules(filter_shown=True))
    rows = small_log().train.rows
    user = rows.user_ids.ids(np.array([3]))[0]
    shown = set(rows.item_ids.ids(rows.items[rows.users == 3]))

    def asked(client: Client) -> set[str]:
        return {slot["id"] for slot in client.recommend(user, k=3)["items"]}

    with running(settings) as client:
        first = asked(client)
        assert len(first - shown) == 3
        deadline = time.monotonic() + 20
        while first & (second := asked(client)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert len(second - shown) == 3
    with running(settings) as client:  # after a restart it is known from the log
        assert not asked(client) & (first | second)
