"""Transport on a log of impressions: a stacked library of heads, deployed as one factorisation."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.data.negatives import PairSet
from towpath.errors import DataError
from towpath.kernels.heads import HeadTask
from towpath.models.factorization import Factorization
from towpath.rng import Rng
from towpath.training.checkpoint import nested, under
from towpath.training.fit import Row
from towpath.training.impressions import ImpressionBatch, ImpressionBatches
from towpath.training.optimiser import Optimiser
from towpath.training.settings import TrainingSettings
from towpath.transport.impressions.deploy import fill, sum_of_members
from towpath.transport.impressions.library import Library
from towpath.transport.impressions.members import HEADS, RELEVANCE, fixed_weights, members_of, task_of
from towpath.transport.impressions.settings import LibrarySettings
from towpath.transport.impressions.stack import Stack, stack_heads
from towpath.transport.impressions.targets import head_targets, head_weights

# More held-out impressions than this do not make the weights any better.
_MOST_HELD_OUT = 200_000
_LAST_RATE = 0.1  # share of the step size that is left at the end


class ImpressionLearner:
    """Trains the library, weighs its heads by held-out impressions and deploys their sum.

    Every member is there twice where it is to be weighed: once without the held-out impressions, which gives
    the weights, and once with all of them, which is deployed. Both are trained in the same pass.
    """

    def __init__(
        self,
        scorer: Factorization,
        train: Interactions,
        training: TrainingSettings,
        settings: LibrarySettings,
        rng: Rng,
    ) -> None:
        self.scorer = scorer
        self._settings, self._rng = settings, rng
        self.own_epochs: int | None = min(training.epochs, settings.library_epochs)
        self._batches = ImpressionBatches(train, settings.library_negatives, training.batch_size)
        self._members = members_of(settings)
        self._stacked = settings.penalty is None
        self.library = Library(
            scorer.sizes, task_of(self._members, stacked=self._stacked), settings.member_dim, rng
        )
        self._optimiser = Optimiser([self.library], settings.library_rate, training.clip_norm)
        self._held_out = hold_out(self._batches.impressions, settings.held_out if self._stacked else 0.0, rng)
        self._held_pairs = PairSet(self._batches.impressions.where(self._held_out)) if self._stacked else None
        self._judged = self._sample_of_held_out()

    def epoch(self, number: int) -> Row:
        """One pass over the impressions for all members, then the weights and the sum."""
        assert self.own_epochs is not None
        self._optimiser.walk_at(1 - (1 - _LAST_RATE) * (number - 1) / self.own_epochs)
        for batch in self._batches.epoch(number, self._rng):
            self._optimiser.move(self.library.gradients(self._task(batch)))
        return self._deploy()

    def _task(self, batch: ImpressionBatch) -> HeadTask:
        """The targets of a batch, with weights for members without and with the held-out impressions."""
        everything = torch.ones(len(batch.items)), torch.ones(batch.items.shape)
        whole = head_weights(batch, *everything)
        partial = whole if self._held_pairs is None else head_weights(batch, *self._without_held_out(batch))
        return HeadTask(
            batch.context.users, batch.items, head_targets(batch), torch.stack([partial, whole])
        )

    def _without_held_out(self, batch: ImpressionBatch) -> tuple[Tensor, Tensor]:
        """Which impressions and which pairs of the batch are not held out."""
        assert self._held_pairs is not None
        users = np.repeat(batch.context.users.numpy(), batch.items.shape[1])
        held = self._held_pairs.contains(users, batch.items.numpy().ravel()).reshape(batch.items.shape)
        known = torch.from_numpy(~self._held_out[batch.rows]).float()
        return known, torch.from_numpy(~held).float()

    def _deploy(self) -> Row:
        """Weigh the heads, add them up, and put the sum into the scorer."""
        count = len(self._members)
        if not self._stacked:
            weights = fixed_weights(self._members)
            total = sum_of_members(*self.library.tables(slice(0, count)), weights)
            return {"rank_loss": fill(self.scorer, total)}
        stack = self._stack(count)
        weights = torch.zeros(count, HEADS)
        weights[self._places()] = torch.from_numpy(stack.weights[:-1]).float()
        total = sum_of_members(*self.library.tables(slice(count, 2 * count)), weights)
        return {"loss": stack.log_loss, "rank_loss": fill(self.scorer, total)}

    def _stack(self, count: int) -> Stack:
        users, items, clicks = self._judged
        logits = self.library.logits(users, items, slice(0, count))
        own = self.library.user_biases(users, slice(0, count))
        members, heads = self._places()
        # How often a user clicks at all ranks nothing, but it must be known to tell what does.
        clicking = own[:, [n for n, m in enumerate(self._members) if m.prices[RELEVANCE]], RELEVANCE].mean(1)
        scores = torch.cat([(logits - own)[:, members, heads], clicking[:, None]], dim=1)
        return stack_heads(scores.double().numpy(), clicks, self._settings.stack_ridge)

    def _places(self) -> tuple[list[int], list[int]]:
        """The members and heads that are trained, pair by pair."""
        pairs = [(n, head) for n, member in enumerate(self._members) for head in member.heads]
        return [member for member, _ in pairs], [head for _, head in pairs]

    def _sample_of_held_out(self) -> tuple[Tensor, Tensor, NDArray[np.float64]]:
        """Users, items and clicks of the held-out impressions, or of as many as are enough."""
        log, rows = self._batches.impressions, np.flatnonzero(self._held_out)
        if len(rows) > _MOST_HELD_OUT:
            rows = np.sort(self._rng.numpy("stack").choice(rows, _MOST_HELD_OUT, replace=False))
        users, items = (torch.from_numpy(codes[rows]).long() for codes in (log.users, log.items))
        clicks = np.asarray(log.labels)[rows].astype(np.float64)
        if self._stacked and not 0 < clicks.sum() < len(clicks):
            raise DataError(
                f"The weights of the members need held-out impressions of both kinds, but of {len(clicks):,} "
                f"{int(clicks.sum()):,} were clicked; bring more data, or set penalty."
            )
        return users, items, clicks

    def state(self) -> dict[str, Tensor]:
        """The library, the optimiser's moments, and the sum."""
        own = nested("scorer", self.scorer.state_dict()) | nested("optimiser", self._optimiser.state())
        return own | nested("library", self.library.state_dict())

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to a state."""
        self.scorer.load_state_dict(under("scorer", state))
        self._optimiser.load_state(under("optimiser", state))
        self.library.load_state_dict(under("library", state))

    def beside(self) -> dict[str, Tensor]:
        """Nothing: what is deployed is all that is kept."""
        return {}


def hold_out(impressions: Interactions, share: float, rng: Rng) -> NDArray[np.bool_]:
    """Which impressions are held out, at random, those of one request together: (n,)."""
    draw = rng.numpy("held-out")
    if impressions.requests is None:
        return draw.random(len(impressions)) < share
    return (draw.random(int(impressions.requests.max(initial=0)) + 1) < share)[impressions.requests]
