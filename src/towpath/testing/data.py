"""A small split that the suites run on, made on the spot."""

from functools import cache

from towpath.data.split import Split, split_leave_last_two
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world


@cache
def small_split() -> Split:
    """60 users with tastes and 40 items; the last event of each user tests, the one before validates."""
    world = LatentWorld(users=60, items=40, shown_per_user=32, mean_relevance=0.35)
    return split_leave_last_two(make_latent_world(world, Rng(0)).log)
