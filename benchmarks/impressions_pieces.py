"""The pieces of the paper's game on top of the library of heads, one by one: docs/results/impressions/pieces.

    python -m benchmarks.impressions_pieces --worlds 21-22

Worlds of 700 x 400 at exploration 0 and .5, seeds below 100. The rows:

    library               transport on impressions as it is
    critic against P_f    a share of the critic's (e) negatives comes from f's own lists of ten instead of the
                          catalogue
    w on shown pairs      shown pairs count by w(m) = exp(slope * m), within bounds, mean one; m is the margin
                          in standard deviations of the scores: score minus that of the last item of the list
    Wasserstein critic    a critic with slope one in the space of each member: g = <v, p * q>, v the direction
                          in which shown pairs differ most from f's lists on the mean (exact for linear
                          critics); held-out impressions say how much g counts
    penalty = x           no stacking: the price of distance is fixed, as target_distance would fix it
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.impressions import SIZES, Cell, Kept, interval, numbers, write_rows
from towpath.data.split import Split, split_leave_last_two
from towpath.diagnostics.dial import dial_of
from towpath.evaluation.evaluate import evaluate
from towpath.kernels.heads import BlockTask, HeadTask, vectors_and_biases
from towpath.methods.recipe import Recipe
from towpath.models.registry import model_type
from towpath.models.scorer import Scorer, sizes_of
from towpath.rng import Rng
from towpath.training.fit import EpochMetrics
from towpath.training.task import TrainingTask
from towpath.transport.impressions.deploy import Sum
from towpath.transport.impressions.held_out import HeldOut
from towpath.transport.impressions.learner import ImpressionLearner
from towpath.transport.impressions.members import LIKENESS, RELEVANCE
from towpath.transport.impressions.stack import stack_heads
from towpath.worlds.latent import LatentWorld, make_latent_world
from towpath.worlds.world import World

EXPLORATION = (0.0, 0.5)
K = 10
PIECES: dict[str, dict[str, Any]] = {  # numbers of a piece, or settings of transport
    "library": {},
    "critic against P_f": {"share": 0.3},
    "w on shown pairs": {"slope": 0.3, "bound": 2.0},
    "Wasserstein critic": {"wasserstein": True},
    "penalty = 0.3": {"penalty": 0.3},
    "penalty = 1": {"penalty": 1.0},
}


class PieceLearner(ImpressionLearner):
    """The library with one piece of the game."""

    def __init__(self, task: TrainingTask, settings: Any, piece: dict[str, Any]) -> None:
        super().__init__(task, settings)
        self._piece, self._train, self._draw = piece, task.train, task.rng.numpy("piece")
        self._lists, self._margins = np.empty((0, K), np.int64), np.empty((0, 0), np.float32)
        self._prices = torch.zeros(len(self._members))  # of the Wasserstein critic of each member

    def epoch(self, number: int) -> EpochMetrics:
        """As in the library, after a look at what f would show now."""
        with torch.no_grad():
            users, items = self.scorer.users.weight, self.scorer.items.weight
            scores = (users[:, :-1] @ items[:, :-1].T + items[:, -1]).numpy()
        scores[self._train.users, self._train.items] = -np.inf
        self._lists = np.argsort(-scores, axis=1, kind="stable")[:, :K]
        last = np.take_along_axis(scores, self._lists[:, -1:], axis=1)
        spread = max(float(scores[np.isfinite(scores)].std()), 1e-6)
        self._margins = (scores - last) / spread if number > 1 else np.zeros_like(scores)
        return super().epoch(number)

    def task_of(self, pairs: HeadTask, block: BlockTask) -> tuple[HeadTask, BlockTask]:
        """The task of the library, with the critic's draws or the weights of shown pairs changed."""
        users = pairs.users.numpy()
        if "share" in self._piece:
            return self._against_lists(pairs, block)
        if "slope" in self._piece:
            margins = self._margins[users, pairs.items[:, 0].numpy()]
            margins = np.where(np.isfinite(margins), margins, 0)  # what was clicked is in no list
            bound = self._piece["bound"]
            w = torch.from_numpy(np.clip(np.exp(self._piece["slope"] * margins), 1 / bound, bound)).float()
            pairs.weights[:, 0, RELEVANCE] *= w / w.mean()
        return pairs, block

    def _against_lists(self, pairs: HeadTask, block: BlockTask) -> tuple[HeadTask, BlockTask]:
        """A share of the critic's negatives from f's own lists, one for each impression."""
        users, share = pairs.users.numpy(), self._piece["share"]
        listed = torch.from_numpy(self._lists[users, self._draw.integers(K, size=len(users))])
        weights = torch.zeros_like(pairs.weights)
        weights[:, 0, LIKENESS] = share * block.weights[:, LIKENESS].sum() / len(users)
        block.weights[:, LIKENESS] *= 1 - share
        return HeadTask(
            pairs.users,
            torch.cat([pairs.items, listed[:, None]], 1),
            torch.cat([pairs.targets, torch.zeros_like(pairs.targets)], 1),
            torch.cat([pairs.weights, weights], 1),
        ), block

    def weigh(self, held_out: HeldOut) -> float:
        """The weights of the heads, and of the Wasserstein critics where there are some."""
        if "wasserstein" not in self._piece:
            return super().weigh(held_out)
        trained, users, items = self._tasks.prices > 0, held_out.users, held_out.items
        logits, own = self.library.logits(users, items), self.library.user_biases(users)
        p, q = self._vectors()
        critics = (p[users] * q[items] * self._directions()).sum(-1)  # (n, M)
        clicking = own[:, RELEVANCE, trained[RELEVANCE]].mean(1)
        scores = torch.cat([(logits - own)[:, trained], critics, clicking[:, None]], dim=1)
        stack = stack_heads(scores.double().numpy(), held_out.clicks, self._settings.stack_ridge)
        found = torch.from_numpy(stack.weights).float()
        self.library.weights.zero_()
        self.library.weights[trained] = found[: int(trained.sum())]
        self._prices = found[int(trained.sum()) : -1]
        return stack.log_loss

    def deployed(self) -> Sum:
        """The sum of the heads, and of the critics at their prices."""
        total = super().deployed()
        if "wasserstein" not in self._piece:
            return total
        p, q = self._vectors()
        priced = (p * self._directions() * self._prices[:, None]).flatten(1)
        return Sum(
            torch.cat([total.users, priced], 1), torch.cat([total.items, q.flatten(1)], 1),
            total.user_bias, total.item_bias, total.bias,
        )  # fmt: skip

    def _vectors(self) -> tuple[Tensor, Tensor]:
        tables = self.library.tables
        return tuple(vectors_and_biases(t.detach(), tables.bias)[0] for t in (tables.users, tables.items))  # type: ignore[return-value]

    def _directions(self) -> Tensor:
        """From f's lists to what was shown, in each member's space of p * q, of length one: (M, d)."""
        (p, q), log = self._vectors(), self._batches.impressions
        shown = (p[torch.from_numpy(log.users).long()] * q[torch.from_numpy(log.items).long()]).mean(0)
        listed = (p[:, None] * q[torch.from_numpy(self._lists)]).mean((0, 1))
        return torch.nn.functional.normalize(shown - listed, dim=-1)


