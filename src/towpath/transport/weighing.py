"""What the players of a finished game say: the weights that w gives training pairs, and the values of g."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.device import device_of, in_double
from towpath.errors import ArtifactError
from towpath.models.players import longest_history
from towpath.models.scorer import Scorer, context_of
from towpath.ranking.scoring import inference_mode
from towpath.training.batches import Batch, make_batches
from towpath.training.checkpoint import strip_prefix
from towpath.training.task import TrainingTask
from towpath.training.weighed_pairs import MOST_PAIRS, PairValues, WeighedPairs, join_weighed
from towpath.transport.critic import MarginCritic
from towpath.transport.domain import Deployment
from towpath.transport.game_batch import CandidatePairs
from towpath.transport.players import make_critic, make_weights
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


def critic_values(
    task: TrainingTask, settings: TransportSettings, auxiliary_state: Mapping[str, Tensor]
) -> PairValues | None:
    """The kept g as a function of users (n,) and items (n,); None where it knows margins alone."""
    critic = make_critic(task.scorer, task.train, settings, task.rng)
    if isinstance(critic, MarginCritic):
        return None
    _load(critic, strip_prefix("g", auxiliary_state))

    def values(users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float64]:
        context = context_of(critic.scorer, users, task.train.histories)
        columns = torch.from_numpy(np.asarray(items, dtype=np.int64))[:, None].to(device_of(critic.scorer))
        with inference_mode(critic.scorer):
            found = critic(CandidatePairs(context, columns, torch.zeros(columns.shape)))
        return np.asarray(in_double(found[:, 0]).cpu().numpy())

    return values


def _load(player: torch.nn.Module, state: dict[str, Tensor]) -> None:
    try:
        player.load_state_dict(state)
    except RuntimeError as error:
        raise ArtifactError(
            "What the run kept of w or g does not fit its settings in this towpath; fit again."
        ) from error
    player.eval()


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
