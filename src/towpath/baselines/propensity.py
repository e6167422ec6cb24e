"""How likely each pair was to be shown: given by the log, or estimated from the training part alone."""

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from towpath.data.interactions import Interactions
from towpath.errors import DataError
from towpath.models.factorization import Factorization, FactorizationSettings
from towpath.models.players import player_rng
from towpath.models.registry import parse_settings
from towpath.models.scorer import Context, Settings, sizes_of
from towpath.rng import Rng
from towpath.training.batches import Batch
from towpath.training.impressions import impressions_of
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

# Pairs that are scored at once: their vectors take a few megabytes.
_ROWS = 2**16


class PropensitySettings(Settings):
    """Where propensities come from; shared by all methods that divide by them."""

    propensity: Literal["auto", "given", "exposure", "popularity", "model"] = Field(
        "auto",
        description="The probability that a pair was shown: from the log's propensity column (`given`; in "
        "simulated worlds the truth), from how often an item was shown (`exposure`) or interacted with "
        "(`popularity`), or from a `model` of which users interact with which items. `auto`: in a log of "
        "impressions given where every row has one, else exposure; without impressions popularity.",
    )
    power: float = Field(
        0.5,
        ge=0,
        description="Exponent of the estimates: (count / largest count)^power for exposure and popularity, "
        "(chance / largest chance)^power for model; 0 makes all pairs equally likely.",
    )
    floor: float = Field(
        0.1, gt=0, le=1, description="Propensities below this are raised to it: less variance, more bias."
    )
    exposure_dim: int = Field(8, ge=1, description="Length of the vectors when propensity=model.")
    exposure_epochs: int = Field(5, ge=1, description="Epochs of that model, which is trained first.")


class Propensity(nn.Module):
    """The chance of having been shown, of every pair of a batch and before any floor: here one per item."""

    items: Tensor  # (n_items,)

    def __init__(self, items: Tensor) -> None:
        super().__init__()
        self.register_buffer("items", items, persistent=False)  # made from the training data, not learned

    def fit(self, train: Interactions) -> None:
        """Learn whatever has to be learned, once, before the first epoch."""

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """Propensities (b, k)."""
        return self.items[batch.items].expand(batch.labels.shape)


class GivenPropensity(Propensity):
    """The log's own propensities for the pairs that it holds.

    Where the log holds what was shown and not clicked, these pairs have theirs too. Of a pair that is not in
    the log nothing was written down; it gets the harmonic mean over the item's logged pairs, n_i / sum 1/p,
    since that is what n_i logged pairs say about the mean chance over users (each of them stands for 1/p
    pairs). An item that was never logged gets 0. A pair logged several times gets the harmonic mean as well.
    """

    def __init__(self, train: Interactions) -> None:
        log = train.rows
        inverse = 1 / _given(log).astype(np.float64)
        super().__init__(_harmonic(log.items, inverse, log.n_items))
        keys, places = np.unique(log.pair_keys(), return_inverse=True)
        self.register_buffer("keys", torch.from_numpy(keys), persistent=False)
        self.register_buffer("pairs", _harmonic(places, inverse, len(keys)), persistent=False)

    keys: Tensor  # (pairs,) sorted
    pairs: Tensor  # (pairs,) the propensity of each

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """The log's value for the pairs that it holds (b, k), the item's for the rest."""
        wanted = batch.context.users[:, None] * len(self.items) + batch.items
        places = torch.searchsorted(self.keys, wanted).clamp(max=len(self.keys) - 1)
        return torch.where(self.keys[places] == wanted, self.pairs[places], super().forward(batch))


