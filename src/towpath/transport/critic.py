"""The players of g: critics that tell reweighted pairs from shown ones, no steeper than a constant."""

from typing import Protocol

import torch
from torch import Tensor, nn

from towpath.models.scorer import Scorer
from towpath.training.optimiser import Optimiser
from towpath.transport.game_batch import CandidatePairs, GameBatch
from towpath.transport.line import LineTransport, transport_on_line
from towpath.transport.lipschitz import Control
from towpath.transport.objective import transport_gap


class Critic(Protocol):
    """Anything that can be asked how much a pair looks like training rather than deployment."""

    def __call__(self, pairs: CandidatePairs) -> Tensor:
        """The critic's value of each pair: (b, k)."""

    def begin(self, scorer: Scorer) -> None:
        """Called once when the game begins, with f as its warm start left it."""

    def forget(self) -> None:
        """Drop what is not part of the state, so that an epoch begins alike whether resumed or not."""

    def respond(self, game: GameBatch, mass_w: Tensor) -> None:
        """Move towards (or straight to) the critic that tells w's pairs from f's best."""

    def steepness(self, game: GameBatch) -> float:
        """An estimate of the Lipschitz constant on these pairs."""


class MarginCritic(nn.Module):
    """The best 1-Lipschitz critic of the margin, in closed form: no training, no inner loop."""

    optimiser: Optimiser

    def __init__(self) -> None:
        super().__init__()
        self.optimiser = Optimiser([], learning_rate=1)  # nothing to train
        self._solution: LineTransport | None = None
        self._solved: CandidatePairs | None = None  # the pairs it was solved for, and its values there
        self._values: Tensor

    def forward(self, pairs: CandidatePairs) -> Tensor:
        """The potential at each pair's margin; zero before the first response."""
        if self._solution is None:
            return torch.zeros_like(pairs.margins)
        if pairs is self._solved:
            return self._values  # the knots themselves: no need to look them up again
        return self._solution.critic(pairs.margins)

    def begin(self, scorer: Scorer) -> None:
        """Nothing to prepare."""

    def forget(self) -> None:
        """Drop the solution of the last batch."""
        self._solution = self._solved = None

    def respond(self, game: GameBatch, mass_w: Tensor) -> None:
        """Solve the transport on the line for this batch."""
        own, mass_f = game.pairs.margins, game.mass_f.reshape(-1)
        points, mass_w = own.reshape(-1), mass_w.reshape(-1)
        if game.deployed is not game.pairs:
            points = torch.cat([points, game.deployed.margins.reshape(-1)])
            mass_w, mass_f = torch.cat([mass_w, 0 * mass_f]), torch.cat([0 * mass_w, mass_f])
        self._solution = transport_on_line(points, mass_w, mass_f)
        self._solved, self._values = game.pairs, self._solution.at_points[: own.numel()].view(own.shape)

    def steepness(self, game: GameBatch) -> float:
        """One, by construction."""
        return 1.0


class ModelCritic(nn.Module):
    """g as a model of who and what the pair is, bounded and kept Lipschitz by `control`."""

    optimiser: Optimiser

    def __init__(self, scorer: Scorer, control: Control, learning_rate: float, bound: float) -> None:
        super().__init__()
        self.scorer = scorer
        self.bound = bound
        self._control = control
        control.prepare(scorer)
        self.optimiser = Optimiser([scorer], learning_rate, own_rates=False)

    def forward(self, pairs: CandidatePairs) -> Tensor:
        """As steep as the model's score at most, and never beyond the bound: bound * tanh(score / bound)."""
        return self.bound * torch.tanh(self.scorer.score(pairs.context, pairs.items) / self.bound)

    def begin(self, scorer: Scorer) -> None:
        """What the control does when the game begins."""
        self._control.begin(self.scorer, scorer)

    def forget(self) -> None:
        """Nothing: all that a model knows is in its parameters."""

    def respond(self, game: GameBatch, mass_w: Tensor) -> None:
        """One ascent step on the gap."""
        gap = transport_gap(self(game.pairs), mass_w, self(game.deployed), game.mass_f)
        self.optimiser.step(self._control.charge(self, game) - gap)
        self._control.project(self.scorer)

    def steepness(self, game: GameBatch) -> float:
        """As the control measures it."""
        return self._control.steepness(self, game)
