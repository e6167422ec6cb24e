"""A world that needs no data at all: tastes, appeal and an earlier recommender from a few numbers."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field
from scipy.optimize import brentq
from scipy.special import expit

from towpath.data.interactions import Interactions
from towpath.data.sql import NO_POLICY, RANDOM_POLICY
from towpath.data.vocabulary import Vocabulary
from towpath.errors import ConfigError
from towpath.models.scorer import Settings
from towpath.rng import Rng
from towpath.worlds.showing import Shown, show_lists, show_softly
from towpath.worlds.world import World

SECONDS_OF_A_DAY = 86_400


class LatentWorld(Settings):
    """What makes a latent world.

    The exploration share is the dial of overlap, from none (0: a fixed top list) to full (1: all by chance);
    temperature is another, for a recommender whose every choice has its chance.
    """

    users: int = Field(default=1_500, ge=1, description="How many users there are.")
    items: int = Field(default=800, ge=2, description="How many items the catalogue holds.")
    latent_dim: int = Field(default=8, ge=1, description="Number of latent dimensions of taste.")
    taste: float = Field(default=1.6, ge=0, description="Spread of the personal part of the click logit.")
    popularity_skew: float = Field(
        default=1.0, ge=0, description="Spread of the appeal of items that all users share."
    )
    mean_relevance: float = Field(
        default=0.08, gt=0, lt=1, description="Mean probability of a click over all pairs."
    )
    shown_per_user: int = Field(
        default=60, ge=1, description="How many items the earlier recommender showed each user."
    )
    exploration: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="Share of the shown items that were random; the rest is a fixed top list.",
    )
    temperature: float = Field(
        default=0.0,
        ge=0,
        description="Above 0 there is no fixed list: each item is shown with a probability that rises "
        "with its score, less steeply for higher values, and shown_per_user holds on "
        "average.",
    )
    logger_taste: float = Field(
        default=0.6,
        ge=0,
        le=1,
        description="How much of a user's taste the earlier recommender knew; 0: nothing, 1: all.",
    )
    random_named: bool = Field(
        default=False,
        description="Whether the log names what was shown at random: its policy is called `random`.",
    )
    days: int = Field(default=90, ge=1, description="Number of days over which the items were shown.")


def make_latent_world(settings: LatentWorld, rng: Rng) -> World:
    """The world of these settings and this seed.

        P(click | shown) = sigmoid(a + popularity_skew b_i + taste <p_u, q_i> / sqrt(d))

    with b, p, q standard normal and a chosen so that the mean is `mean_relevance`. The earlier recommender
    ranks by what it knows of the same sum and shows everyone its top list, the same whenever it is asked;
    a share of `exploration` comes at random from the rest, with a chance that is known.
    """
    _check(settings)
    draw = rng.numpy("world", "tastes")
    users = draw.standard_normal((settings.users, settings.latent_dim), dtype=np.float32)
    items = draw.standard_normal((settings.items, settings.latent_dim), dtype=np.float32)
    appeal = settings.popularity_skew * draw.standard_normal(settings.items, dtype=np.float32)
    taste = settings.taste * (users @ items.T) / np.float32(np.sqrt(settings.latent_dim))
    relevance = _with_mean(taste + appeal, settings.mean_relevance)
    shown = _show(_earlier_scores(taste, appeal, settings, rng), settings, rng)
    exposures = _log_exposures(shown, relevance, settings, rng)
    return World(relevance, shown.propensity, exposures, exposures.positives)


def _check(settings: LatentWorld) -> None:
    if settings.shown_per_user > settings.items:
        raise ConfigError(
            f"shown_per_user must not exceed the {settings.items:,} items of the catalogue, but is "
            f"{settings.shown_per_user:,}; show fewer or make more items."
        )
    if settings.temperature and settings.random_named:
        raise ConfigError(
            "With a temperature above 0 no item is shown at random or by a fixed list, so that random_named "
            "has nothing to name; leave it out."
        )
    if settings.temperature and settings.exploration:
        raise ConfigError(
            "A temperature above 0 leaves nothing for exploration, but they are "
            f"{settings.temperature:g} and {settings.exploration:g}; set one of them to 0."
        )


def _with_mean(logits: NDArray[np.float32], mean: float) -> NDArray[np.float32]:
    """Chances with this mean: the logits shifted by the one number that does it."""
    # A sample of rows is plenty to place the shift, and keeps large worlds quick.
    sample = logits[:: max(1, len(logits) // 1_000)]
    shift = brentq(lambda a: float(expit(sample + np.float32(a)).mean()) - mean, -50.0, 50.0, xtol=1e-6)
    return expit(logits + np.float32(shift))


def _earlier_scores(
    taste: NDArray[np.float32], appeal: NDArray[np.float32], settings: LatentWorld, rng: Rng
) -> NDArray[np.float32]:
    """How the earlier recommender ranks: appeal in full, taste in part, the rest its own errors."""
    errors = rng.numpy("world", "logger").standard_normal(taste.shape, dtype=np.float32)
    known = np.float32(settings.logger_taste)
    # Errors as wide as the taste they replace, so that knowing less does not mean showing the popular more.
    return appeal + known * taste + np.float32(settings.taste) * np.sqrt(1 - known**2) * errors


def _show(scores: NDArray[np.float32], settings: LatentWorld, rng: Rng) -> Shown:
    draw = rng.numpy("world", "exploration")
    if settings.temperature:
        return show_softly(scores, settings.shown_per_user, settings.temperature, draw)
    return show_lists(scores, settings.shown_per_user, settings.exploration, draw)


def _log_exposures(
    shown: Shown, relevance: NDArray[np.float32], settings: LatentWorld, rng: Rng
) -> Interactions:
    """The exposures as a table ordered by user and time, each with a click (1) or none (0)."""
    draw = rng.numpy("world", "clicks")
    users, items = shown.users, shown.items
    times = draw.integers(settings.days * SECONDS_OF_A_DAY, size=len(users))
    order = np.lexsort((times, users))
    if settings.temperature:
        items = items[order]
    else:  # all lists have one length, so that they can be shuffled at once
        items = draw.permuted(items.reshape(settings.users, -1), axis=1).ravel()
    clicks = draw.random(len(users)) < relevance[users, items]
    propensities = shown.propensity[users, items]
    return Interactions(
        users=users.astype(np.int32),
        items=items.astype(np.int32),
        user_ids=_ids("user", settings.users),
        item_ids=_ids("item", settings.items),
        times=times[order],
        values=clicks.astype(np.float32),
        labels=clicks,
        propensities=propensities,
        exposures=np.ones(len(users), dtype=np.bool_),
        policies=_policies(propensities) if settings.random_named else None,
    )


def _policies(propensities: NDArray[np.float32]) -> NDArray[np.int32]:
    """What a top list of certain items did not show came by chance."""
    return np.where(propensities < 1, RANDOM_POLICY, NO_POLICY).astype(np.int32)


def _ids(kind: str, count: int) -> Vocabulary:
    """Readable ids of equal length: user-0001, user-0002 ..."""
    width = len(str(count))
    return Vocabulary(pa.array([f"{kind}-{number:0{width}d}" for number in range(1, count + 1)]))
