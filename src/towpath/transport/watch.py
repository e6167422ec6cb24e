"""What is watched while the game is played, and when it is called off."""

from collections.abc import Mapping

import torch
from torch import Tensor

from towpath.errors import TrainingError
from towpath.training.fit import EpochMetrics
from towpath.transport.game_batch import GameBatch
from towpath.transport.objective import effective_sample_size, mean_one, transport_gap, weighted_risk


def observe(
    game: GameBatch, weights: Tensor, critic: Tensor, deployed: Tensor, mass_w: Tensor
) -> EpochMetrics:
    """One batch in numbers; weights are shown with mean one.

    weighted_risk, risk   E_w[l] and the plain mean of l
    gap                   E_w[g] - E_f[g]
    ess                   effective share of the pairs that w ranges over
    w_*                   mean weight of positives, negatives, pairs that are shown, pairs that are not
    reco_*                share of positives and negatives that would be shown
    critic_ratio          standard deviation of g over that of l; the penalty times this says who leads
    """
    level = mean_one(weights, game.reweight_mask)
    positive, shown = game.labels > 0, game.shown > 0
    return {
        "weighted_risk": float(weighted_risk(game.loss, level)),
        "risk": float(game.loss.mean()),
        "gap": float(transport_gap(critic, mass_w, deployed, game.mass_f)),
        "ess": float(effective_sample_size(weights, game.reweight_mask)),
        "w_positive": _mean(level, positive),
        "w_negative": _mean(level, ~positive),
        "w_shown": _mean(level, shown & game.reweight_mask),
        "w_hidden": _mean(level, ~shown & game.reweight_mask),
        "reco_positive": _mean(game.shown, positive),
        "reco_negative": _mean(game.shown, ~positive),
        "critic_ratio": float(
            critic[game.reweight_mask].std() / game.loss[game.reweight_mask].std().clamp(min=1e-12)
        ),
    }


def _mean(values: Tensor, where: Tensor) -> float:
    """The mean over a part of the pairs; zero where the part is empty."""
    return float(values[where].mean()) if bool(where.any()) else 0.0


def averaged(rows: list[EpochMetrics]) -> EpochMetrics:
    """The mean of each number over the batches that were observed."""
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} if rows else {}


def refuse_collapse(row: Mapping[str, float], *, epoch: int, min_ess: float) -> None:
    """Raises if the game is over for one of the players, saying which and what to change."""
    if not all(torch.isfinite(torch.tensor(list(row.values())))):
        broken = next(name for name, value in row.items() if not torch.isfinite(torch.tensor(value)))
        player = {"gap": "g", "critic_ratio": "g", "ess": "w"}.get(broken, "f")
        raise TrainingError(
            f"{player} diverged in epoch {epoch}: {broken} became {row[broken]}; lower the learning rate of "
            f"{player} or the penalty."
        )
    if row["ess"] < min_ess:
        raise TrainingError(
            f"w collapsed in epoch {epoch}: the effective sample size fell to {row['ess']:.1%} of the pairs "
            f"(limit min_ess = {min_ess:.1%}); raise floor, or lower ceiling or "
            "learning_rate_w."
        )
    if row["w_positive"] < 0.05:
        raise TrainingError(
            f"w left the positives in epoch {epoch}: their mean weight is {row['w_positive']:.3f} where 1 is "
            "average; raise floor, or penalty times critic_range, or use reweight=unlabelled."
        )
