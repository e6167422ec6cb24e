"""ExpoMF (Liang et al. 2016): a factorisation that models whether an item was ever seen."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from towpath.data.interactions import Interactions
from towpath.device import device_of, has_double
from towpath.errors import ConfigError
from towpath.kernels.ridge import gram_matrices, ridge_solve, rows_for
from towpath.models.ease import interaction_matrix
from towpath.models.factorization import Factorization
from towpath.models.scorer import Settings
from towpath.ranking.blocks import rows_per_block
from towpath.training.fit import EpochMetrics
from towpath.training.learner import Learner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

if TYPE_CHECKING:
    from scipy import sparse

# Chances of zero or one could never be left again, and their logarithms are infinite.
_RAREST = 1e-6


class ExposureSettings(Settings):
    """Settings of ExpoMF."""

    init_mu: float = Field(0.01, gt=0, lt=1, description="Initial probability that an item was shown.")
    precision: float = Field(
        1.0, gt=0, description="Inverse variance of the feedback on a pair that was shown."
    )
    ridge_users: float = Field(10.0, gt=0, description="Inverse variance of the prior on user vectors.")
    ridge_items: float = Field(10.0, gt=0, description="Inverse variance of the prior on item vectors.")
    prior_shown: float = Field(
        1.0,
        ge=1,
        description="First parameter (a) of the Beta prior on an item's probability of being shown.",
    )
    prior_hidden: float = Field(
        1.0,
        ge=1,
        description="Second parameter (b) of the Beta prior on an item's probability of being shown.",
    )
    prior_weight: float = Field(
        1.0,
        ge=0,
        description="Pseudo-users that the prior adds, as a multiple of the users in the data; 0: none "
        "beyond a and b.",
    )
    known_exposure: bool = Field(
        False,
        description="Whether what was shown and not clicked counts as seen, where the log says so; otherwise "
        "its exposure is inferred like that of any other pair.",
    )
    prior_power: float = Field(
        0.0,
        ge=0,
        description="Exponent of (item count / largest count), the share of the pseudo-users who were "
        "shown the item; 0: all of them.",
    )


def exposure_log_odds(scores: Tensor, mu: Tensor, precision: float) -> Tensor:
    """Log-odds that an pair without an interaction was shown, given that it was not interacted with.

        log mu/(1 - mu) + log N(0 | s, 1/precision),   log N(0 | s, 1/p) = 1/2 log(p / 2 pi) - p/2 s^2

    scores: s = <theta_u, beta_i> of any shape; mu: in (0, 1), broadcast to it. A pair that the model likes
    and that was not interacted with was probably not seen.

    >>> exposure_log_odds(torch.tensor([0.0, 2.0]), torch.tensor(0.5), precision=1.0)
    tensor([-0.9189, -2.9189])
    """
    constant = 0.5 * math.log(precision / (2 * math.pi))
    return (torch.logit(mu) + constant) - scores.square() * (precision / 2)


def pair_log_evidence(scores: Tensor, mu: Tensor, precision: float) -> tuple[Tensor, Tensor]:
    """Log density of a pair if it was not interacted with, and if it was; exposure is summed over.

    y = 0:  log(mu N(0 | s) + 1 - mu)        y = 1:  log mu + log N(1 | s)

    scores, mu and precision as in `exposure_log_odds`.
    """
    not_interacted = functional.softplus(exposure_log_odds(scores, mu, precision)) + torch.log1p(-mu)
    constant = 0.5 * math.log(precision / (2 * math.pi))
    return not_interacted, mu.log() + constant - (1 - scores).square() * (precision / 2)


@dataclass(frozen=True)
class _Block:
    """Some rows of the interacted matrix: which, and the places of their ones."""

    rows: slice
    starts: Tensor  # (b,) where each row begins in `columns`
    inside: Tensor  # (m,) row within the block of each one
    columns: Tensor  # (m,)


def _blocks(interacted: "sparse.csr_matrix", dim: int, device: torch.device) -> Iterator[_Block]:
    """All rows, so few at a time that neither the scores nor the Gram matrices of a block are large."""
    step = min(rows_per_block(interacted.shape[1]), rows_for(dim))
    for start in range(0, interacted.shape[0], step):
        rows = slice(start, min(start + step, interacted.shape[0]))
        bounds = torch.from_numpy(interacted.indptr[start : rows.stop + 1]).long().to(device)
        lengths = bounds.diff()
        columns = torch.from_numpy(interacted.indices[int(bounds[0]) : int(bounds[-1])]).long().to(device)
        inside = torch.arange(len(lengths), device=device).repeat_interleave(lengths)
        yield _Block(rows, bounds[:-1] - bounds[0], inside, columns)


class Exposure(nn.Module):
    """Each item's chance of being shown, mu."""

    mu: Tensor  # (n_items,)

    def __init__(self, items: int, start: float) -> None:
        super().__init__()
        self.register_buffer("mu", torch.full((items,), start))


