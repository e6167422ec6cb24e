"""CausE (Bonner and Vasile 2018): item vectors pulled towards those learned where exposure was even."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from towpath.data.interactions import Interactions
from towpath.data.negatives import PairSet
from towpath.errors import ConfigError
from towpath.models.factorization import Factorization
from towpath.models.scorer import Context, Settings
from towpath.training.batches import Batch, make_batches
from towpath.training.fit import EpochMetrics
from towpath.training.learner import Learner
from towpath.training.losses import logistic_loss
from towpath.training.optimiser import Optimiser
from towpath.training.scored_pairs import ScoredPairs, added, score_pairs
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

Treatment = Literal["random", "inverse-popularity"]
Distance = Literal["l1", "l2", "cosine"]


class CausalEmbeddingSettings(Settings):
    """Settings of causal embeddings."""

    treatment: Treatment = Field(
        "random",
        description="Which positives are used as feedback under uniform exposure: a `random` share, as "
        "in the paper, or one drawn by `inverse-popularity`, so that items are about "
        "equally frequent.",
    )
    treatment_share: float = Field(
        0.1, ge=0, lt=1, description="Share of the positives that make up the treatment set."
    )
    pull: float = Field(
        0.001, ge=0, description="Weight of the distance from an item's vector to its treatment vector."
    )
    distance: Distance = Field(
        "l1",
        description="How that distance is measured: `l1`, squared (`l2`), or one minus the `cosine`.",
    )


def sample_treatment(
    train: Interactions, treatment: Treatment, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which rows are in the treatment set, drawn without replacement: (n,).

    inverse-popularity: one after another, each with a chance proportional to one over its item's count.
    """
    # The first arrivals of exponential clocks are such a draw: clock rates are the chances.
    rates = 1 / train.item_counts[train.items] if treatment == "inverse-popularity" else np.ones(len(train))
    arrivals = rng.exponential(size=len(train)) / rates
    chosen = np.zeros(len(train), dtype=np.bool_)
    chosen[np.argsort(arrivals, kind="stable")[: round(share * len(train))]] = True
    return chosen


def item_distance(control: Tensor, treatment: Tensor, distance: Distance) -> Tensor:
    """How far each control vector is from its treatment vector: (..., d) and (..., d) to (...).

        l1: sum_j |c_j - t_j|        l2: sum_j (c_j - t_j)^2        cosine: 1 - <c, t> / |c| |t|

    >>> item_distance(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 2.0]), "l2")
    tensor(4.)
    """
    if distance == "cosine":
        return 1 - functional.cosine_similarity(control, treatment, dim=-1)
    apart = control - treatment
    return (apart.abs() if distance == "l1" else apart.square()).sum(-1)


