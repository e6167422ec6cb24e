"""A world made from real ratings: relevance from what was rated how, exposure from what was rated at all."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.optimize import brentq
from scipy.special import expit

from towpath.data.interactions import Interactions
from towpath.errors import ConfigError, DataError
from towpath.models.scorer import Settings
from towpath.rng import Rng
from towpath.worlds.extraction import factorise_exposure, predict_ratings, scores_of, vectors_of
from towpath.worlds.network import random_network
from towpath.worlds.world import World

Clicks = Literal["cut-off", "chance"]
# Shifts of the exposure logit that are tried; beyond them every chance is 0 or 1.
_FARTHEST_SHIFT = 40.0
_BINS = 8192


class SemiSyntheticWorld(Settings):
    """What is made of the ratings."""

    clicks: Clicks = Field(
        default="chance",
        description="`chance`: pairs are shown and clicked at random by their probabilities; `cut-off`: "
        "the pairs with the highest probability of both are the clicks (the paper), and "
        "nothing is drawn.",
    )
    density: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Share of all pairs that are clicked; none: that of the ratings.",
    )
    rating_centre: float = Field(default=3.0, description="The rating u of sigmoid(rating - u)^p.")
    relevance_power: float = Field(default=2.0, gt=0, description="The power p of sigmoid(rating - u)^p.")
    relevance_noise: float = Field(
        default=0.0, ge=0, description="Standard deviation of noise on the extracted ratings."
    )
    network_share: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="How much of the exposure logit's variance is a random network of the factorisation's "
        "vectors (the paper); the rest is the factorisation itself.",
    )
    exposure_scale: float = Field(
        default=1.0, ge=0, description="Standard deviation of the exposure logit; larger means less overlap."
    )
    exposure_shift: float | None = Field(
        default=None,
        description="Mean of the exposure logit; none: such that the expected clicks have the density.",
    )
    exposure_power: float = Field(default=1.0, gt=0, description="Power of the exposure's sigmoid.")
    embedding_dim: int = Field(default=32, ge=1, description="Length of the vectors of both factorisations.")


def make_semi_synthetic_world(
    rated: Interactions,
    settings: SemiSyntheticWorld,
    rng: Rng,
    watch: Callable[[str], None] = lambda step: None,
) -> World:
    """The world of these ratings, settings and this seed; `watch` hears what is about to be done.

        P(R = 1) = sigmoid(rating_ui - rating_centre)^relevance_power
        P(O = 1) = sigmoid(exposure_shift + exposure_scale * z_ui)^exposure_power
        P(Y = 1) = P(R = 1) * P(O = 1)

    rating_ui is a factorisation of the ratings. z has mean 0 and variance 1 over all pairs and comes from a
    factorisation of which pairs were rated, through a random network. The order of the log is random.
    """
    rated = _rated(rated)
    watch("Factorising the ratings")
    relevance = _relevance(rated, settings, rng)
    watch("Factorising what was rated at all")
    logits = _exposure_logits(rated, settings, rng)
    watch("Drawing what was shown and clicked")
    density = settings.density or len(np.unique(rated.pair_keys())) / relevance.size
    shift = settings.exposure_shift
    if shift is None:
        shift = _shift_for(density, relevance, logits, settings)
    propensity = _exposure(logits, shift, settings.exposure_power)
    make = _by_chance if settings.clicks == "chance" else _by_cut_off
    users, items, clicks = make(relevance, propensity, density, rng)
    exposures = _in_random_order(rated, (users, items, clicks), propensity, rng)
    return World(relevance, propensity, exposures, exposures.positives)


def _rated(interactions: Interactions) -> Interactions:
    """The rows with a rating."""
    if interactions.values is None:
        raise DataError(
            "A semi-synthetic world needs ratings, but the data have no column of values; name it with "
            "--value-col, or make a latent world, which needs no data."
        )
    rated = interactions.where(np.isfinite(interactions.values))
    if not len(rated) or float(np.ptp(np.asarray(rated.values))) == 0:
        raise DataError(
            f"A semi-synthetic world needs ratings that differ, but the {len(rated):,} of "
            f"{len(interactions):,} events that have a value all have the same; bring rated data."
        )
    return rated


def _relevance(rated: Interactions, settings: SemiSyntheticWorld, rng: Rng) -> NDArray[np.float32]:
    ratings = predict_ratings(rated, settings.embedding_dim, rng)
    if settings.relevance_noise:
        noise = rng.numpy("world", "relevance").standard_normal(ratings.shape, dtype=np.float32)
        ratings += np.float32(settings.relevance_noise) * noise
    return expit(ratings - np.float32(settings.rating_centre)) ** np.float32(settings.relevance_power)


def _exposure_logits(rated: Interactions, settings: SemiSyntheticWorld, rng: Rng) -> NDArray[np.float32]:
    """Z times its scale: mean 0, standard deviation `exposure_scale` over all pairs."""
    scorer = factorise_exposure(rated, settings.embedding_dim, rng)
    share = settings.network_share
    logits = np.zeros((rated.n_users, rated.n_items), dtype=np.float32)
    if share > 0:
        logits += np.float32(share**0.5) * _standardised(random_network(*vectors_of(scorer), rng))
    if share < 1:
        logits += np.float32((1 - share) ** 0.5) * _standardised(scores_of(scorer))
    logits = _standardised(logits)
    logits *= np.float32(settings.exposure_scale)
    return logits


def _standardised(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same array, now with mean 0 and variance 1; all zeros where there is nothing to tell apart."""
    values -= np.float32(values.mean(dtype=np.float64))
    spread = float(np.sqrt(np.square(values).mean(dtype=np.float64)))
    values /= np.float32(spread or 1.0)
    return values


