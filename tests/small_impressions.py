"""A small log of impressions, made on the spot."""

from functools import cache

from towpath.data.split import Split, split_leave_last_two
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world
from towpath.worlds.world import World


@cache
def small_world(
    users: int = 60, items: int = 40, shown: int = 16, exploration: float = 0.25, seed: int = 0
) -> World:
    settings = LatentWorld(
        users=users, items=items, shown_per_user=shown, exploration=exploration, mean_relevance=0.2
    )
    return make_latent_world(settings, Rng(seed))


@cache
def small_log(**sizes: float) -> Split:
    return split_leave_last_two(small_world(**sizes).log)  # type: ignore[arg-type]