class ExposureLearner(Learner):
    """Climbs the joint density of feedback and vectors; an epoch is one iteration of EM.

        a_ui ~ Bernoulli(mu_i),   y_ui ~ N(<theta_u, beta_i>, 1/precision) if a_ui = 1,   y_ui = 0 if a_ui = 0
        theta_u ~ N(0, I/ridge_users),   beta_i ~ N(0, I/ridge_items),   mu_i ~ Beta(a_i, b_i)

    An iteration finds the chance that each other pair was shown, solves a ridge regression for every user
    with these chances as weights, finds them again, and does the same for the items and mu. Exposures are
    summed over; vectors and mu are at the mode, and their joint density never falls. Every pair of a user and
    an item counts, so time grows with users times items; memory does not.
    """

    def __init__(self, task: TrainingTask, settings: ExposureSettings) -> None:
        scorer, train = task.scorer, task.train
        if not isinstance(scorer, Factorization):
            raise ConfigError(f"ExpoMF trains mf only, and the model is a {type(scorer).__name__}.")
        if not has_double(device_of(scorer)):
            raise ConfigError("ExpoMF computes in double precision, which this device lacks; use cpu.")
        self.scorer: Factorization = scorer
        self._settings = settings
        self._by_user = interaction_matrix(train)
        self._by_item = self._by_user.T.tocsr()
        shown = interaction_matrix(train.rows) if settings.known_exposure else self._by_user
        self._seen = {True: shown.T.tocsr(), False: shown}  # by item, by user
        self._prior = _prior_counts(train, settings, device_of(scorer))
        self.exposure = Exposure(train.n_items, settings.init_mu).to(device_of(scorer))
        with torch.no_grad():  # a pair's score is its inner product alone
            for table in (scorer.users, scorer.items):
                table.weight[:, -1] = 0
            scorer.bias.zero_()

    @property
    def mu(self) -> Tensor:
        """Each item's chance of being shown: (n_items,)."""
        return self.exposure.mu

    def players(self) -> dict[str, nn.Module]:
        """The chances of being shown."""
        return {"exposure": self.exposure}

    @torch.no_grad()
    def epoch(self, number: int) -> EpochMetrics:
        """One iteration; the loss is the negative log joint density for each pair."""
        settings = self._settings
        users, items = self.scorer.users.weight[:, :-1], self.scorer.items.weight[:, :-1]
        self._update(users, items, self._by_user, settings.ridge_users)
        shown = self._update(items, users, self._by_item, settings.ridge_items)
        first, second = self._prior
        # The mode of Beta(a + shown, b + not shown), within bounds.
        mode = (first + shown - 1) / (first + second + len(users) - 2)
        self.mu.copy_(mode.clamp(_RAREST, 1 - _RAREST))
        pairs = len(users) * len(items)
        return {"loss": -self.log_joint() / pairs, "exposure": float(self.mu.double().mean())}

    def _update(self, own: Tensor, other: Tensor, interacted: "sparse.csr_matrix", ridge: float) -> Tensor:
        """Replace the vectors `own` by their best given `other`; how many pairs of each were shown: (n,).

        theta_u = (precision sum_i E[a_ui] beta_i beta_i' + ridge I)^-1 precision sum_i y_ui beta_i

        Each row of `interacted` belongs to one of `own`; E[a] is that of the vectors before.
        """
        by_item = interacted is self._by_item
        shown = torch.empty(len(own), dtype=torch.float64, device=own.device)
        for block in _blocks(interacted, own.shape[1], own.device):
            chances = self._chances(own[block.rows] @ other.T, block, self._mu_of(block, by_item))
            seen = self._seen[by_item][block.rows].tocoo()
            rows, columns = (torch.from_numpy(a).long().to(own.device) for a in (seen.row, seen.col))
            chances[rows, columns] = 1
            shown[block.rows] = chances.sum(1, dtype=torch.float64)
            right = functional.embedding_bag(block.columns, other, block.starts, mode="sum")
            # Both sides over the precision.
            gram = gram_matrices(chances, other)
            own[block.rows] = ridge_solve(gram, right, ridge / self._settings.precision)
        return shown

    def _chances(self, scores: Tensor, block: _Block, mu: Tensor) -> Tensor:
        """E[a]: the chance that each pair of the block was shown, 1 for what was interacted with: (b, n)."""
        chances = exposure_log_odds(scores, mu, self._settings.precision).sigmoid_()
        chances[block.inside, block.columns] = 1
        return chances

    def _mu_of(self, block: _Block, by_item: bool) -> Tensor:
        """Mu as it lies along the block's scores: down the rows of items, or along the columns."""
        return self.mu[block.rows, None] if by_item else self.mu[None]

    @torch.no_grad()
    def log_joint(self) -> float:
        """Log density of the feedback, the vectors and mu together, up to a constant.

        sum_ui log p(y_ui | theta_u, beta_i, mu_i) - ridge_users/2 |theta|^2 - ridge_items/2 |beta|^2
          + sum_i (a_i - 1) log mu_i + (b_i - 1) log(1 - mu_i)

        Exposures are summed over.
        """
        users, items = self.scorer.users.weight[:, :-1], self.scorer.items.weight[:, :-1]
        total = torch.zeros((), dtype=torch.float64, device=users.device)
        for block in _blocks(self._by_user, users.shape[1], users.device):
            scores = users[block.rows] @ items.T
            not_interacted, interacted = pair_log_evidence(scores, self.mu[None], self._settings.precision)
            not_interacted[block.inside, block.columns] = interacted[block.inside, block.columns]
            total += not_interacted.sum(dtype=torch.float64)
        total -= self._settings.ridge_users / 2 * users.double().square().sum()
        total -= self._settings.ridge_items / 2 * items.double().square().sum()
        (first, second), mu = self._prior, self.mu.double()
        return float(total + ((first - 1) * mu.log() + (second - 1) * torch.log1p(-mu)).sum())


def _prior_counts(
    train: Interactions, settings: ExposureSettings, device: torch.device
) -> tuple[Tensor, Tensor]:
    """The numbers a and b of every item's Beta prior: (n_items,) each.

        a_i = a + n p_i,   b_i = b + n (1 - p_i),   p_i = (c_i / max c)^prior_power

    with c the items' counts and n = prior_weight times the number of users.
    """
    counts = torch.from_numpy(train.item_counts).double().to(device)
    share = (counts / counts.max().clamp(min=1)) ** settings.prior_power
    further = settings.prior_weight * train.n_users
    return settings.prior_shown + further * share, settings.prior_hidden + further * (1 - share)


def refuse_batches(training: TrainingSettings, settings: Settings) -> None:
    """Nothing, unless the settings ask for a way of making batches: there are none."""
    if training.pairs != "sampled" or training.hard_negatives:
        raise ConfigError(
            "ExpoMF looks at every pair in every iteration and draws no negatives; "
            "leave out pairs and hard_negatives."
        )
