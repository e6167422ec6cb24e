"""Learning from bandit feedback: any scorer as a softmax policy, trained on a log with propensities.

`bandit-ips`, `bandit-snips`, `poem` and `norm-poem` minimise a counterfactual risk (objectives.py);
`bandit-dm` learns the reward model itself; `bandit-dr` learns a policy from a reward model and corrects it by
weighted residuals. Each step scores the whole catalogue for the users of a batch, so the work grows with rows
times items.
"""

import copy
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from towpath.bandit.objectives import RiskForm, counterfactual_risk, expand_risk
from towpath.bandit.overlap import RED, excess_warning
from towpath.data.interactions import Interactions
from towpath.errors import DataError
from towpath.models.capabilities import score_with_norm
from towpath.models.scorer import Scorer, Settings, context_of
from towpath.rng import Rng
from towpath.training.fit import EpochMetrics
from towpath.training.learner import Learner
from towpath.training.losses import logistic_loss
from towpath.training.optimiser import Optimiser
from towpath.training.task import TrainingTask


class BanditSettings(Settings):
    """What all learners from bandit feedback share."""

    max_weight: float = Field(
        100.0, gt=0, description="Weights f / p are cut here; a row beyond it pulls no further."
    )


class PolicySettings(BanditSettings):
    """Settings of `bandit-ips`; it minimises the plain counterfactual risk."""

    normalised: ClassVar[bool] = False
    baseline: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Subtracted from rewards before weighting. 0: showing what was never logged is worth "
        "nothing; higher: it is worth that much. Self-normalised risks do not depend on it.",
    )

    @property
    def form(self) -> RiskForm:
        """The risk that is minimised."""
        return RiskForm(self.normalised, getattr(self, "variance_penalty", 0.0))


class SnipsSettings(PolicySettings):
    """Settings of `bandit-snips`; it minimises the self-normalised risk."""

    normalised: ClassVar[bool] = True


class PoemSettings(PolicySettings):
    """Settings of `poem`; it adds a penalty on the spread of the weighted losses."""

    variance_penalty: float = Field(
        1.0, ge=0, description="c: how many standard errors of the risk are added to it."
    )


class NormPoemSettings(PoemSettings):
    """Settings of `norm-poem`; poem with the self-normalised risk."""

    normalised: ClassVar[bool] = True


class DirectSettings(Settings):
    """`bandit-dm` has no settings beyond those of the fit loop."""


class DoublyRobustPolicySettings(BanditSettings):
    """Settings of `bandit-dr`."""

    reward_epochs: int = Field(
        10, ge=1, description="Passes over the log that the reward model gets, before the policy's first."
    )


