"""From a request to a slate, and to the row that is logged of it."""

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from towpath.data.vocabulary import UNKNOWN
from towpath.errors import TowpathError
from towpath.serving.clock import Clock
from towpath.serving.exposure_log.tables import RequestRow
from towpath.serving.http.assignment import Assignment
from towpath.serving.http.exploration import Slate, explore
from towpath.serving.http.messages import (
    ENCODER,
    Answer,
    RecommendBody,
    Refused,
    SimilarBody,
    Slot,
    text_of,
    texts_of,
)
from towpath.serving.http.model import Asker, Floats, ServedModel, hide
from towpath.serving.http.settings import HOLDOUT, Exploration, Limits, ServerSettings

NO_EXPLORATION = Exploration()
_POSITIONS = range(1, sys.maxsize)


class RandomText:
    """Sixteen hexadecimal digits that nobody can guess, again and again, by few system calls."""

    _DIGITS, _AT_ONCE = 16, 512

    def __init__(self) -> None:
        self._ahead: list[str] = []

    def take(self) -> str:
        """The next ones."""
        if not self._ahead:
            digits = os.urandom(self._DIGITS * self._AT_ONCE // 2).hex()
            self._ahead = [digits[at : at + self._DIGITS] for at in range(0, len(digits), self._DIGITS)]
        return self._ahead.pop()


@dataclass(slots=True)
class Served:
    """An answer, and what its row in the log needs in addition."""

    answer: Answer
    asked: tuple[str, str | None, str | None]  # endpoint, user, item
    time: int
    slate: Slate
    written: list[str]  # the ids of the slate as JSON texts

    def row(self) -> RequestRow:
        """The row of the log."""
        answer, slate = self.answer, self.slate
        endpoint, user, item = self.asked
        return RequestRow(
            answer.request_id, self.time, user, endpoint, item, answer.arm, answer.model_version,
            int(answer.fallback),
            f"[{','.join(self.written)}]",
            ENCODER.encode(slate.scores).decode(),
            ENCODER.encode(slate.propensities).decode(),
        )  # fmt: skip


@dataclass
class Answerer:
    """Answers requests from the models of the arms; `models` is replaced when an arm is swapped."""

    settings: ServerSettings
    models: dict[str, ServedModel]
    seen: Callable[[str], Collection[str]]  # the items that a user has clicked or ordered on this server
    clock: Clock
    draw: np.random.Generator
    # The times at which this server has shown a user each item, where that lets items rest.
    shown: Callable[[str], Mapping[str, Sequence[int]]] = lambda _: {}

    def __post_init__(self) -> None:
        """The users' arms follow from the settings alone."""
        self.assignment = Assignment(self.settings.salt, self.settings.shares)
        self._random = RandomText()

    def recommend(self, body: RecommendBody) -> Served:
        """The best items for a user that they have not had yet."""
        user = text_of(body.user)
        arm = self.assignment.arm_of(user)
        model = self.model_of(arm)
        check_limits(body, model, self.settings.limits)
        who = model.asker(user, texts_of(body.history), self.seen(user))
        slate, fallback = self._slate(model, arm, who, user, body)
        return self._served(slate, fallback, arm, model, ("recommend", user, None))

    def similar(self, body: SimilarBody) -> Served:
        """The items most like one item."""
        item, user = text_of(body.item), None if body.user is None else text_of(body.user)
        arm = self.assignment.arm_of(self._random.take() if user is None else user)
        model = self.model_of(arm)
        check_limits(body, model, self.settings.limits)
        code = model.items.code(item)
        if code == UNKNOWN:
            raise Refused(404, "There is no such item in the catalogue of the model; send one of its ids.")
        try:
            scores = model.similar(code)
        except TowpathError as error:  # a model that does not know which items are alike
            raise Refused(409, str(error)) from error
        _restrict(scores, model, body)
        best = model.best(scores, body.k)
        slate = explore(scores, best, body.k, self._exploration_of(arm), self.draw)
        return self._served(slate, False, arm, model, ("similar", user, item))

    def model_of(self, arm: str) -> ServedModel:
        """The model of an arm; the holdout keeps the model of the first arm."""
        return self.models[self.settings.arms[0].name if arm == HOLDOUT else arm]

    def _slate(
        self, model: ServedModel, arm: str, who: Asker, user: str, body: RecommendBody
    ) -> tuple[Slate, bool]:
        """The slate, and whether it is the fallback."""
        k, shown, now = body.k, self.shown(user), self.clock()
        # One more than asked for, so that the last place can be told from the next.
        scores, best, fallback = model.ranked(who, k + 1)
        rests = model.rest(scores, user, shown, now, counts=fallback)
        if rests or _restricts(body):
            _restrict(scores, model, body)
            best = model.best(scores, k + 1)
        if not fallback and model.in_doubt(best):
            scores = model.exact_scores(who)
            hide(scores, who.history)
            model.rest(scores, user, shown, now, counts=False)
            _restrict(scores, model, body)
            best = model.best(scores, k)
        if len(best.items) > k:
            best = Slate(best.items[:k], best.scores[:k], best.propensities[:k])
        return explore(scores, best, k, self._exploration_of(arm), self.draw), fallback

    def _exploration_of(self, arm: str) -> Exploration:
        return NO_EXPLORATION if arm == HOLDOUT else self.settings.exploration

    def _served(
        self,
        slate: Slate,
        fallback: bool,
        arm: str,
        model: ServedModel,
        asked: tuple[str, str | None, str | None],
    ) -> Served:
        time = self.clock()
        # Begins with the time, so that new ids come at the end of the log's index.
        request_id = f"{time:015x}{self._random.take()}"
        shown, written = model.items.shown, model.items.written
        slots = [
            Slot(shown[item], score, position, chance)
            for position, item, score, chance in zip(
                _POSITIONS, slate.items, slate.scores, slate.propensities, strict=False
            )
        ]
        answer = Answer(request_id, arm, model.version, slots, fallback)
        return Served(answer, asked, time, slate, [written[item] for item in slate.items])


def check_limits(body: RecommendBody | SimilarBody, model: ServedModel, limits: Limits) -> None:
    """Nothing, unless the request asks for more than it may."""
    most = min(limits.most_k, len(model.items.texts))
    if body.k > most:
        raise Refused(400, f"k must lie between 1 and {most:,}; ask for fewer items.")
    for ids in (body.candidates, body.exclude, getattr(body, "history", None)):
        if ids and len(ids) > limits.most_ids:
            raise Refused(400, f"A list of ids may hold at most {limits.most_ids:,}; send fewer.")


def _restricts(body: RecommendBody | SimilarBody) -> bool:
    return bool(body.exclude) or body.candidates is not None


def _restrict(scores: Floats, model: ServedModel, body: RecommendBody | SimilarBody) -> None:
    """Hide what is excluded and, where there are candidates, all but them."""
    if body.exclude:
        scores[model.items.known(texts_of(body.exclude))] = -np.inf
    if body.candidates is not None:
        allowed = model.items.known(texts_of(body.candidates))
        kept = scores[allowed]
        scores[:] = -np.inf
        scores[allowed] = kept
