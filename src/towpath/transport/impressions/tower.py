"""Transport on impressions with another model than mf: the library teaches it, and it alone is deployed."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import kl_div

from towpath.data.negatives import PairSet
from towpath.device import device_of
from towpath.models.factorization import Factorization, FactorizationSettings
from towpath.models.scorer import Context
from towpath.training.candidates import CandidateSampler
from towpath.training.checkpoint import add_prefix, strip_prefix
from towpath.training.fit import EpochMetrics
from towpath.training.impressions import impressions_of
from towpath.training.learner import Learner
from towpath.training.optimiser import Optimiser
from towpath.training.task import TrainingTask
from towpath.transport.impressions.learner import ImpressionLearner
from towpath.transport.impressions.members import members_of
from towpath.transport.impressions.settings import LibrarySettings

_LIBRARY_EPOCHS = 10  # of the library in one epoch of the loop, which validates after each
_LAST_RATE = 0.1  # share of the step size that is left at the end
# Steps an epoch, and the numbers of users in a batch between which that holds.
_STEPS = 33
_SMALLEST, _LARGEST = 16, 512
_WHOLE = 0.5  # share of the users of an epoch who have their whole history, not a part of it
_NEVER = -1e9  # as a logit: its exponential is zero


class TowerLearner(Learner):
    """Trains the library on the log, then the model, its tower, on what the library would show.

        P_f(i|u) = softmax over i of the library's score s(u, i)
        minimise   mean over u of  KL(P_f(.|u) || softmax over i of the tower's score)

    With an entropic price of distance, P_f solves the paper's objective over all policies, and the tower is
    the nearest policy to it of its own kind. Every user counts the same. Both softmaxes go over the same
    sample of the catalogue, corrected for the chances of its items; what a user has clicked is in neither,
    since lists hide it. There is no L2 penalty: what is learned has no noise. Half of the users of an epoch
    are seen after a random part of their history, so that a tower that reads histories does not know whole
    ones alone.
    """

    def __init__(self, task: TrainingTask, settings: LibrarySettings) -> None:
        self.scorer, self._train, self._rng = task.scorer, task.train, task.rng
        self._priced = settings.priced
        self._teacher = ImpressionLearner(_task_of_library(task, settings), settings)
        self.scorer.remarks = (*self.scorer.remarks, *self._teacher.scorer.remarks)
        self._lessons = -(-self._teacher.own_epochs // _LIBRARY_EPOCHS)
        self._epochs = min(task.training.epochs, settings.tower_epochs)
        self._optimiser = Optimiser([task.scorer], settings.tower_rate, task.training.clip_norm)
        draws = min(settings.tower_draws, task.train.n_items)
        self._sampler = CandidateSampler(task.train, draws, torch.device("cpu"))
        self._clicked = PairSet(task.train)
        self._users = np.unique(impressions_of(task.train).users).astype(np.int64)
        self._batch_size = min(_LARGEST, max(_SMALLEST, -(-len(self._users) // _STEPS)))

    @property
    def own_epochs(self) -> int:
        """Those of the library, several at a time, and then of the tower; the last one is kept."""
        return self._lessons + self._epochs

    def epoch(self, number: int) -> EpochMetrics:
        """Some passes of the library over the impressions, or one pass of the tower over the users."""
        if number <= self._lessons:
            row = self._teach_library(number)
        else:
            row = {"loss": self._pass(number - self._lessons)}
        return row | ({"penalty": self._teacher.penalty} if self._priced else {})

    def _teach_library(self, number: int) -> EpochMetrics:
        last = min(number * _LIBRARY_EPOCHS, self._teacher.own_epochs)
        for own in range((number - 1) * _LIBRARY_EPOCHS + 1, last + 1):
            row = self._teacher.epoch(own)
        return {"loss": row["loss"]}

    def _pass(self, number: int) -> float:
        """One pass over the users, numbered from 1; the mean divergence."""
        self._optimiser.set_lr_scale(1 - (1 - _LAST_RATE) * min((number - 1) / self._epochs, 1))
        self.scorer.train()
        draw, total = self._rng.numpy("tower", number), 0.0
        order = draw.permutation(self._users)
        for start in range(0, len(order), self._batch_size):
            users = np.sort(order[start : start + self._batch_size])
            divergence = self._divergence(users, draw)
            self._optimiser.step(divergence)
            total += float(divergence.detach()) * len(users)
        return total / len(self._users)

    def _divergence(self, users: NDArray[np.int64], draw: np.random.Generator) -> Tensor:
        """The mean divergence of the tower from the library over these users."""
        device, drawn = device_of(self.scorer), self._sampler.draw(draw)
        items = drawn.items.numpy()
        clicked = self._clicked.contains(np.repeat(users, len(items)), np.tile(items, len(users)))
        shift = torch.from_numpy(clicked).view(len(users), -1) * _NEVER - drawn.log_chances
        context, library = self._context(users, draw), self._teacher.scorer
        with torch.no_grad():
            wanted = (library.score(context, drawn.items[None]) + shift).log_softmax(1)
        here = Context(context.users.to(device), context.histories.to(device))
        scores = self.scorer.score(here, drawn.items[None].to(device))
        found = (scores + shift.to(device)).log_softmax(1)
        return kl_div(found, wanted.to(device), log_target=True, reduction="batchmean")

    def _context(self, users: NDArray[np.int64], draw: np.random.Generator) -> Context:
        """These users, some after the whole history and some after a random part of it."""
        histories, longest = self._train.histories, self.scorer.history_length
        whole = histories.lengths[users]
        kept = np.where(draw.random(len(users)) < _WHOLE, whole, draw.integers(whole + 1))
        past = np.empty((len(users), 0), dtype=np.int64)
        if longest:
            past = histories.between(histories.starts[users], histories.starts[users] + kept, longest)
        return Context(torch.from_numpy(users), torch.from_numpy(past.astype(np.int64)))

    def optimisers(self) -> dict[str, Optimiser]:
        """That of the tower."""
        return {"tower": self._optimiser}

    def live_state(self) -> dict[str, Tensor]:
        """Its own, and that of the library."""
        return super().live_state() | add_prefix("teacher", self._teacher.live_state())

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go back to a state, the library too."""
        super().load_state(state)
        self._teacher.load_state(strip_prefix("teacher", state))


def _task_of_library(task: TrainingTask, settings: LibrarySettings) -> TrainingTask:
    """The library's own task: batches of its own size, and a factorisation that holds all of its members."""
    rank = len(members_of(settings)) * settings.member_dim
    teacher = Factorization(FactorizationSettings.model_validate({"embedding_dim": rank}), task.scorer.sizes)
    teacher.initialise(task.train, task.rng)
    return replace(task, scorer=teacher, training=task.training.model_copy(update={"batch_size": 0}))