class CausalEmbeddingLearner(Learner):
    """Trains two vectors for each item, on two parts of the positives, that share the user vectors.

        mean of l(y, <p_u, q_i>)  over the control part and  l(y, <p_u, t_i>)  over the treatment part
          + l2 penalty + pull * mean over the control part of |q_i - t_i|

    The pull moves control vectors q only: towards treatment vectors t, which feel nothing of it. Items are
    scored by q. Positives come with negatives as everywhere, and those of a treated positive train t.
    """

    def __init__(self, task: TrainingTask, settings: CausalEmbeddingSettings) -> None:
        scorer, train, training = task.scorer, task.train, task.training
        if not isinstance(scorer, Factorization):
            raise ConfigError(f"CausE trains mf only, and the model is a {type(scorer).__name__}.")
        self.scorer: Factorization = scorer
        self._training, self._settings, self._rng = training, settings, task.rng
        self._batches = make_batches(train, scorer, training)
        draw = task.rng.numpy("treatment")
        self._treated = PairSet(
            train.where(sample_treatment(train, settings.treatment, settings.treatment_share, draw))
        )
        self.treatment = _other_items(scorer)
        self._optimiser = Optimiser(
            [scorer, self.treatment.items], training.learning_rate, training.clip_norm
        )

    def players(self) -> dict[str, nn.Module]:
        """The treatment vectors."""
        return {"treatment": self.treatment.items}

    def optimisers(self) -> dict[str, Optimiser]:
        """One for both kinds of vectors."""
        return {"f": self._optimiser}

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the positives of both parts."""
        self._optimiser.set_lr_scale(self._training.lr_scale(number))
        self._batches.refresh()
        self.scorer.train()
        total = torch.zeros(2)
        for batch in self._batches.epoch(number, self._rng):
            total += self._step(batch).cpu()
        loss, apart = (total / len(self._batches)).tolist()
        return {"loss": loss, "item_distance": apart}

    def _step(self, batch: Batch) -> Tensor:
        """One step of both kinds of vectors: what was descended, and the mean distance within it, (2,)."""
        users, items = batch.context.users.cpu().numpy(), batch.items[:, 0].cpu().numpy()
        treated = torch.from_numpy(self._treated.contains(users, items)).to(batch.items.device)
        parts = [(self.scorer, _rows(batch, ~treated)), (self.treatment, _rows(batch, treated))]
        control = parts[0][1].items
        apart = self._apart(control)
        scored = [_Part.of(model, part, len(batch.items)) for model, part in parts if len(part.items)]
        pull, l2 = self._settings.pull * apart, self._training.l2
        loss = torch.stack([part.risk + l2 * part.share * part.pairs.norm for part in scored]).sum() + pull
        if any(part.pairs.manual is None for part in scored):
            self._optimiser.step(loss)
        else:
            items_pulled = {self.scorer.items.weight: _gradient(pull, self.scorer.items.weight)}
            own = [part.pairs.gradients(part.risk, l2 * part.share) for part in scored]
            self._optimiser.apply_gradients(added([*own, items_pulled]))
        return torch.stack([loss.detach(), apart.detach()])

    def _apart(self, items: Tensor) -> Tensor:
        """Mean distance of these items' control vectors to their treatment vectors, which are held fixed.

        Each item is measured once, however many pairs it is in.
        """
        codes, counts = _counted(items, self.scorer.items)
        control = self.scorer.items(codes)[:, :-1]
        treatment = self.treatment.items.weight.detach()[codes][:, :-1]
        return counts @ item_distance(control, treatment, self._settings.distance) / max(1, items.numel())


@dataclass(frozen=True)
class _Part:
    """The pairs of control or of treatment, with their part in the mean loss of the batch."""

    pairs: ScoredPairs
    risk: Tensor
    share: float  # of the positives of the batch

    @staticmethod
    def of(model: Factorization, part: Batch, positives: int) -> "_Part":
        pairs, share = score_pairs(model, part.context, part.items), len(part.items) / positives
        return _Part(pairs, share * logistic_loss(pairs.scores, part.labels).mean(), share)


def _counted(items: Tensor, table: nn.Embedding) -> tuple[Tensor, Tensor]:
    """Different items (n,) and in how many pairs each is (n,); of a small table all of them."""
    if table.sparse:
        codes, counts = torch.unique(items, return_counts=True)
    else:
        counts = torch.bincount(items.flatten(), minlength=table.num_embeddings)
        codes = torch.arange(len(counts), device=items.device)
    return codes, counts.to(table.weight.dtype)


def _gradient(value: Tensor, parameter: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(value, parameter)
    return found


def _other_items(scorer: Factorization) -> Factorization:
    """The same factorisation with item vectors of its own, which start where the scorer's start.

    Items without treated positives would otherwise be pulled towards another random start.
    """
    other = Factorization(scorer.settings, scorer.sizes)
    other.users, other.bias = scorer.users, scorer.bias
    other.items.load_state_dict(scorer.items.state_dict())
    return other.to(scorer.bias.device)


def _rows(batch: Batch, keep: Tensor) -> Batch:
    """The rows (b,) of a batch that are kept."""
    context = Context(batch.context.users[keep], batch.context.histories[keep])
    return Batch(context, batch.items[keep], batch.labels[keep])


def refuse_whole_catalogue(training: TrainingSettings, settings: Settings) -> None:
    """Nothing, unless whole catalogues are asked for, of which no row is one positive's."""
    if training.pairs == "catalogue":
        raise ConfigError(
            "CausE divides the positives, each with its negatives, into two parts; pairs=catalogue has no "
            "negatives of a positive; use pairs=sampled."
        )