class ModelPropensity(Propensity):
    """A small factorisation of who takes what, scaled so that the likeliest logged pair has 1.

    theta_ui = (sigmoid(s_ui) / max over the log of sigmoid(s))^power
    """

    top: Tensor  # ()

    def __init__(self, train: Interactions, settings: PropensitySettings, rng: Rng) -> None:
        super().__init__(torch.zeros(train.n_items))
        self._power, self._epochs = settings.power, settings.exposure_epochs
        self._rng = player_rng(rng, "exposure")
        sizes = sizes_of(train)
        shape = parse_settings(FactorizationSettings, {"embedding_dim": settings.exposure_dim})
        self.scorer = Factorization(shape, sizes)
        self.scorer.initialise(train, self._rng)
        self.register_buffer("top", torch.ones(()))

    def fit(self, train: Interactions) -> None:
        """Train the factorisation plainly."""
        training = parse_settings(TrainingSettings, {})
        learner = PlainLearner(TrainingTask(self.scorer, train, training, self._rng))
        for number in range(1, self._epochs + 1):
            learner.run_epoch(number)
        self.top.copy_(self._highest(train))

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """The model's chances (b, k), no higher than one."""
        chances = torch.sigmoid(self.scorer.score(batch.context, batch.items))
        return (chances / self.top).clamp(max=1) ** self._power

    @torch.no_grad()
    def _highest(self, train: Interactions) -> Tensor:
        """The highest chance among the logged pairs."""
        users, items = (torch.from_numpy(c).long().to(self.top.device) for c in (train.users, train.items))
        highest = torch.full_like(self.top, -torch.inf)
        for start in range(0, len(train), _ROWS):
            some = users[start : start + _ROWS]
            nothing_before = some.new_zeros(len(some), 0)
            scores = self.scorer.score(Context(some, nothing_before), items[start : start + _ROWS, None])
            highest = torch.maximum(highest, scores.max())
        return torch.sigmoid(highest)


def make_propensity(train: Interactions, settings: PropensitySettings, rng: Rng) -> Propensity:
    """The propensities that the settings ask for."""
    source = _logged_source(train) if settings.propensity == "auto" else settings.propensity
    if source == "given":
        return GivenPropensity(train)
    if source == "model":
        return ModelPropensity(train, settings, rng)
    counted = impressions_of(train) if source == "exposure" else train
    return Propensity(popularity_propensity(counted, settings.power))


def _logged_source(train: Interactions) -> str:
    """Where propensities come from if nobody says: the best that the log has."""
    log = train.impressions
    if log is None or not train.knows_unclicked:
        return "popularity"
    logged = log.propensities is not None and bool((log.propensities > 0).all())
    return "given" if logged else "exposure"


def popularity_propensity(counted: Interactions, power: float) -> Tensor:
    """The chance of each item to have been shown, estimated by how often it occurs: (n_items,).

        theta_i = (n_i / max_j n_j)^power        n_i: rows of item i, impressions or training positives

    An item that does not occur gets 0, whatever the power; the floor lifts it.
    """
    counts = torch.from_numpy(counted.item_counts).double()
    shares = (counts / counts.max().clamp(min=1)) ** power
    return torch.where(counts > 0, shares, 0).float()


def floored(propensity: Tensor, floor: float) -> Tensor:
    """Propensities of at least `floor`, any shape.

    >>> floored(torch.tensor([0.0, 0.5]), 0.1)
    tensor([0.1000, 0.5000])
    """
    return propensity.clamp(min=floor)


def _given(train: Interactions) -> NDArray[np.float32]:
    """The propensity column; without one, or with gaps, nothing is assumed."""
    if train.propensities is None:
        raise DataError(
            f"propensity=given needs a propensity for each of the {len(train):,} training interactions, but "
            "the data have no propensity column; name it with --propensity-col, or use propensity=popularity."
        )
    missing = np.flatnonzero(~(train.propensities > 0))
    if len(missing):
        user = train.user_ids.ids(train.users[missing[:1]])[0]
        item = train.item_ids.ids(train.items[missing[:1]])[0]
        raise DataError(
            f"propensity=given needs a propensity for every training interaction; {len(missing):,} of "
            f"{len(train):,} have none (first: user {user!r}, item {item!r}). Fill them in, drop those rows, "
            "or use propensity=popularity."
        )
    return train.propensities


def _harmonic(groups: NDArray[np.integer], inverse: NDArray[np.float64], count: int) -> Tensor:
    """The harmonic mean of each of `count` groups, given 1/p of its members: (count,); 0 where empty."""
    members = np.bincount(groups, minlength=count)
    total = np.bincount(groups, weights=inverse, minlength=count)
    return torch.from_numpy(members / np.maximum(total, 1)).float()
