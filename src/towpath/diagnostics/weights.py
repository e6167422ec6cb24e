"""What w learned in a transport game: the weights of pairs that are drawn as training drew them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.device import in_double
from towpath.errors import ArtifactError, ConfigError
from towpath.methods.recipe import Recipe
from towpath.models.scorer import Scorer
from towpath.ranking.scoring import inference_mode
from towpath.rng import Rng
from towpath.training.batches import Batch, make_batches
from towpath.training.checkpoint import strip_prefix
from towpath.transport.domain import Deployment
from towpath.transport.players import make_weights
from towpath.transport.settings import TransportSettings
from towpath.transport.weights import Weights

MOST_PAIRS = 60_000


@dataclass(frozen=True)
class WeighedPairs:
    """CandidatePairs of a user and an item with the weight that w gives them; all columns (n,).

    Weights have mean one over the pairs in the mask, and are one elsewhere. A margin is the score of f
    minus that of the last item that the user would be shown: with zero or more the pair would be shown.
    """

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    interacted: NDArray[np.bool_]  # the label
    reweight_mask: NDArray[np.bool_]  # whether w reweighs this pair
    scores: NDArray[np.float64]
    margins: NDArray[np.float64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Whether f would show the pair, were it not interacted with already."""
        return self.margins >= 0

    def where(self, keep: NDArray[np.bool_]) -> "WeighedPairs":
        """The pairs where `keep` is true."""
        return WeighedPairs(**{field.name: getattr(self, field.name)[keep] for field in fields(self)})


@dataclass(frozen=True)
class Bin:
    """The weights of the pairs that lie close to each other in something."""

    x: float  # median of what they are close in
    mean: float
    low: float  # a tenth of the pairs weigh less
    high: float  # a tenth weigh more
    pairs: int


def weigh_pairs(
    scorer: Scorer, auxiliary_state: Mapping[str, Tensor], train: Interactions, recipe: Recipe
) -> WeighedPairs:
    """About MOST_PAIRS training pairs, with the weights that the kept w gives them under the kept f.

    `auxiliary_state` is what the fit kept of the other players. The pairs are drawn like those of an epoch,
    positives and negatives in the same proportions, from generators of their own.
    """
    resolved = recipe.resolve()
    if not isinstance(resolved.method, TransportSettings):
        raise ConfigError(f"The method {recipe.method!r} has no w whose weights could be looked at.")
    rng = Rng(recipe.seed).child("diagnostics", "weights")
    deployment = Deployment(scorer, train, resolved.training, resolved.method)
    weights = make_weights(scorer, train, resolved.method, rng)
    _load(weights, strip_prefix("w", dict(auxiliary_state)))
    batches = make_batches(train, scorer, resolved.training, deployment.ranking)
    found: list[WeighedPairs] = []
    with inference_mode(scorer):
        deployment.begin_epoch(1, rng)
        for batch in batches.epoch(1, rng):
            found.append(_weigh(batch, (scorer, weights, deployment), resolved.method))
            if sum(map(len, found)) >= MOST_PAIRS:
                break
    return _level(found)


def binned(x: NDArray[np.number], weights: NDArray[np.float64], bins: int = 20) -> list[Bin]:
    """The pairs in `bins` runs of about equal size along x, both (n,); equal x are never torn apart."""
    edges = np.unique(np.quantile(x, np.linspace(0, 1, bins + 1))[1:-1])
    place = np.searchsorted(edges, x, side="left")
    return [_bin(x[place == one], weights[place == one]) for one in np.unique(place)]


def _bin(x: NDArray[np.number], weights: NDArray[np.float64]) -> Bin:
    low, high = np.quantile(weights, [0.1, 0.9])
    return Bin(float(np.median(x)), float(weights.mean()), float(low), float(high), len(x))


def _load(weights: torch.nn.Module, state: dict[str, Tensor]) -> None:
    try:
        weights.load_state_dict(state)
    except RuntimeError as error:
        raise ArtifactError(
            "What the run kept of w does not fit its settings in this towpath; fit again."
        ) from error
    weights.eval()


def _weigh(
    batch: Batch, players: tuple[Scorer, Weights, Deployment], settings: TransportSettings
) -> WeighedPairs:
    """The pairs of one batch, their weights as w gives them."""
    scorer, weights, deployment = players
    scores = scorer.score(batch.context, batch.items)
    reweight_mask = (
        batch.labels == 0 if settings.reweight == "unlabelled" else torch.ones_like(batch.labels).bool()
    )
    # Scores stand in for the loss, which w does not need: so they are subsampled with the rest.
    table = deployment.subsample_columns(deployment.game_batch(batch, scores, scores, reweight_mask))
    shape = table.labels.shape
    columns = (
        table.pairs.context.users[:, None].expand(shape),
        table.pairs.items.expand(shape),
        table.labels > 0,
        table.reweight_mask,
        in_double(table.loss),
        in_double(table.pairs.margins),
        in_double(weights(table.pairs).expand(shape)),
    )
    return WeighedPairs(*(column.reshape(-1).cpu().numpy() for column in columns))


def _level(found: list[WeighedPairs]) -> WeighedPairs:
    """All pairs as one table, with mean weight one over the mask."""
    joined = {f.name: np.concatenate([getattr(one, f.name) for one in found]) for f in fields(WeighedPairs)}
    reweight_mask, raw = joined["reweight_mask"], joined["weights"]
    joined["weights"] = (
        np.where(reweight_mask, raw / raw[reweight_mask].mean(), 1.0)
        if reweight_mask.any()
        else np.ones(len(raw))
    )
    return WeighedPairs(**joined)