def _exposure(logits: NDArray[np.float32], shift: float, power: float) -> NDArray[np.float32]:
    chances = expit(logits + np.float32(shift))
    return chances if power == 1 else chances ** np.float32(power)


def _shift_for(
    density: float, relevance: NDArray[np.float32], logits: NDArray[np.float32], settings: SemiSyntheticWorld
) -> float:
    """The shift of the exposure logit with which the mean of P(R) P(O) is the density."""
    # Pairs are sorted by logit into bins so narrow that the curve is straight within them: one pass over all.
    mass, edges = np.histogram(logits, bins=_BINS, weights=relevance)
    mass, middles = mass / relevance.size, (edges[1:] + edges[:-1]) / 2

    def excess(shift: float) -> float:
        return float(mass @ expit(middles + shift) ** settings.exposure_power) - density

    if excess(_FARTHEST_SHIFT) < 0:
        raise ConfigError(
            f"Clicks on {density:.2%} of all pairs cannot be had when the mean relevance is "
            f"{float(relevance.mean()):.2%}; lower density, rating_centre or relevance_power."
        )
    return float(brentq(excess, -_FARTHEST_SHIFT, _FARTHEST_SHIFT))


# Users, items and whether it was clicked, of everything that the log holds.
Rows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]


def _by_chance(
    relevance: NDArray[np.float32], propensity: NDArray[np.float32], density: float, rng: Rng
) -> Rows:
    """Shown by chance, clicked by chance; what was shown but not clicked is logged too."""
    draw = rng.numpy("world", "exposure")
    users, items = np.nonzero(draw.random(propensity.shape, dtype=np.float32) < propensity)
    clicks = rng.numpy("world", "clicks").random(len(users), dtype=np.float32) < relevance[users, items]
    return users, items, clicks


def _by_cut_off(
    relevance: NDArray[np.float32], propensity: NDArray[np.float32], density: float, rng: Rng
) -> Rows:
    """The likeliest pairs are clicked, exactly as many as the density says; the log holds nothing else."""
    chances = (relevance * propensity).ravel()
    clicks = max(1, round(density * chances.size))
    likeliest = np.argpartition(chances, chances.size - clicks)[chances.size - clicks :]
    users, items = np.divmod(np.sort(likeliest), relevance.shape[1])
    return users, items, np.ones(clicks, dtype=np.bool_)


def _in_random_order(
    rated: Interactions, rows: Rows, propensity: NDArray[np.float32], rng: Rng
) -> Interactions:
    users, items, clicks = rows
    times = rng.numpy("world", "order").permutation(len(users))
    order = np.lexsort((times, users))
    users, items = users[order], items[order]
    return Interactions(
        users=users.astype(np.int32),
        items=items.astype(np.int32),
        user_ids=rated.user_ids,
        item_ids=rated.item_ids,
        times=times[order],
        values=clicks[order].astype(np.float32),
        labels=clicks[order],
        propensities=propensity[users, items],
        exposures=np.ones(len(users), dtype=np.bool_),
    )