def fitted(split: Split, piece: dict[str, Any]) -> Scorer:
    """The scorer of the library with this piece."""
    settings = {"penalty": piece["penalty"]} if "penalty" in piece else {}
    resolved = Recipe("mf", "transport", settings).resolve()
    scorer = model_type("mf")(resolved.model, sizes_of(split.train))
    scorer.initialise(split.train, Rng(0))
    task = TrainingTask(scorer, split.train, resolved.training, Rng(0))
    learner = PieceLearner(task, resolved.method, piece)
    for number in range(1, learner.own_epochs + 1):
        learner.epoch(number)
    return learner.scorer


def cell_of(world: World, split: Split, piece: dict[str, Any]) -> Cell:
    """True clicks, and where the lists stand on the dial."""
    scorer = fitted(split, piece)
    true = evaluate(scorer, split, protocol="truth", relevance=world.relevance).metrics()
    dial = dial_of(scorer, split)
    assert dial is not None
    return {"rel": true["rel"], "shown_share": dial.shown_share, "likeness": dial.likeness}


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    kept, seeds = Kept(asked.kept), numbers(asked.worlds)
    cells: dict[str, list[Cell]] = {name: [] for name in PIECES}
    for exploration in EXPLORATION:
        for seed in seeds:
            settings = LatentWorld(exploration=exploration, **SIZES["small"])
            world = make_latent_world(settings, Rng(seed))
            split = split_leave_last_two(world.log)
            for name, piece in PIECES.items():
                about = {"world": settings.model_dump(), "seed": seed, "method": name, "piece": piece}
                cells[name].append(kept.find(about) or kept.keep(about, cell_of(world, split, piece)))
    write(asked.out, cells, len(seeds))


def write(out: Path, cells: dict[str, list[Cell]], worlds: int) -> None:
    """One row a piece: clicks at each exploration, and the difference to the library in percent, paired."""
    first = np.array([cell["rel"] for cell in cells["library"]])
    rows = []
    for name, found in cells.items():
        rels = np.array([cell["rel"] for cell in found])
        gaps = 100 * (rels / first - 1)
        low, high = interval(gaps)
        means = [f"{rels[n * worlds : (n + 1) * worlds].mean():.3f}" for n in range(len(EXPLORATION))]
        dial = [f"{np.mean([cell[key] for cell in found]):.2f}" for key in ("shown_share", "likeness")]
        rows.append([name, *means, f"{gaps.mean():+.1f}", f"{low:+.1f}", f"{high:+.1f}", *dial])
    heads = ("piece", *(f"exploration {e:g}" for e in EXPLORATION), "over the library, %", "low", "high")
    title = f"Pieces of the game on top of the library: true clicks, {worlds} worlds of each kind"
    write_rows(out, title, (*heads, "shown_share", "likeness"), rows)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--worlds", default="21-22", help="seeds of the worlds, below 100")
    parser.add_argument("--kept", type=Path, default=Path("build/impressions"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/impressions/pieces"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
