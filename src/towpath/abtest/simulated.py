"""Experiments whose truth is known: visitors who come back, and orders of very different sizes."""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from towpath.abtest.totals import DailyTotals, UserTotals
from towpath.models.scorer import Settings
from towpath.rng import Rng


class Visitors(Settings):
    """Who comes, how often, and what they do."""

    users: int = Field(default=2_000, ge=2, description="How many users come at all.")
    days: int = Field(default=28, ge=1, description="How many days the experiment lasts.")
    stays: float = Field(default=0.6, ge=0, lt=1, description="Mean chance that a user comes back on a day.")
    slots: int = Field(default=10, ge=1, description="How many items a visit shows.")
    click_rate: float = Field(
        default=0.06, gt=0, lt=1, description="Mean chance that a shown item is clicked."
    )
    order_rate: float = Field(
        default=0.05, gt=0, lt=1, description="Mean chance that a visit ends in an order."
    )
    spread: float = Field(default=1.5, ge=0, description="Spread (of logarithms) of what an order is worth.")


def simulate_experiment(visitors: Visitors, effects: Sequence[float], rng: Rng) -> DailyTotals:
    """Per-user, per-day totals of one arm for each of `effects`; the first is called control.

    An effect of 0.1 makes orders a tenth likelier; clicks and the size of orders are the same for all arms.
    Users come for the first time on a random day and then come back, each as often, as click-happy and as
    ready to buy as they are, so that days of one user are alike.
    """
    draw = rng.numpy("visitors")
    n, days = visitors.users, visitors.days
    arm_of = draw.integers(len(effects), size=n)
    first = draw.integers(days, size=n)
    loyalty = draw.beta(1.0, max(1e-9, 1 / max(visitors.stays, 1e-9) - 1), size=n)
    comes = draw.random((n, days)) < loyalty[:, None]
    comes[np.arange(n), first] = True
    comes &= np.arange(days)[None, :] >= first[:, None]
    users, on = np.nonzero(comes)
    order = np.argsort(on, kind="stable")
    users, on = users[order], on[order]
    visits = 1 + draw.poisson(0.3, len(users))
    impressions = visits * visitors.slots
    # Users differ much in how readily they click and buy; the mean over users is the rate.
    eager = draw.gamma(1.0, 1.0, (2, n))
    chance = np.minimum(visitors.click_rate * eager[0], 0.9)
    clicks = draw.binomial(impressions, chance[users])
    buying = visitors.order_rate * eager[1] * (1 + np.asarray(effects)[arm_of])
    orders = draw.binomial(visits, np.minimum(buying, 0.9)[users])
    units = orders + draw.poisson(0.5 * orders)
    value = units * 20 * draw.lognormal(0, visitors.spread, len(users))
    did = (column.astype(np.float64) for column in (visits, impressions, clicks, orders, units, value))
    arms = ("control", *(f"variation {number}" for number in range(1, len(effects))))
    return DailyTotals(arms, arm_of.astype(np.int64), users, on, UserTotals(*did))
