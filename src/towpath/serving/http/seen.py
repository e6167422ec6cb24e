"""What each user has clicked or ordered on this server, and was shown, learned from its log."""

import asyncio
import json
from bisect import insort
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

from towpath.serving.exposure_log.follow import Follower, Pair, Showing, open_follower
from towpath.serving.exposure_log.store import LogSettings

_NOTHING: tuple[str, ...] = ()
_NEVER: dict[str, list[int]] = {}
_SECONDS_BETWEEN_LOOKS = 0.5


class News(NamedTuple):
    """What has come into the log; `anew`: that is all there is."""

    anew: bool = False
    pairs: Sequence[Pair] = ()
    showings: Sequence[Showing] = ()


class SeenItems:
    """Follows the log in a thread of its own; what other workers were told is known half a second later.

    So is what was shown by any worker, if it is followed: a list that is asked for twice at once is the same.
    """

    def __init__(self, settings: LogSettings | None, *, showings: bool = False) -> None:
        self._settings, self._follows_showings = settings, showings
        self._items: dict[str, dict[str, None]] = {}  # of each user, in the order in which they came
        self._shown: dict[str, dict[str, list[int]]] = {}  # user, item: when, in order
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="seen-items")
        self._follower: Follower | None = None
        self._deletions = 0  # of users from the log, as far as they are known here
        self._task: asyncio.Task[None] | None = None

    def of(self, user: str) -> Collection[str]:
        """The items of this user, oldest first."""
        return self._items.get(user, _NOTHING)

    def showings(self, user: str) -> Mapping[str, Sequence[int]]:
        """When this user was shown each item."""
        return self._shown.get(user, _NEVER)

    def load(self) -> None:
        """Learn all that the log has, before there is an event loop; raises if it cannot be read."""
        if self._settings is not None:
            self._learn(self._pool.submit(self._new).result())

    async def start(self) -> None:
        """Learn all that the log has, then go on in the background."""
        if self._settings is not None:
            await self.catch_up()
            self._task = asyncio.create_task(self._follow())

    async def catch_up(self) -> None:
        """Learn what has come into the log until now."""
        if self._settings is not None:
            self._learn(await asyncio.get_running_loop().run_in_executor(self._pool, self._new))

    async def close(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._follower is not None:
            await asyncio.get_running_loop().run_in_executor(self._pool, self._follower.close)
        self._pool.shutdown()

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            with suppress(Exception):  # the log is away; answers are refused meanwhile, and it is tried again
                await self.catch_up()

    def _learn(self, news: News) -> None:
        if news.anew:  # somebody was deleted from the log, and is to be forgotten here too
            self._items, self._shown = {}, {}
        for user, item in news.pairs:
            self._items.setdefault(user, {})[item] = None
        for user, time, items in news.showings:
            mine = self._shown.setdefault(user, {})
            for item in json.loads(items):
                insort(mine.setdefault(item, []), time)

    def _new(self) -> News:
        """What has come."""
        if self._settings is None:
            return News()
        if self._follower is None:
            self._follower = open_follower(self._settings)
        deletions = self._follower.deletions()  # asked first: a deletion during the reading is seen next time
        anew = deletions != self._deletions
        if anew:
            self._follower.restart()
            self._deletions = deletions
        return News(anew, self._follower.new(), self._follower.shown() if self._follows_showings else ())
