"""What came out of an experiment, in a sentence."""

import math
from collections.abc import Sequence

from towpath.abtest.lifts import Lift, worse
from towpath.abtest.metrics import METRICS, Metric
from towpath.stats.sample_ratio import SplitCheck


def verdict_of(lifts: Sequence[Lift], decides: Metric, split: SplitCheck, alpha: float) -> str:
    """The sentence: who does better by the metric that decides, and which other metrics fell.

    Arms are believed by Holm's p-values over the arms, falls of other metrics by those over all arms and
    metrics that guard.
    """
    if split.mismatch:
        return _mismatch(split)
    deciding = [lift for lift in lifts if lift.metric == decides.name]
    sure = [lift for lift in deciding if lift.p_holm < alpha]
    said = [_difference(lift) for lift in sure] or [_undecided(deciding, decides)]
    guards = [lift for lift in lifts if lift.metric != decides.name]
    said += [
        f"{lift.arm}'s {METRICS[lift.metric].title} fell {_range(lift)}" for lift in worse(guards, alpha)
    ]
    return "; ".join(said) + "."


def _difference(lift: Lift) -> str:
    """One arm that differs from what it is compared with."""
    more = "more" if lift.absolute.mean > 0 else "less"
    if lift.metric == "gmv_per_visitor":
        return f"{lift.arm} earns {_size(lift)} {more} per visitor than {lift.against} {_range(lift)}"
    direction = "higher" if lift.absolute.mean > 0 else "lower"
    title = METRICS[lift.metric].title
    return f"{lift.arm}'s {title} is {_size(lift)} {direction} than {lift.against}'s {_range(lift)}"


def _undecided(lifts: Sequence[Lift], metric: Metric) -> str:
    shown = ", ".join(f"{lift.arm} {_percent(lift.relative.mean)} {_range(lift)}" for lift in lifts)
    return f"No arm can be told from {lifts[0].against} by {metric.title} yet: {shown}"


def _mismatch(split: SplitCheck) -> str:
    counts = ", ".join(
        f"{arm} has {users:,} users and should have {share:.1%} of all"
        for arm, users, share in zip(split.arms, split.users, split.expected, strict=True)
    )
    return f"Do not trust these lifts: users are not split between the arms as configured ({counts})."


def _size(lift: Lift) -> str:
    """The size of a lift without its sign: relative, or absolute where there is nothing to relate it to."""
    if math.isfinite(lift.relative.mean):
        return f"{abs(100 * lift.relative.mean):.1f} %"
    return f"{abs(lift.absolute.mean):.4g}"


def _range(lift: Lift) -> str:
    """The interval in brackets, in per cent.

    An end without a bound is said in words.
    """
    low, high = lift.relative.low, lift.relative.high
    if not math.isfinite(high):
        return "(no upper bound yet)" if low <= -1 else f"(at least {100 * low:.1f})"
    return f"({100 * low:.1f} to {100 * high:.1f})"


def _percent(value: float) -> str:
    return f"{100 * value:+.1f} %" if math.isfinite(value) else "has nothing to compare with"
