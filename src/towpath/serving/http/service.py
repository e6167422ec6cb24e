"""One worker of the server without its network: models, log, counts, and what goes on in the background."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress

from towpath.errors import TowpathError
from towpath.rng import Rng
from towpath.serving.clock import seconds
from towpath.serving.exposure_log.store import open_store
from towpath.serving.exposure_log.tables import AssignmentRow, OutcomeRow, Row
from towpath.serving.exposure_log.writer import LogWriter
from towpath.serving.http.access import RateLimit, Tokens
from towpath.serving.http.answers import Answerer, Served
from towpath.serving.http.counters import Counters, added
from towpath.serving.http.messages import Outcome, Refused, SwapBody, text_of
from towpath.serving.http.model import ServedModel, load_model
from towpath.serving.http.seen import SeenItems
from towpath.serving.http.settings import NOTHING_RESTS, Place, RestRules, ServerSettings
from towpath.serving.http.shared import SharedState
from towpath.serving.http.split import SplitWatch

_MICROSECONDS_OF_A_DAY = 86_400_000_000
_SECONDS_BETWEEN_LOOKS = 0.25  # for swaps that another worker was asked for
_SECONDS_FOR_A_SWAP = 60.0


class Service:
    """All that endpoints need. Made before the event loop runs, started inside it."""

    def __init__(self, settings: ServerSettings, place: Place) -> None:
        self.settings, self.place = settings, place
        self.shared = SharedState(place.folder, place.worker)
        generation, folders = self.shared.swapped()
        self.folders = {arm.name: folders.get(arm.name, arm.folder) for arm in settings.arms}
        self.counters = Counters(generation=generation)
        self.seen = SeenItems(settings.log, showings=settings.rest != NOTHING_RESTS)
        self.split = SplitWatch(settings.shares)
        draw = Rng(place.seed).numpy("exploration", place.worker)
        models = _load_all(self.folders, settings.rest)
        self.answerer = Answerer(settings, models, self.seen.of, place.clock, draw, self.seen.showings)
        self.tokens = Tokens(settings.access.token_file, seconds)
        self.admin_tokens = Tokens(settings.access.admin_token_file, seconds)
        self.rate = RateLimit(settings.limits.per_second, seconds)
        self.writer: LogWriter | None = None
        self.ready = False
        self._swapping = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the log, learn from it, and note the arms in it."""
        log = self.settings.log
        if log is not None:
            self.writer = LogWriter(lambda: open_store(log, self.place.worker), self._keep_from())
            await self.writer.ready()
            await self.writer.write([self._assignment()])
            await self.seen.start()
        self.shared.publish(self._counted())
        self._task = asyncio.create_task(self._watch())
        self.ready = True

    async def stop(self) -> None:
        """Write what waits and close everything."""
        self.ready = False
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self.seen.close()
        if self.writer is not None:
            await self.writer.close()

    async def log(self, rows: list[Row]) -> None:
        """Nothing, once all rows are durable."""
        if self.writer is not None:
            await asyncio.shield(self.writer.write(rows))

    async def serve(self, served: Served) -> Served:
        """The same, once it is durable."""
        if self.writer is not None:
            await self.writer.write([served.row()])
        arm, (_, user, _) = served.answer.arm, served.asked
        self.counters.count_answer(arm, served.answer.model_version)
        if user is not None:
            self.split.note(user, arm)
        return served

    async def note(self, outcomes: list[Outcome]) -> None:
        """Log what users did; learn from it what they have seen."""
        time = self.place.clock()
        rows: list[Row] = [_outcome_row(one, time) for one in outcomes]
        await self.log(rows)
        for one in outcomes:
            self.counters.outcomes[one.kind] = self.counters.outcomes.get(one.kind, 0) + 1
        with suppress(TowpathError):  # it is durable; what it teaches is learned at the next look
            await self.seen.catch_up()

    async def swap(self, body: SwapBody) -> str:
        """The version that the arm has now on every worker."""
        if body.arm not in self.folders:
            raise Refused(404, f"There is no such arm; the arms are {', '.join(self.folders)}.")
        async with self._swapping:
            try:
                model = await asyncio.to_thread(load_model, body.run, self.settings.rest)
            except TowpathError as error:
                raise Refused(400, str(error)) from error
            self._use({body.arm: model}, {body.arm: body.run})
            self.counters.generation = self.shared.swap(body.arm, body.run)
            await self._all_have(self.counters.generation)
        return model.version

    def total(self) -> Counters:
        """The counts of all workers."""
        return added([self._counted(), *self.shared.others()])

    def _counted(self) -> Counters:
        """The counts of this worker as they are now."""
        self.counters.waiting = 0 if self.writer is None else self.writer.waiting
        self.counters.users, self.counters.evidence = self.split.users, self.split.evidence
        return self.counters

    def _use(self, models: dict[str, ServedModel], folders: dict[str, str]) -> None:
        # One assignment: a request has the old model or the new one.
        self.answerer.models = {**self.answerer.models, **models}
        self.folders = {**self.folders, **folders}

    async def _all_have(self, generation: int) -> None:
        """Nothing, once every other worker has made this swap."""
        deadline = seconds() + _SECONDS_FOR_A_SWAP
        while any(one.generation < generation for one in self.shared.others()):
            if seconds() > deadline:
                raise Refused(
                    503, "Not every worker has loaded the model yet; look at /metrics and ask again."
                )
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS / 2)

    async def _watch(self) -> None:
        """Make the swaps that other workers were asked for, and tell them what was counted."""
        looks = 0
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            looks += 1
            with suppress(TowpathError, OSError, ValueError):  # tried again at the next look
                if await self._follow_swaps() or looks % 4 == 0:
                    self.shared.publish(self._counted())

    async def _follow_swaps(self) -> bool:
        generation, folders = self.shared.swapped()
        if generation <= self.counters.generation or self._swapping.locked():
            return False
        new = {arm: folder for arm, folder in folders.items() if self.folders[arm] != folder}
        self._use(await asyncio.to_thread(_load_all, new, self.settings.rest), new)
        self.counters.generation = generation
        return True

    def _assignment(self) -> AssignmentRow:
        shares = self.settings.shares
        names, values = json.dumps(list(shares)), json.dumps(list(shares.values()))
        return AssignmentRow(self.place.clock(), self.settings.salt, names, values)

    def _keep_from(self) -> Callable[[], int] | None:
        if not self.settings.retain_days:
            return None
        kept = round(self.settings.retain_days * _MICROSECONDS_OF_A_DAY)
        return lambda: self.place.clock() - kept


def _load_all(folders: dict[str, str], rules: RestRules) -> dict[str, ServedModel]:
    """The model of each arm; a folder that several arms share is loaded once."""
    loaded = {folder: load_model(folder, rules) for folder in dict.fromkeys(folders.values())}
    return {arm: loaded[folder] for arm, folder in folders.items()}


def _outcome_row(one: Outcome, time: int) -> OutcomeRow:
    units = one.units if one.units is not None else float(one.kind == "order")
    keys = text_of(one.event_id), text_of(one.request_id), text_of(one.item)
    return OutcomeRow(keys[0], time, keys[1], keys[2], one.kind, units, one.value or 0.0)
