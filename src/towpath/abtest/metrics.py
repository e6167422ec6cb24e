"""What an experiment is judged by: ratios of sums over users."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from towpath.abtest.totals import UserTotals
from towpath.errors import unknown_name

Floats = NDArray[np.float64]
Part = Callable[[UserTotals], Floats]


@dataclass(frozen=True)
class Metric:
    """sum(numerator) / sum(denominator) over the users of an arm; `title` is how people call it."""

    name: str
    title: str
    numerator: Part
    denominator: Part


def _everyone(totals: UserTotals) -> Floats:
    return np.ones(len(totals.visits))


def _converted(totals: UserTotals) -> Floats:
    return (totals.orders > 0).astype(np.float64)


# The paper's metrics in its order, then the click rate; the first one decides, the others guard.
METRICS = {
    metric.name: metric
    for metric in (
        Metric("gmv_per_visitor", "GMV per visitor", lambda t: t.value, _everyone),
        Metric("units_per_order", "units per order", lambda t: t.units, lambda t: t.orders),
        Metric("orders_per_visit", "orders per visit", lambda t: t.orders, lambda t: t.visits),
        Metric("converted_visitors", "converted visitors", _converted, _everyone),
        Metric("click_rate", "click rate", lambda t: t.clicks, lambda t: t.impressions),
    )
}


def metrics_named(names: Sequence[str] | None) -> tuple[Metric, ...]:
    """The metrics of these names, all for none; the first one decides."""
    for name in names or ():
        if name not in METRICS:
            raise unknown_name("metric", name, METRICS)
    return tuple(METRICS[name] for name in dict.fromkeys(names or METRICS))
