"""Transport on impressions with any model as the tower: heads on one representation, one tower deployed."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from towpath.data.interactions import Interactions
from towpath.device import device_of
from towpath.errors import ConfigError
from towpath.models.headed import Headed, with_heads
from towpath.models.scorer import Context, Scorer
from towpath.rng import Rng
from towpath.training.fit import EpochMetrics
from towpath.training.impressions import ImpressionBatch, ImpressionBatches
from towpath.training.learner import Learner
from towpath.training.optimiser import Optimiser
from towpath.training.task import TrainingTask
from towpath.transport.impressions.held_out import HeldOut
from towpath.transport.impressions.members import HEADS, JOINT, RELEVANCE
from towpath.transport.impressions.settings import LibrarySettings
from towpath.transport.impressions.stack import Stack, stack_heads
from towpath.transport.impressions.targets import head_targets, head_weights, likeness_rows

_MOST_HELD_OUT = 20_000
_PAIRS_AT_ONCE = 4096


class TowerLearner(Learner):
    """Trains towers on several mixes of the losses, and the best mix once more on all impressions.

    The first half of the epochs goes without the held-out impressions, which then say which mix, after how
    many epochs, and with which weights of its heads, predicts their clicks best. The second half trains that
    one on everything, for as long. Where the penalty is set there is one mix and nothing to choose.
    """

    def __init__(self, task: TrainingTask, settings: LibrarySettings) -> None:
        scorer, train, training, rng = task.scorer, task.train, task.training, task.rng
        if settings.target_distance is not None:
            raise ConfigError(
                "On a log of impressions target_distance is for the model mf; with other models set penalty, "
                "or solver=game."
            )
        self._training, self._settings, self._rng = training, settings, rng
        self._batches = ImpressionBatches(train, settings.library_negatives, training.batch_size)
        self._elsewhere = likeness_rows(self._batches.impressions, settings)
        self._prices = torch.tensor(JOINT if settings.penalty is None else [_mix_of(settings.penalty)])
        self._most = min(training.epochs, settings.tower_epochs)
        self._held_out: HeldOut | None = None
        if settings.penalty is None:
            self._held_out = HeldOut(
                self._batches.impressions, settings.held_out, rng.child("tower"), _MOST_HELD_OUT
            )
        self._tower = self.scorer = with_heads(scorer, HEADS, "sum")
        self._towers = nn.ModuleList(_another(scorer, train, rng, n) for n in range(len(self._prices)))
        self._optimisers = [
            Optimiser([t], training.learning_rate, training.clip_norm) for t in [self.scorer, *self._towers]
        ]
        self._record = _Record(self._most, len(self._prices))
        if settings.penalty is not None:
            self._record.chosen[0] = self._most - 1
            self._tower.weights.copy_(self._prices[0])

    @property
    def own_epochs(self) -> int | None:
        """As many epochs as it takes to choose, and as many again as were chosen; the last one is kept."""
        chosen = int(self._record.chosen[0]) + 1
        return chosen if self._held_out is None else self._most + chosen

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the impressions, of the towers that are to be chosen from or of the chosen one."""
        if self._held_out is None:
            return {"loss": self._pass(0, self._tower, self._prices[0], number)}
        if number <= self._most:
            return self._compare(number, self._held_out)
        epoch, mix = self._record.chosen.tolist()
        self._tower.weights.copy_(self._record.losses[epoch, mix, 1:])
        return {"loss": self._pass(0, self._tower, self._prices[mix], number)}

    def _compare(self, number: int, held_out: HeldOut) -> EpochMetrics:
        """An epoch of every mix, and what the held-out impressions say of each."""
        for mix, tower in enumerate(self._towers):
            assert isinstance(tower, Headed)
            self._pass(1 + mix, tower, self._prices[mix], number)
            stack = self._stack(tower, held_out)
            self._record.losses[number - 1, mix] = torch.tensor([stack.log_loss, *stack.weights[:HEADS]])
        losses = self._record.losses[..., 0]
        best = int(losses.argmin())
        self._record.chosen.copy_(torch.tensor([best // losses.shape[1], best % losses.shape[1]]))
        return {"loss": float(losses.min()), "mix": float(self._record.chosen[1])}

    def _pass(self, which: int, tower: Headed, prices: Tensor, number: int) -> float:
        """One pass of one tower; its mean loss."""
        tower.train()
        total = 0.0
        held_out = self._held_out if which > 0 else None
        without = None if held_out is None else held_out.mask
        for drawn in self._batches.epoch(number, self._rng, tower.history_length, without=without):
            batch = drawn.to(device_of(tower))
            loss = self._risk(tower, batch, prices, held_out)
            self._optimisers[which].step(loss)
            total += float(loss.detach())
        return total / len(self._batches)

    def _risk(
        self, tower: Headed, batch: ImpressionBatch, prices: Tensor, held_out: HeldOut | None
    ) -> Tensor:
        """The weighted sum of the heads' mean losses, plus the L2 penalty."""
        logits, norm = tower.logits_with_norm(batch.context, batch.items)
        device = batch.items.device
        open_pairs = torch.ones(batch.items.shape) if held_out is None else held_out.open_pairs(batch)
        losses = softplus(logits) - head_targets(batch) * logits
        elsewhere = self._elsewhere[batch.rows].to(device)
        counts = head_weights(batch, open_pairs.to(device), elsewhere) * prices.to(device)
        return (counts * losses).sum() + self._training.l2 * norm * prices.sum()

    @torch.no_grad()
    def _stack(self, tower: Headed, held_out: HeldOut) -> Stack:
        """The weights of the heads by held-out impressions; see `learner` for the last column."""
        tower.eval()
        device, parts = device_of(tower), []
        for start in range(0, len(held_out.rows), _PAIRS_AT_ONCE):
            some = slice(start, start + _PAIRS_AT_ONCE)
            context = self._batches.context(held_out.rows[some], tower.history_length)
            context = Context(context.users.to(device), context.histories.to(device))
            own = tower.users(context.users)
            logits = tower.logits(context, held_out.items[some, None].to(device))[:, 0] - own
            parts.append(torch.cat([logits, own[:, [RELEVANCE]]], dim=1))
        scores = torch.cat(parts).double().cpu().numpy()
        return stack_heads(np.asarray(scores), held_out.clicks, self._settings.stack_ridge)

    def players(self) -> dict[str, nn.Module]:
        """The towers that are chosen from, and what was found of them."""
        return {"towers": self._towers, "found": self._record}

    def optimisers(self) -> dict[str, Optimiser]:
        """Those of the deployed tower and of all others."""
        return {str(n): optimiser for n, optimiser in enumerate(self._optimisers)}

    def auxiliary_state(self) -> dict[str, Tensor]:
        """Nothing: what is deployed is all that is kept."""
        return {}


class _Record(nn.Module):
    """Held-out loss after each epoch, then the weights of the heads, for each mix; and which was chosen."""

    losses: Tensor  # (epochs, mixes, 1 + heads)
    chosen: Tensor  # (2,) epoch from 0, and mix

    def __init__(self, epochs: int, mixes: int) -> None:
        super().__init__()
        self.register_buffer("losses", torch.full((epochs, mixes, 1 + HEADS), torch.inf))
        self.register_buffer("chosen", torch.zeros(2, dtype=torch.long))


def _mix_of(penalty: float) -> tuple[float, float, float]:
    """The losses of r + penalty * e, the larger weight one."""
    most = max(1.0, penalty)
    return penalty / most, 1 / most, 0.0


def _another(scorer: Scorer, train: Interactions, rng: Rng, number: int) -> Headed:
    """A tower of the same kind with a start of its own."""
    tower = type(scorer)(scorer.settings, scorer.sizes)
    tower.initialise(train, rng.child("tower", number))
    return with_heads(tower, HEADS, "sum")