class BanditRows:
    """The logged rows of a table of positives as tensors, and batches of them."""

    def __init__(self, train: Interactions, scorer: Scorer, batch_size: int) -> None:
        log = train.impressions
        if log is None or log.labels is None or log.propensities is None:
            raise DataError(
                "Learning from bandit feedback needs a log of everything that was shown, with clicks and "
                "propensities, and these data are "
                + ("positives alone" if log is None else "without propensities")
                + "; name --label-col and --propensity-col, or use another method."
            )
        missing = int(np.isnan(log.propensities).sum())
        if missing:
            raise DataError(
                "Learning from bandit feedback needs the propensity of everything that was shown, and "
                f"{missing:,} of {len(log):,} training rows have none; fill them in or leave those rows out."
            )
        self._histories, self._scorer, self._users = train.histories, scorer, log.users
        device = next(scorer.parameters()).device
        self.items = torch.from_numpy(log.items).long().to(device)
        self.rewards = torch.from_numpy(log.labels).float().to(device)
        self.propensities = torch.from_numpy(log.propensities).float().to(device)
        self._catalogue = torch.arange(train.n_items, device=device)[None]
        # Those of a policy that shows every item alike, and so knows nothing of the log.
        self.remarks = excess_warning(1 / (train.n_items * log.propensities.astype(np.float64)))
        self._batch_size = min(batch_size, len(log))

    def __len__(self) -> int:
        return len(self.items)

    @property
    def batches(self) -> int:
        """How many batches an epoch has."""
        return -(-len(self) // self._batch_size)

    def epoch(self, number: int, rng: Rng, name: str = "") -> Iterator[Tensor]:
        """The numbers of the rows of each batch, every row once."""
        order = torch.from_numpy(rng.numpy(name + "order", number).permutation(len(self)))
        return iter(torch.split(order.to(self.items.device), self._batch_size))

    def in_order(self) -> Iterator[Tensor]:
        """The same in the order of the log."""
        return iter(torch.split(torch.arange(len(self), device=self.items.device), self._batch_size))

    def scores(self, scorer: Scorer, rows: Tensor) -> Tensor:
        """Scores (b, items) of the whole catalogue for the users of these rows."""
        context = context_of(scorer, self._users[rows.cpu().numpy()], self._histories)
        return scorer.score(context, self._catalogue).expand(len(rows), -1)

    def logged_scores(self, scorer: Scorer, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (b,) of what was shown, and the norm that an L2 penalty charges for."""
        context = context_of(scorer, self._users[rows.cpu().numpy()], self._histories)
        scores, norm = score_with_norm(scorer, context, self.items[rows, None])
        return scores[:, 0], norm

    def weights(self, scores: Tensor, rows: Tensor, most: float) -> Tensor:
        """min(f / p, most) of what was shown (b,), f the softmax of scores (b, items)."""
        chances = torch.log_softmax(scores, dim=1).gather(1, self.items[rows, None])[:, 0].exp()
        return (chances / self.propensities[rows]).clamp(max=most)


class _BanditLearner(Learner):
    """What the learners below have in common: one scorer, one optimiser, the logged rows."""

    def __init__(self, task: TrainingTask, max_weight: float) -> None:
        self.scorer = task.scorer
        self._training, self._most, self._rng = task.training, max_weight, task.rng
        size = 0 if task.train.impressions is None else len(task.train.impressions)
        self._rows = BanditRows(task.train, task.scorer, task.training.batch_size_for(size))
        self._optimiser = Optimiser([task.scorer], task.training.learning_rate, task.training.clip_norm)
        self._remarks = (*task.scorer.remarks, *(self._rows.remarks if max_weight < float("inf") else ()))
        self.scorer.remarks = self._remarks

    def optimisers(self) -> dict[str, Optimiser]:
        """The policy's."""
        return {"scorer": self._optimiser}

    def _remark(self, row: EpochMetrics, *, normalised: bool) -> EpochMetrics:
        """The same row; what is wrong with it is remarked where whoever asked for the fit will see it."""
        warning = overlap_warning(row, normalised=normalised)
        self.scorer.remarks = self._remarks if warning is None else (*self._remarks, warning)
        return row

    def _all_weights(self) -> Tensor:
        """The weight of every row under the present policy: (n,)."""
        self.scorer.eval()
        with torch.no_grad():
            parts = [
                self._rows.weights(self._rows.scores(self.scorer, rows), rows, self._most)
                for rows in self._rows.in_order()
            ]
        self.scorer.train()
        return torch.cat(parts)

    def _penalty(self, rows: Tensor) -> Tensor | float:
        return (
            self._training.l2 * self._rows.logged_scores(self.scorer, rows)[1] if self._training.l2 else 0.0
        )


class CounterfactualLearner(_BanditLearner):
    """`bandit-ips`, `bandit-snips`, `poem` and `norm-poem`: the risk is expanded anew before every epoch.

    With all rows in one batch (batch_size) every epoch is one exact step down the risk itself.
    """

    def __init__(self, task: TrainingTask, settings: PolicySettings) -> None:
        super().__init__(task, settings.max_weight)
        self._form = settings.form
        self._losses = settings.baseline - self._rows.rewards

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the log; the row tells how the weights lay before it."""
        self._optimiser.set_lr_scale(self._training.lr_scale(number))
        weights = self._all_weights()
        expansion = expand_risk(weights, self._losses, self._form)
        for rows in self._rows.epoch(number, self._rng):
            found = self._rows.weights(self._rows.scores(self.scorer, rows), rows, self._most)
            self._optimiser.step(expansion.surrogate(found, rows) + self._penalty(rows))
        row = {"loss": float(counterfactual_risk(weights, self._losses, self._form)), **overlap_row(weights)}
        return self._remark(row, normalised=self._form.normalised)


class DirectLearner(_BanditLearner):
    """`bandit-dm`: the scorer is a reward model, fitted to all rows; its best item is shown."""

    def __init__(self, task: TrainingTask, settings: DirectSettings) -> None:
        super().__init__(task, float("inf"))

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the log."""
        self._optimiser.set_lr_scale(self._training.lr_scale(number))
        self.scorer.train()
        return {
            "loss": fit_rewards(
                self.scorer, self._optimiser, self._rows, self._training.l2, self._rng, number
            )
        }


class DoublyRobustPolicyLearner(_BanditLearner):
    """`bandit-dr`: a softmax policy that maximises  mean(sum_a f q + min(f / p, M) (r - q))."""

    def __init__(self, task: TrainingTask, settings: DoublyRobustPolicySettings) -> None:
        super().__init__(task, settings.max_weight)
        self._reward_model = copy.deepcopy(task.scorer)
        self._reward_epochs = settings.reward_epochs

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the log for the policy; before the first, several for the reward model."""
        self._reward_model.eval()
        self._optimiser.set_lr_scale(self._training.lr_scale(number))
        if number == 1:
            self._fit_reward_model()
        self.scorer.train()
        total = torch.zeros(())
        for rows in self._rows.epoch(number, self._rng):
            value = self._value(rows)
            self._optimiser.step(self._penalty(rows) - value)
            total -= value.detach().cpu()
        row = {"loss": float(total) / self._rows.batches, **overlap_row(self._all_weights())}
        return self._remark(row, normalised=False)

    def _fit_reward_model(self) -> None:
        optimiser = Optimiser([self._reward_model], self._training.learning_rate, self._training.clip_norm)
        self._reward_model.train()
        for epoch in range(1, self._reward_epochs + 1):
            fit_rewards(
                self._reward_model, optimiser, self._rows, self._training.l2, self._rng.child("reward"), epoch
            )
        self._reward_model.eval()

    def _value(self, rows: Tensor) -> Tensor:
        scores = self._rows.scores(self.scorer, rows)
        with torch.no_grad():
            predicted = torch.sigmoid(self._rows.scores(self._reward_model, rows))
            residual = self._rows.rewards[rows] - predicted.gather(1, self._rows.items[rows, None])[:, 0]
        expected = (torch.softmax(scores, dim=1) * predicted).sum(1)
        return (expected + self._rows.weights(scores, rows, self._most) * residual).mean()

    def players(self) -> dict[str, nn.Module]:
        """The reward model."""
        return {"reward": self._reward_model}


def fit_rewards(
    scorer: Scorer, optimiser: Optimiser, rows: BanditRows, l2: float, rng: Rng, number: int
) -> float:
    """One pass of logistic regression on the logged rewards, and its mean loss."""
    total = torch.zeros(())
    for batch in rows.epoch(number, rng, name="reward "):
        scores, norm = rows.logged_scores(scorer, batch)
        loss = logistic_loss(scores, rows.rewards[batch]).mean() + l2 * norm
        optimiser.step(loss)
        total += loss.detach().cpu()
    return float(total) / rows.batches


def overlap_row(weights: Tensor) -> EpochMetrics:
    """What an epoch's row tells of the weights (n,) of the policy on its own log."""
    squares = float(weights.square().sum())
    ess = float(weights.sum()) ** 2 / squares if squares > 0 else 0.0
    return {"weight_mean": float(weights.mean()), "ess_share": ess / len(weights)}


def overlap_warning(row: EpochMetrics, *, normalised: bool) -> str | None:
    """A sentence if the learned policy has left the log, where its risk says little or, by SNIPS, nothing."""
    if row["ess_share"] >= RED and row["weight_mean"] >= 0.5:
        return None
    trap = (
        " A self-normalised risk does not charge for that: the policy may have learned to avoid what was "
        "logged. Use bandit-ips, poem or bandit-dr."
        if normalised
        else ""
    )
    return (
        f"The learned policy puts a mean weight of {row['weight_mean']:.2f} on the logged rows, which are "
        f"worth {row['ess_share']:.1%} of their number: most of what it would show was not logged.{trap}"
    )
