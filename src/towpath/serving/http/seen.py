"""What each user has clicked or ordered on this server, learned from its log."""

import asyncio
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from towpath.serving.exposure_log.follow import Follower, Pair, open_follower
from towpath.serving.exposure_log.store import LogSettings

_NOTHING: tuple[str, ...] = ()
_SECONDS_BETWEEN_LOOKS = 0.5


class SeenItems:
    """Follows the log in a thread of its own; what other workers were told is known half a second later."""

    def __init__(self, settings: LogSettings | None) -> None:
        self._settings = settings
        self._items: dict[str, dict[str, None]] = {}  # of each user, in the order in which they came
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="seen-items")
        self._follower: Follower | None = None
        self._deletions = 0  # of users from the log, as far as they are known here
        self._task: asyncio.Task[None] | None = None

    def of(self, user: str) -> Collection[str]:
        """The items of this user, oldest first."""
        return self._items.get(user, _NOTHING)

    def load(self) -> None:
        """Learn all that the log has, before there is an event loop; raises if it cannot be read."""
        if self._settings is not None:
            self._learn(*self._pool.submit(self._new).result())

    async def start(self) -> None:
        """Learn all that the log has, then go on in the background."""
        if self._settings is not None:
            await self.catch_up()
            self._task = asyncio.create_task(self._follow())

    async def catch_up(self) -> None:
        """Learn what has come into the log until now."""
        if self._settings is not None:
            self._learn(*await asyncio.get_running_loop().run_in_executor(self._pool, self._new))

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

    def _learn(self, anew: bool, pairs: Iterable[Pair]) -> None:
        if anew:  # somebody was deleted from the log, and is to be forgotten here too
            self._items = {}
        for user, item in pairs:
            self._items.setdefault(user, {})[item] = None

    def _new(self) -> tuple[bool, list[Pair]]:
        """Whether all is read anew, and what has come."""
        if self._settings is None:
            return False, []
        if self._follower is None:
            self._follower = open_follower(self._settings)
        deletions = self._follower.deletions()  # asked first: a deletion during the reading is seen next time
        anew = deletions != self._deletions
        if anew:
            self._follower.restart()
            self._deletions = deletions
        return anew, self._follower.new()
