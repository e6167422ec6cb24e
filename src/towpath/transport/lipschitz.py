"""Ways to keep a critic model Lipschitz."""

import torch
from torch import Tensor, nn

from towpath.models.scorer import Context, Scorer
from towpath.transport.frozen import FrozenFeatures
from towpath.transport.game_batch import CandidatePairs, GameBatch

# The usual coefficient of a gradient penalty (Gulrajani et al. 2017).
_GRADIENT_PENALTY = 10.0


class Control:
    """Keeps a critic from getting steeper than a constant; this one does nothing.

    Without control only the critic's range is bounded: an integral probability metric, no distance.
    """

    def prepare(self, scorer: Scorer) -> None:
        """Change the model before training starts."""

    def begin(self, scorer: Scorer, f: Scorer) -> None:
        """Called once when the game begins, with f as its warm start left it."""

    def charge(self, critic: nn.Module, game: GameBatch) -> Tensor:
        """What the critic pays for steepness, added to what it descends."""
        return torch.zeros_like(game.loss[0, 0])

    def project(self, scorer: Scorer) -> None:
        """Bring the model back within bounds after a step."""

    def steepness(self, critic: nn.Module, game: GameBatch) -> float:
        """The longest gradient with respect to the embeddings looked up, over the pairs of this batch."""
        return float(gradient_lengths(critic, game.pairs, create_graph=False).max())


class Anchored(Control):
    """For cones on frozen vectors, which are 1-Lipschitz by construction."""

    def begin(self, scorer: Scorer, f: Scorer) -> None:
        """Let the critic take its vectors from f."""
        assert isinstance(scorer, FrozenFeatures)
        scorer.take(f)

    def steepness(self, critic: nn.Module, game: GameBatch) -> float:
        """One, whatever the heights."""
        return 1.0


class MaxNorm(Control):
    """Embedding rows no longer than `row_norm`.

    For an inner product of rows with a bias the gradient is then at most sqrt(2 (row_norm^2 + 1)) long.
    """

    def __init__(self, row_norm: float) -> None:
        self.row_norm = row_norm

    def project(self, scorer: Scorer) -> None:
        """Shorten the rows that are too long."""
        shorten_rows(scorer, self.row_norm)


class GradientPenalty(Control):
    """A penalty on gradients longer than one, with respect to the embeddings that a pair looks up.

    Pairs are discrete, so there is nothing between two of them to interpolate: the penalty is taken at the
    pairs themselves.
    """

    def charge(self, critic: nn.Module, game: GameBatch) -> Tensor:
        """10 * mean of max(0, |gradient| - 1)^2."""
        lengths = gradient_lengths(critic, game.pairs, create_graph=True)
        return _GRADIENT_PENALTY * (lengths - 1).clamp(min=0).square().mean()


def shorten_rows(scorer: Scorer, longest: float) -> None:
    """Scale every row of every embedding game down to this length if it is longer."""
    with torch.no_grad():
        for module in scorer.modules():
            if isinstance(module, nn.Embedding):
                module.weight.copy_(module.weight.renorm(2, 0, longest))


def gradient_lengths(critic: nn.Module, pairs: CandidatePairs, *, create_graph: bool) -> Tensor:
    """Length of the critic's gradient with respect to all embeddings that each probed pair looks up: (p,)."""
    looked_up: list[Tensor] = []

    def remember(module: nn.Module, inputs: object, output: Tensor) -> None:
        looked_up.append(output)

    tables = [m for m in critic.modules() if isinstance(m, nn.Embedding)]
    hooks = [game.register_forward_hook(remember) for game in tables]
    try:
        value = critic(_probe(pairs))
    finally:
        for hook in hooks:
            hook.remove()
    gradients = torch.autograd.grad(value.sum(), looked_up, create_graph=create_graph)
    return (
        torch.stack([g.reshape(len(g), -1).square().sum(1) for g in gradients]).sum(0).clamp(min=1e-12).sqrt()
    )


def _probe(pairs: CandidatePairs) -> CandidatePairs:
    """The last pair of each row, and of rows that share a sequence the last row: no look-up is shared."""
    context, items = pairs.context, pairs.items[:, -1:].expand(len(pairs.margins), 1)
    if context.steps is None:
        return CandidatePairs(context, items, pairs.margins[:, -1:])
    ends = (context.steps + 1) % context.histories.shape[1] == 0
    return CandidatePairs(
        Context(context.users[ends], context.histories), items[ends], pairs.margins[ends, -1:]
    )
