"""Transport on a log of impressions: a stacked library of heads, deployed as one factorisation."""

import torch
from torch import Tensor, nn

from towpath.kernels.heads import BlockTask, HeadTask
from towpath.models.factorization import Factorization
from towpath.training.fit import EpochMetrics
from towpath.training.learner import Learner
from towpath.training.optimiser import Optimiser
from towpath.training.task import TrainingTask
from towpath.transport.impressions.batches import Draws, LibraryBatches
from towpath.transport.impressions.deploy import Sum, fill, sum_of_members
from towpath.transport.impressions.held_out import HeldOut
from towpath.transport.impressions.library import Library
from towpath.transport.impressions.members import (
    LIKENESS,
    RELEVANCE,
    likeness_alone,
    member_task,
    members_of,
)
from towpath.transport.impressions.price import Distance
from towpath.transport.impressions.settings import LibrarySettings
from towpath.transport.impressions.stack import Stack, stack_heads
from towpath.transport.impressions.targets import likeness_rows

_LAST_RATE = 0.1  # share of the step size that is left at the end
_DEPLOY_EVERY = 10  # epochs of the first half; between, the scorer stays as it was


class ImpressionLearner(Learner):
    """Trains the library, weighs its heads by held-out impressions and deploys their sum.

    The first half of the epochs does without the held-out impressions, which then give the weights. The
    second half trains the members from a new start on all impressions: to go on from the first half is as
    good on validation and gives two to three percent fewer true clicks.

    Where the penalty is set, or found by a distance, held-out impressions weigh the heads of relevance alone,
    and the score is  relevance + penalty * likeness.  A penalty of 0 has one half, of shown pairs alone.
    """

    numbers = ("log_loss", "rank_loss", "penalty")

    def __init__(self, task: TrainingTask, settings: LibrarySettings) -> None:
        scorer, training, rng = task.scorer, task.training, task.rng
        assert isinstance(scorer, Factorization)
        self._factorization = self.scorer = scorer
        self._settings, self._rng = settings, rng
        draws = Draws(settings.draws_for(task.train.n_items), settings.library_negatives)
        self._batches = LibraryBatches(task.train, draws, training.batch_size)
        self._batches.elsewhere = likeness_rows(self._batches.impressions, settings).numpy()
        self._members = members_of(settings)
        self._tasks = member_task(self._members)
        self.library = Library(scorer.sizes, self._tasks, settings.member_dim)
        self._clip_norm = training.clip_norm
        self._begin("library")
        halves = 1 if settings.relevance_only else 2
        most = max(1, training.epochs // halves)
        self._first = min(most, settings.epochs_for(len(self._batches.impressions)))
        self._held_out: HeldOut | None = None
        self.log_loss = 0.0  # of the held-out impressions, by the last weights
        self.rank_loss = 0.0  # share of the sum that the deployed rank could not hold
        self.penalty = settings.penalty or 0.0
        if settings.relevance_only:
            self.library.weights.copy_(self._tasks.prices / len(self._members))
        else:
            self._held_out = HeldOut(
                self._batches.impressions, settings.held_out, rng, which=settings.stack_rows
            )
            if self._held_out.n_random:
                scorer.remarks = (*scorer.remarks, self._held_out.remark())
        self._distance: Distance | None = None
        if settings.target_distance is not None:
            self._distance = Distance(task.train, self._batches.impressions, settings.list_length, rng)

    @property
    def own_epochs(self) -> int:
        """The step size falls over the epochs of each half; the last one is kept."""
        return self._first if self._held_out is None else 2 * self._first

    def players(self) -> dict[str, nn.Module]:
        """The library, whose weighted sum is the scorer."""
        return {"library": self.library}

    def optimisers(self) -> dict[str, Optimiser]:
        """That of the library."""
        return {"library": self._optimiser}

    def auxiliary_state(self) -> dict[str, Tensor]:
        """Nothing: what is deployed is all that is kept."""
        return {}

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the impressions for all members, then the weights and the sum."""
        if self._held_out is not None and number == self._first + 1:
            self._begin("all")
        done = number - 1 if number <= self._first else number - 1 - self._first  # epochs of this half
        self._optimiser.set_lr_scale(1 - (1 - _LAST_RATE) * min(done / self._first, 1))
        held_out = self._held_out if number <= self._first else None
        for pairs, block in self._batches.epoch(number, self._rng, held_out):
            self._optimiser.apply_gradients(self.library.gradients(*self.task_of(pairs, block)))
        if self._is_deployed(number):
            if held_out is not None:
                self.log_loss = self.weigh(held_out)
            self._set_price()
            self.rank_loss = fill(self._factorization, self.deployed())
        known = {"penalty": self.penalty} if self._settings.priced else {}
        if self._held_out is not None and self._held_out.n_random > 0:
            random = self._held_out.random
            known["held_out_random"] = 0 if random is None else len(random.rows)
        return {"loss": self.log_loss, "rank_loss": self.rank_loss, **known}

    def _is_deployed(self, number: int) -> bool:
        """Whether the scorer becomes the sum of this epoch.

        Members that have just begun anew are worse than the first half's sum: it stays until they are done.
        """
        early = number < self._first and number % _DEPLOY_EVERY == 1
        return early or number == self._first or number >= self.own_epochs

    def task_of(self, pairs: HeadTask, block: BlockTask) -> tuple[HeadTask, BlockTask]:
        """What the heads are to say of the impressions and the draws of a batch."""
        return pairs, block

    def deployed(self) -> Sum:
        """The sum of the heads, as they are weighed now."""
        return sum_of_members(self.library.tables, self.library.weights)

    def _begin(self, name: str) -> None:
        """Let all members start anew, from random numbers of this name."""
        self.library.start(self._rng.child(name))
        self._optimiser = Optimiser([self.library], self._settings.library_rate, self._clip_norm)

    def weigh(self, held_out: HeldOut) -> float:
        """Find the weights of the heads by held-out impressions; their log loss."""
        stack = self._stack(held_out)
        self.library.weights.zero_()
        self.library.weights[self._weighed] = torch.from_numpy(stack.weights[:-1]).float()
        return stack.log_loss

    def _set_price(self) -> None:
        """Let likeness to the log count by the penalty, which a distance may have to find first."""
        if not self._settings.priced or self._settings.relevance_only:
            return
        alone = likeness_alone(self._members)
        self.library.weights[LIKENESS] = 0
        if self._distance is not None and self._settings.target_distance is not None:
            relevance, likeness = (
                sum_of_members(self.library.tables, weights) for weights in (self.library.weights, alone)
            )
            self.penalty = self._distance.price(relevance, likeness, self._settings.target_distance)
        self.library.weights.add_(self.penalty * alone)

    def _stack(self, held_out: HeldOut) -> Stack:
        users, items = held_out.users, held_out.items
        logits, own = self.library.logits(users, items), self.library.user_biases(users)
        # How often a user clicks at all ranks nothing, but it must be known to tell what does.
        clicking = own[:, RELEVANCE, self._trained[RELEVANCE]].mean(1)
        scores = torch.cat([(logits - own)[:, self._weighed], clicking[:, None]], dim=1)
        ridge = self._settings.stack_ridge
        return stack_heads(scores.double().numpy(), held_out.clicks, ridge, held_out.random)

    @property
    def _trained(self) -> Tensor:
        """The heads of members that are trained: (H, M)."""
        return self._tasks.prices > 0

    @property
    def _weighed(self) -> Tensor:
        """Those that held-out impressions weigh: all, or those of relevance where likeness has a price."""
        if not self._settings.priced:
            return self._trained
        of_relevance = torch.zeros_like(self._trained)
        of_relevance[RELEVANCE] = self._trained[RELEVANCE]
        return of_relevance
