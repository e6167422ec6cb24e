"""The weights that w has learned in a game, of pairs that are drawn as training drew them."""

from collections.abc import Mapping

import torch
from torch import Tensor

from towpath.errors import ArtifactError
from towpath.models.players import longest_history
from towpath.models.scorer import Scorer
from towpath.ranking.scoring import inference_mode
from towpath.training.batches import Batch, make_batches
from towpath.training.checkpoint import strip_prefix
from towpath.training.task import TrainingTask
from towpath.training.weighed_pairs import MOST_PAIRS, WeighedPairs, join_weighed
from towpath.transport.domain import Deployment
from towpath.transport.players import make_weights
from towpath.transport.settings import TransportSettings
from towpath.transport.weights import Weights


def weigh_pairs(
    task: TrainingTask, settings: TransportSettings, auxiliary_state: Mapping[str, Tensor]
) -> WeighedPairs:
    """About MOST_PAIRS training pairs, with the weights that the kept w gives them under the kept f."""
    scorer, train, rng = task.scorer, task.train, task.rng
    deployment = Deployment(scorer, train, task.training, settings)
    weights = make_weights(scorer, train, settings, rng)
    _load(weights, strip_prefix("w", auxiliary_state))
    longest = longest_history(scorer, weights)
    batches = make_batches(train, scorer, task.training, deployment.ranking, longest)
    found: list[WeighedPairs] = []
    with inference_mode(scorer):
        deployment.begin_epoch(1, rng)
        for batch in batches.epoch(1, rng):
            found.append(_weigh(batch, (scorer, weights, deployment), settings))
            if sum(map(len, found)) >= MOST_PAIRS:
                break
    return join_weighed(found)


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
        table.loss.double(),
        table.pairs.margins.double(),
        weights(table.pairs).expand(shape).double(),
    )
    return WeighedPairs(*(column.reshape(-1).cpu().numpy() for column in columns))
