"""The game of f, w and g: one learner that moves each player in turn."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count

import torch
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.models.scorer import Scorer
from towpath.rng import Rng
from towpath.training.batches import Batch, make_batches
from towpath.training.checkpoint import nested, under
from towpath.training.fit import Row
from towpath.training.losses import logistic_loss, logistic_slope
from towpath.training.optimiser import Optimiser
from towpath.training.settings import TrainingSettings
from towpath.transport.domain import Deployment
from towpath.transport.objective import (
    dual_step,
    effective_sample_size,
    mass,
    mean_one,
    payoff_slopes,
    transport_gap,
    weighted_risk,
)
from towpath.transport.pairs import Table
from towpath.transport.players import make_critic, make_weights
from towpath.transport.reco import shown
from towpath.transport.settings import TransportSettings
from towpath.transport.watch import averaged, observe, refuse_collapse

# Batches between two looks at the game: often enough for a mean over the epoch, too rarely to cost time.
_LOOK_EVERY = 20


@dataclass(frozen=True)
class Scored:
    """A batch as f scores it: scores and losses (b, k), and what an L2 penalty charges for.

    They carry gradients unless f knows its own (`Scorer.gradients`).
    """

    batch: Batch
    scores: Tensor
    losses: Tensor
    norm: Tensor


class TransportLearner:
    """Trains f together with a weighting w and a critic g (the paper's equation 6)."""

    def __init__(
        self,
        scorer: Scorer,
        train: Interactions,
        training: TrainingSettings,
        settings: TransportSettings,
        rng: Rng,
    ) -> None:
        self.scorer = scorer
        self._settings, self._training, self._rng = settings, training, rng
        self._deployment = Deployment(scorer, train, training, settings)
        self._batches = make_batches(train, scorer, training, self._deployment.ranking)
        self._optimiser = Optimiser([scorer], training.learning_rate, training.clip_norm)
        self.weights = make_weights(scorer, train, settings, rng)
        self._weights_optimiser = Optimiser([self.weights], settings.learning_rate_w)
        self.critic = make_critic(scorer, train, settings, rng)
        self.penalty = 1.0 if settings.penalty is None else settings.penalty

    # -- an epoch -------------------------------------------------------------------------------------------

    def epoch(self, number: int) -> Row:
        """One pass over the positives, every batch a round of the game."""
        self._optimiser.walk_at(self._training.pace(number))
        warm = number <= self._settings.warm_epochs
        if number == self._settings.warm_epochs + 1:
            self.critic.begin(self.scorer)
        self._deployment.begin_epoch(number, self._rng)
        self.critic.forget()
        self.scorer.train()
        inner = self._inner_tables(number)
        looks, losses = [], torch.zeros(())
        for step, batch in enumerate(self._batches.epoch(number, self._rng)):
            self._deployment.tick(step)
            if warm:
                losses += self._warm_round(batch)
                continue
            loss, table = self._round(batch, inner)
            losses += loss
            if step % _LOOK_EVERY == 0:
                looks.append(self._look(table))
        return self._close(number, averaged(looks)) | {"loss": float(losses) / len(self._batches)}

    def _close(self, number: int, row: Row) -> Row:
        if row:
            refuse_collapse(row, epoch=number, min_ess=self._settings.min_ess)
        return row | {"penalty": self.penalty}

    def _warm_round(self, batch: Batch) -> Tensor:
        """A plain step of f."""
        return self._move_f(self._scored(batch), None, None)

    def _round(self, batch: Batch, inner: Iterator[Table]) -> tuple[Tensor, Table]:
        """One move of f, and those of w and g that belong to it: f's loss, and the table as it was before."""
        scored = self._scored(batch)
        table = self._table(scored)
        small = self._deployment.thinned(table)
        if self._settings.schedule == "simultaneous":
            return self._all_at_once(scored, table, small), small
        loss = torch.zeros(())
        moved = {"w": False, "g": False}
        for player in self._moves():
            if player == "f":
                loss = self._move_f(scored, table, self._weights_of(table))
                continue
            # The first move of w and of g is made on f's own batch, further ones on fresh batches.
            at = next(inner) if moved[player] and self._settings.fresh else small
            moved[player] = True
            self._move_inner(player, at)
        return loss, small

    def _all_at_once(self, scored: Scored, table: Table, small: Table) -> Tensor:
        """Every player moves from where all stood before: Algorithm 1."""
        weights = self._weights_of(table)
        payoff = self._weight_loss(small)
        masses = self._mass(small, self.weights(small.pairs)).detach()
        loss = self._move_f(scored, table, weights)
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
        times = {"f": 1, "w": settings.steps_w, "g": settings.steps_g}
        return iter("".join(player * times[player] for player in settings.order))

    def _inner_tables(self, number: int) -> Iterator[Table]:
        """Fresh batches for further moves of w and g, without end."""
        for lap in count():
            for batch in self._batches.epoch(number, self._rng, name=f"inner {lap} "):
                with torch.no_grad():
                    table = self._table(self._scored(batch))
                yield self._deployment.thinned(table)

    # -- the moves ------------------------------------------------------------------------------------------

    def _move_f(self, scored: Scored, table: Table | None, weights: Tensor | None) -> Tensor:
        """A step of f on its risk, and on the critic's part where being shown has a gradient: its loss.

        Without weights the risk is the plain one.
        """
        batch = scored.batch
        risk = scored.losses.mean() if weights is None else weighted_risk(scored.losses, weights)
        if self._settings.relaxation != "hard" and table is not None and table.deploys_something:
            risk = risk + self._relaxed_part(scored.scores, risk, table)
        loss = risk + self._training.l2 * scored.norm
        if loss.requires_grad:
            self._optimiser.step(loss)
            return loss.detach()
        slopes = logistic_slope(scored.scores, batch.labels)
        slopes = (slopes if weights is None else slopes.mul_(weights)).mul_(1 / slopes.numel())
        with torch.no_grad():
            self._optimiser.move(self.scorer.gradients(batch.context, batch.items, slopes, self._training.l2))
        return loss

    def _weights_of(self, table: Table) -> Tensor:
        """The weights that f's risk has now."""
        with torch.no_grad():
            return self._level(table, self.weights(table.pairs))

    def _relaxed_part(self, scores: Tensor, risk: Tensor, table: Table) -> Tensor:
        """-penalty * E_f[g] with a gradient, shortened to its share of the risk's gradient in the scores.

        Unshortened it is of another scale than the risk and drowns it (docs/deviations.md).
        """
        settings = self._settings
        with torch.no_grad():
            critic = self.critic(table.pairs)
        margins = scores - (scores.detach() - table.pairs.margins)  # the thresholds carry no gradient
        soft = shown(margins, settings.relaxation, settings.temperature)
        part = -self.penalty * (mass(soft, table.scope, settings.measure) * critic).sum()
        own, others = (torch.autograd.grad(t, scores, retain_graph=True)[0] for t in (part, risk))
        most = settings.relaxed_share * others.norm()
        shorten = (most / own.norm().clamp(min=1e-12)).clamp(max=1)
        return (scores * (own * shorten).detach()).sum()

    def _move_inner(self, player: str, table: Table) -> None:
        """A move of w or g; none where nothing is shown, since there is then no distance to measure."""
        if not table.deploys_something:
            return
        if player == "w":
            self._weights_optimiser.step(self._weight_loss(table))
            return
        with torch.no_grad():
            masses = self._mass(table, self.weights(table.pairs))
        self._move_g(table, masses)

    def _weight_loss(self, table: Table) -> Tensor:
        """What w descends."""
        weights = self.weights(table.pairs)
        with torch.no_grad():
            critic = self.critic(table.pairs)
            slopes = payoff_slopes(
                weights, table.loss, critic, self.penalty, table.scope, self._settings.measure
            )
        payoff = (weights * slopes).sum()  # as steep as the payoff, if not as high
        if not self._settings.ess_penalty:
            return payoff
        return payoff + self._settings.ess_penalty * (1 / effective_sample_size(weights, table.scope) - 1)

    def _move_g(self, table: Table, masses: Tensor) -> None:
        """A move of the critic, and one dual step of the penalty if there is a target distance."""
        settings = self._settings
        self.critic.respond(table, masses)
        if settings.target_distance is None:
            return
        with torch.no_grad():
            gap = transport_gap(self.critic(table.pairs), masses, self.critic(table.deployed), table.mass_f)
        self.penalty = dual_step(self.penalty, float(gap), settings.target_distance, settings.penalty_rate)

    # -- measures -------------------------------------------------------------------------------------------

    def _scored(self, batch: Batch) -> Scored:
        """The batch under f as it is."""
        known = self._settings.relaxation == "hard" and self.scorer.knows_gradients(
            batch.context, batch.items
        )
        with torch.set_grad_enabled(not known and torch.is_grad_enabled()):
            scores, norm = self.scorer.score_with_norm(batch.context, batch.items)
            return Scored(batch, scores, logistic_loss(scores, batch.labels), norm)

    def _table(self, scored: Scored) -> Table:
        labels, loss = scored.batch.labels, scored.losses.detach()
        scope = labels == 0 if self._settings.scope == "unlabelled" else torch.ones_like(loss).bool()
        return self._deployment.table(scored.batch, scored.scores.detach(), loss, scope)

    def _level(self, table: Table, weights: Tensor) -> Tensor:
        """Weights as they enter the risk."""
        if self._settings.measure == "literal":
            return torch.where(table.scope, weights, torch.ones_like(weights))
        return mean_one(weights, table.scope)

    def _mass(self, table: Table, weights: Tensor) -> Tensor:
        return mass(weights, table.scope, self._settings.measure)

    def _look(self, table: Table) -> Row:
        """The state of the game on the table of a round, as w and g left it."""
        with torch.no_grad():
            weights = self.weights(table.pairs)
            critic, deployed = self.critic(table.pairs), self.critic(table.deployed)
            row = observe(table, weights, critic, deployed, self._mass(table, weights))
        return row | {"lipschitz": self.critic.steepness(table)}

    # -- state ----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """All three players, their optimisers and the penalty."""
        parts = nested("scorer", self.scorer.state_dict()) | nested("optimiser", self._optimiser.state())
        parts |= self.beside() | nested("w_optimiser", self._weights_optimiser.state())
        parts |= nested("g_optimiser", self.critic.optimiser.state())
        return parts | {"penalty": torch.tensor(self.penalty, dtype=torch.float64)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to a state."""
        self.scorer.load_state_dict(under("scorer", state))
        self._optimiser.load_state(under("optimiser", state))
        self.weights.load_state_dict(under("w", state))
        self._weights_optimiser.load_state(under("w_optimiser", state))
        self.critic.load_state_dict(under("g", state))
        self.critic.optimiser.load_state(under("g_optimiser", state))
        self.penalty = float(state["penalty"])

    def beside(self) -> dict[str, Tensor]:
        """What w and g have learned."""
        return nested("w", self.weights.state_dict()) | nested("g", self.critic.state_dict())
