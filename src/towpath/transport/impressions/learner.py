"""Transport on a log of impressions: a stacked library of heads, deployed as one factorisation."""

import torch
from torch import Tensor, nn

from towpath.kernels.heads import HeadTask
from towpath.models.factorization import Factorization
from towpath.training.fit import EpochMetrics
from towpath.training.impressions import ImpressionBatch, ImpressionBatches
from towpath.training.learner import Learner
from towpath.training.optimiser import Optimiser
from towpath.training.task import TrainingTask
from towpath.transport.impressions.deploy import fill, sum_of_members
from towpath.transport.impressions.held_out import HeldOut
from towpath.transport.impressions.library import Library
from towpath.transport.impressions.members import HEADS, RELEVANCE, fixed_weights, members_of, task_of
from towpath.transport.impressions.settings import LibrarySettings
from towpath.transport.impressions.stack import Stack, stack_heads
from towpath.transport.impressions.targets import head_targets, head_weights

_LAST_RATE = 0.1  # share of the step size that is left at the end


class ImpressionLearner(Learner):
    """Trains the library, weighs its heads by held-out impressions and deploys their sum.

    Every member is there twice where it is to be weighed: once without the held-out impressions, which gives
    the weights, and once with all of them, which is deployed. Both are trained in the same pass.
    """

    def __init__(self, task: TrainingTask, settings: LibrarySettings) -> None:
        scorer, training, rng = task.scorer, task.training, task.rng
        assert isinstance(scorer, Factorization)
        self._factorization = self.scorer = scorer
        self._settings, self._rng = settings, rng
        self._batches = ImpressionBatches(task.train, settings.library_negatives, training.batch_size)
        enough = settings.epochs_for(len(self._batches.impressions))
        self._epochs = min(training.epochs, enough)
        self._members = members_of(settings)
        self._stacked = settings.penalty is None
        self.library = Library(
            scorer.sizes, task_of(self._members, stacked=self._stacked), settings.member_dim, rng
        )
        self._optimiser = Optimiser([self.library], settings.library_rate, training.clip_norm)
        self._held_out = HeldOut(self._batches.impressions, settings.held_out, rng) if self._stacked else None

    @property
    def own_epochs(self) -> int:
        """The step size falls over so many; the last one is kept."""
        return self._epochs

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
        self._optimiser.set_lr_scale(1 - (1 - _LAST_RATE) * (number - 1) / self._epochs)
        for batch in self._batches.epoch(number, self._rng):
            self._optimiser.apply_gradients(self.library.gradients(self._task(batch)))
        return self._deploy()

    def _task(self, batch: ImpressionBatch) -> HeadTask:
        """The targets of a batch, with weights for members without and with the held-out impressions."""
        whole = head_weights(batch, torch.ones(len(batch.items)), torch.ones(batch.items.shape))
        partial = whole if self._held_out is None else head_weights(batch, *self._held_out.left(batch))
        return HeadTask(batch.context.users, batch.items, head_targets(batch), torch.stack([partial, whole]))

    def _deploy(self) -> EpochMetrics:
        """Weigh the heads, add them up, and put the sum into the scorer."""
        count = len(self._members)
        if self._held_out is None:
            weights = fixed_weights(self._members)
            total = sum_of_members(self.library.tables(slice(0, count)), weights)
            return {"rank_loss": fill(self._factorization, total)}
        stack = self._stack(count, self._held_out)
        weights = torch.zeros(count, HEADS)
        weights[self._places()] = torch.from_numpy(stack.weights[:-1]).float()
        total = sum_of_members(self.library.tables(slice(count, 2 * count)), weights)
        return {"loss": stack.log_loss, "rank_loss": fill(self._factorization, total)}

    def _stack(self, count: int, held_out: HeldOut) -> Stack:
        users, items = held_out.users, held_out.items
        logits = self.library.logits(users, items, slice(0, count))
        own = self.library.user_biases(users, slice(0, count))
        members, heads = self._places()
        # How often a user clicks at all ranks nothing, but it must be known to tell what does.
        clicking = own[:, [n for n, m in enumerate(self._members) if m.prices[RELEVANCE]], RELEVANCE].mean(1)
        scores = torch.cat([(logits - own)[:, members, heads], clicking[:, None]], dim=1)
        return stack_heads(scores.double().numpy(), held_out.clicks, self._settings.stack_ridge)

    def _places(self) -> tuple[list[int], list[int]]:
        """The members and heads that are trained, pair by pair."""
        pairs = [(n, head) for n, member in enumerate(self._members) for head in member.heads]
        return [member for member, _ in pairs], [head for _, head in pairs]
