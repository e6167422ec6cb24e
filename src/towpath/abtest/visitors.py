"""Simulated visitors of a real server: they ask, click by their true relevance, and sometimes order."""

import http.client
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from towpath.errors import TowpathError
from towpath.models.scorer import Settings
from towpath.rng import Rng
from towpath.worlds.world import World

_SECONDS = 60.0  # to wait for an answer


class VisitorSettings(Settings):
    """How visitors behave."""

    k: int = Field(default=10, ge=1, description="Length of the lists that visitors ask for.")
    visits: float = Field(default=0.3, gt=0, le=1, description="Chance that a user comes on a day.")
    order_rate: float = Field(default=0.3, ge=0, le=1, description="Chance that a click becomes an order.")
    price_spread: float = Field(
        default=0.5, ge=0, description="Spread of the logarithms of the items' prices; the median is 20."
    )


@dataclass(frozen=True)
class Shown:
    """What one visitor was shown and what it was worth in truth."""

    user: int
    arm: str
    clicks: int
    relevance: float  # clicks to expect on the list
    best: float  # clicks to expect on the best list that could have been shown
    worth: float  # value of orders to expect


class Server:
    """A client of a server on loopback, over one connection, which is opened again after `close`."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)

    def post(self, path: str, body: Any) -> Any:  # JSON in, JSON out
        """What the server answers."""
        self._connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise TowpathError(f"The server answered {answer.status} to {path}: {content.decode()[:500]}")
        return json.loads(content)

    def close(self) -> None:
        """Let go of the connection; servers do so too when nothing has been asked for a while."""
        self._connection.close()


class Visitors:
    """All users of a world, day by day. What a user has clicked is no candidate any more."""

    candidates: NDArray[np.bool_]  # (users, items) what may be shown

    def __init__(self, world: World, settings: VisitorSettings, rng: Rng) -> None:
        self._world, self._settings, self._rng = world, settings, rng
        log = world.log
        self._users = log.user_ids.ids(np.arange(log.n_users))
        self._codes = {str(one): code for code, one in enumerate(log.item_ids.ids(np.arange(log.n_items)))}
        self._arms: dict[int, str] = {}
        draw = rng.numpy("prices")
        self._prices = 20 * draw.lognormal(0, settings.price_spread, log.n_items)
        self.candidates = np.ones(world.relevance.shape, dtype=np.bool_)
        self.candidates[log.users, log.items] = False

    def on_day(self, day: int) -> NDArray[np.int64]:
        """The users that come on this day, in the order in which they come."""
        draw = self._rng.numpy("visits", day)
        coming = np.flatnonzero(draw.random(len(self._users)) < self._settings.visits)
        return draw.permutation(coming)

    def of_arm(self, arm: str) -> NDArray[np.int64]:
        """The users that this arm has answered so far."""
        return np.array(sorted(user for user, name in self._arms.items() if name == arm), dtype=np.int64)

    def visit(self, user: int, day: int, server: Server) -> Shown:
        """One visit: a list, clicks on it, and orders of what was clicked."""
        draw = self._rng.numpy("visit", day, user)
        answer = server.post("/recommend", {"user": self._users[user], "k": self._settings.k})
        self._arms[user] = answer["arm"]
        items = [self._codes[str(slot["id"])] for slot in answer["items"]]
        relevance = self._world.relevance[user, items].astype(np.float64)
        clicked = draw.random(len(items)) < relevance
        ordered = clicked & (draw.random(len(items)) < self._settings.order_rate)
        events = [
            self._event(answer, place, kind)
            for kind, happened in (("click", clicked), ("order", ordered))
            for place in np.flatnonzero(happened).tolist()
        ]
        if events:
            server.post("/outcomes", events)
        best = self._best(user, len(items))
        self.candidates[user, np.asarray(items, dtype=np.int64)[clicked]] = False
        worth = float(relevance @ self._prices[items]) * self._settings.order_rate
        return Shown(user, answer["arm"], int(clicked.sum()), float(relevance.sum()), best, worth)

    def _best(self, user: int, k: int) -> float:
        relevance = self._world.relevance[user][self.candidates[user]]
        return float(np.sort(relevance)[-k:].sum(dtype=np.float64)) if k else 0.0

    def _event(self, answer: Any, place: int, kind: str) -> dict[str, Any]:
        item = answer["items"][place]["id"]
        price = float(self._prices[self._codes[str(item)]])
        order = {"units": 1, "value": price} if kind == "order" else {}
        event = f"{answer['request_id']}-{place}-{kind}"
        return {"event_id": event, "request_id": answer["request_id"], "item": item, "kind": kind, **order}
