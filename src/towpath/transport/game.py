"""The game of f, w and g: one learner that moves each player in turn."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count

import torch
from torch import Tensor, nn

from towpath.device import device_of
from towpath.kernels.margin_game import MarginPairs
from towpath.models.capabilities import HasManualBackward, manual_backward, score_with_norm
from towpath.models.players import longest_history
from towpath.training.batches import Batch, make_batches
from towpath.training.distributed import Slice, slice_of
from towpath.training.fit import EpochMetrics
from towpath.training.learner import Learner
from towpath.training.losses import logistic_loss, logistic_slope
from towpath.training.optimiser import Optimiser
from towpath.training.task import TrainingTask
from towpath.transport.domain import Deployment
from towpath.transport.fused import can_fuse, move_players
from towpath.transport.game_batch import GameBatch
from towpath.transport.objective import (
    dual_step,
    mass,
    mean_one,
    payoff_slopes,
    transport_gap,
    weighted_risk,
)
from towpath.transport.players import make_critic, make_weights
from towpath.transport.reco import shown
from towpath.transport.settings import TransportSettings, refuse_soft_sharing
from towpath.transport.watch import averaged, observe, refuse_collapse
from towpath.transport.weights import MarginWeights

# Batches between two looks at the game: often enough for a mean over the epoch, too rarely to cost time.
_LOOK_EVERY = 20


@dataclass(frozen=True)
class ScoredBatch:
    """A batch as f scores it: scores and losses (b, k), and the L2 penalty before its weight.

    They carry gradients unless f works them out itself: then `manual` is f. Where several processes train,
    all but `whole` is about the slice of this one.
    """

    whole: Batch
    mine: Slice
    scores: Tensor
    losses: Tensor
    norm: Tensor
    manual: HasManualBackward | None


class TransportLearner(Learner):
    """Trains f together with a weighting w and a critic g (the paper's equation 6)."""

    numbers = ("penalty",)
    epochs_before = 0  # of plain training by another learner, which people count too

    def __init__(self, task: TrainingTask, settings: TransportSettings) -> None:
        self.scorer, training = task.scorer, task.training
        self._settings, self._training, self._rng = settings, training, task.rng
        # With `auto` another learner has trained f before the first epoch of the game.
        self._warm_epochs = 0 if settings.warm_epochs == "auto" else settings.warm_epochs
        self._deployment = Deployment(task.scorer, task.train, training, settings)
        self._optimiser = Optimiser([task.scorer], training.learning_rate, training.clip_norm)
        # Each process scores its slice for f; w and g are small or move alike, and all move them in full.
        self._workers = self._optimiser.workers = self._deployment.workers
        if self._workers is not None:
            refuse_soft_sharing(settings)
        self.weights = make_weights(task.scorer, task.train, settings, task.rng)
        self._weights_optimiser = Optimiser([self.weights], settings.learning_rate_w, own_rates=False)
        self.critic = make_critic(task.scorer, task.train, settings, task.rng)
        self.penalty = 1.0 if settings.penalty is None else settings.penalty
        alone = self._workers is None and self._deployment.one_table
        self._fuses = alone and can_fuse(self.weights, settings)
        # Every player finds as much of a history in a batch as it looks at.
        longest = longest_history(task.scorer, self.weights, self.critic)
        self._batches = make_batches(task.train, task.scorer, training, self._deployment.ranking, longest)

    def players(self) -> dict[str, nn.Module]:
        """The weighting and the critic."""
        return {"w": self.weights, "g": self.critic}

    def optimisers(self) -> dict[str, Optimiser]:
        """Those of all three players."""
        return {"f": self._optimiser, "w": self._weights_optimiser, "g": self.critic.optimiser}

    # -- an epoch -------------------------------------------------------------------------------------------

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the positives, every batch a round of the game."""
        self._optimiser.set_lr_scale(self._training.lr_scale(number))
        warm = number <= self._warm_epochs
        if number == self._warm_epochs + 1:
            self.critic.begin(self.scorer)
        self._deployment.begin_epoch(number, self._rng)
        self.critic.forget()
        self.scorer.train()
        inner = self._inner_batches(number)
        looks, losses = [], torch.zeros((), device=device_of(self.scorer))
        for step, batch in enumerate(self._batches.epoch(number, self._rng)):
            if warm:
                losses += self._warm_round(batch)
                continue
            if step % _LOOK_EVERY and self._fuses:
                losses += self._fused_round(batch)
                continue
            loss, game = self._round(batch, inner)
            losses += loss
            if step % _LOOK_EVERY == 0:
                looks.append(self._look(game))
        losses = losses if self._workers is None else self._workers.total(losses)
        return self._close(number, averaged(looks)) | {"loss": float(losses) / len(self._batches)}

    def _close(self, number: int, row: EpochMetrics) -> EpochMetrics:
        if row:
            epoch = self.epochs_before + number
            refuse_collapse(row, epoch=epoch, min_ess=self._settings.min_ess)
        return row | {"penalty": self.penalty}

    def _warm_round(self, batch: Batch) -> Tensor:
        """A plain step of f."""
        return self._move_f(self._scored(batch), None, None)

    def _round(self, batch: Batch, inner: Iterator[GameBatch]) -> tuple[Tensor, GameBatch]:
        """One move of f, and those of w and g that belong to it: f's loss, and the game as it was before."""
        scored = self._scored(batch)
        game = self._game_batch(scored)
        small = self._deployment.subsample_columns(game)
        if self._settings.schedule == "simultaneous":
            return self._all_at_once(scored, game, small), small
        loss = torch.zeros_like(scored.norm)
        moved = {"w": False, "g": False}
        for player in self._moves():
            if player == "f":
                loss = self._move_f(scored, game, self._weights_of(game))
                continue
            # The first move of w and of g is made on f's own batch, further ones on fresh batches.
            at = next(inner) if moved[player] and self._settings.fresh else small
            moved[player] = True
            self._move_inner(player, at)
        return loss, small

    def _fused_round(self, batch: Batch) -> Tensor:
        """The same round by compiled loops, for the games that `can_fuse` names."""
        scored = self._scored(batch)
        scores, losses = scored.scores.detach(), scored.losses.detach()
        margins = self._deployment.margins(batch, scores)
        pairs = MarginPairs(margins, losses, self._reweight_mask(batch.labels))
        assert isinstance(self.weights, MarginWeights)
        weights = move_players(pairs, self.weights, self._weights_optimiser, self.penalty)
        return self._move_f(scored, None, weights)

    def _all_at_once(self, scored: ScoredBatch, game: GameBatch, small: GameBatch) -> Tensor:
        """Every player moves from where all stood before: Algorithm 1."""
        weights = self._weights_of(game)
        payoff = self._weight_loss(small)
        masses = self._mass(small, self.weights(small.pairs)).detach()
        loss = self._move_f(scored, game, weights)
        if small.deploys_something:
            self._weights_optimiser.step(payoff)
            self._move_g(small, masses)
        return loss

    def _moves(self) -> Iterator[str]:
        """Who moves, in order, in one round."""
        settings = self._settings
        if settings.schedule == "nested":
            inner = chain.from_iterable([*"g" * settings.steps_g, "w"] for _ in range(settings.steps_w))
            return chain(inner, "f")
        return iter("g" * settings.steps_g + "w" * settings.steps_w + "f")

    def _inner_batches(self, number: int) -> Iterator[GameBatch]:
        """Fresh batches for further moves of w and g, without end."""
        for lap in count():
            for batch in self._batches.epoch(number, self._rng, name=f"inner {lap} "):
                with torch.no_grad():
                    game = self._game_batch(self._scored(batch))
                yield self._deployment.subsample_columns(game)

    # -- the moves ------------------------------------------------------------------------------------------

    def _move_f(self, scored: ScoredBatch, game: GameBatch | None, weights: Tensor | None) -> Tensor:
        """A step of f on its risk, and on the critic's part where being shown has a gradient: its loss.

        Without weights the risk is the plain one.
        """
        batch, share = scored.mine.batch, scored.mine.share
        weights = None if weights is None else weights[scored.mine.rows]
        risk = scored.losses.mean() if weights is None else weighted_risk(scored.losses, weights)
        if self._settings.relaxation != "hard" and game is not None and game.deploys_something:
            risk = risk + self._relaxed_part(scored.scores, risk, game)
        loss = (risk + self._training.l2 * scored.norm) * share
        if scored.manual is None:
            self._optimiser.step(loss)
            return loss.detach()
        slopes = logistic_slope(scored.scores, batch.labels)
        slopes = (slopes if weights is None else slopes.mul_(weights)).mul_(share / slopes.numel())
        with torch.no_grad():
            self._optimiser.apply_gradients(
                scored.manual.gradients(batch.context, batch.items, slopes, self._training.l2 * share)
            )
        return loss

    def _weights_of(self, game: GameBatch) -> Tensor:
        """The weights that f's risk has now."""
        with torch.no_grad():
            return self._level(game, self.weights(game.pairs))

    def _relaxed_part(self, scores: Tensor, risk: Tensor, game: GameBatch) -> Tensor:
        """-penalty * E_f[g] with a gradient, shortened to its share of the risk's gradient in the scores.

        Unshortened it is of another scale than the risk and drowns it (docs/deviations/).
        """
        settings = self._settings
        with torch.no_grad():
            critic = self.critic(game.pairs)
        margins = scores - (scores.detach() - game.pairs.margins)  # the thresholds carry no gradient
        soft = shown(margins, settings.relaxation, settings.temperature)
        part = -self.penalty * (mass(soft, game.reweight_mask, settings.measure) * critic).sum()
        own, others = (torch.autograd.grad(t, scores, retain_graph=True)[0] for t in (part, risk))
        most = settings.relaxed_share * others.norm()
        shorten = (most / own.norm().clamp(min=1e-12)).clamp(max=1)
        return (scores * (own * shorten).detach()).sum()

    def _move_inner(self, player: str, game: GameBatch) -> None:
        """A move of w or g; none where nothing is shown, since there is then no distance to measure."""
        if not game.deploys_something:
            return
        if player == "w":
            self._weights_optimiser.step(self._weight_loss(game))
            return
        with torch.no_grad():
            masses = self._mass(game, self.weights(game.pairs))
        self._move_g(game, masses)

    def _weight_loss(self, game: GameBatch) -> Tensor:
        """What w descends."""
        weights = self.weights(game.pairs)
        with torch.no_grad():
            critic = self.critic(game.pairs)
            slopes = payoff_slopes(
                weights, game.loss, critic, self.penalty, game.reweight_mask, self._settings.measure
            )
        return (weights * slopes).sum()  # has the gradient of the payoff, not its value

    def _move_g(self, game: GameBatch, masses: Tensor) -> None:
        """A move of the critic, and one dual step of the penalty if there is a target distance."""
        settings = self._settings
        self.critic.respond(game, masses)
        if settings.target_distance is None:
            return
        with torch.no_grad():
            gap = transport_gap(self.critic(game.pairs), masses, self.critic(game.deployed), game.mass_f)
        self.penalty = dual_step(self.penalty, float(gap), settings.target_distance, settings.penalty_rate)

    # -- measures -------------------------------------------------------------------------------------------

    def _scored(self, batch: Batch) -> ScoredBatch:
        """The batch under f as it is."""
        relaxed, mine = self._settings.relaxation != "hard", slice_of(batch, self._workers)
        context, items = mine.batch.context, mine.batch.items
        manual = None if relaxed else manual_backward(self.scorer, context, items)
        with torch.set_grad_enabled(manual is None and torch.is_grad_enabled()):
            scores, norm = score_with_norm(self.scorer, context, items)
            return ScoredBatch(batch, mine, scores, logistic_loss(scores, mine.batch.labels), norm, manual)

    def _game_batch(self, scored: ScoredBatch) -> GameBatch:
        batch, scores = scored.whole, scored.scores.detach()
        if self._workers is not None:
            scores = self._workers.gather(scored.mine, scores, len(batch.labels))
        labels = batch.labels
        loss = scored.losses.detach() if self._workers is None else logistic_loss(scores, labels)
        return self._deployment.game_batch(batch, scores, loss, self._reweight_mask(labels))

    def _reweight_mask(self, labels: Tensor) -> Tensor:
        """The pairs that w reweighs."""
        return labels == 0 if self._settings.reweight == "unlabelled" else torch.ones_like(labels).bool()

    def _level(self, game: GameBatch, weights: Tensor) -> Tensor:
        """Weights as they enter the risk."""
        if self._settings.measure == "literal":
            return torch.where(game.reweight_mask, weights, torch.ones_like(weights))
        return mean_one(weights, game.reweight_mask)

    def _mass(self, game: GameBatch, weights: Tensor) -> Tensor:
        return mass(weights, game.reweight_mask, self._settings.measure)

    def _look(self, game: GameBatch) -> EpochMetrics:
        """The state of the game on the table of a round, as w and g left it."""
        with torch.no_grad():
            weights = self.weights(game.pairs)
            critic, deployed = self.critic(game.pairs), self.critic(game.deployed)
            row = observe(game, weights, critic, deployed, self._mass(game, weights))
        return row | {"lipschitz": self.critic.steepness(game)}
