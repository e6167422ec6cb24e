"""Off-policy evaluation of whole slates: clicks per request, by one of two readings of how users look."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from towpath.bandit.estimators import Values, effective_sample_size
from towpath.bandit.log import BanditLog, Codes
from towpath.bandit.overlap import AMBER
from towpath.bandit.slates import READINGS, Reading, slate_ips, slate_snips, slate_weights, to_slates
from towpath.errors import DataError, unknown_name
from towpath.rng import Rng
from towpath.stats.estimate import Estimate
from towpath.stats.intervals import RatioRows, betting_interval, bootstrap_interval, normal_interval


@dataclass(frozen=True)
class SlateEvaluation:
    """What the target earns per request; requests count as independent, the rows of one do not."""

    reading: Reading
    requests: int
    positions: int
    ips: Mapping[str, Estimate]  # by interval
    snips: tuple[float, ...]  # by position, self-normalised; their sum is the slate's value
    ess_share: float  # effective sample size at the last position, as a share of the requests

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence if few requests carry the estimate."""
        if self.ess_share >= AMBER:
            return ()
        return (
            f"At the last position the {self.requests:,} requests are worth "
            f"{self.ess_share * self.requests:,.0f} of the target's own ({self.ess_share:.2%}, below "
            f"{AMBER:.0%}), with the {self.reading} reading of slates: its estimates are uncertain.",
        )

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """Values and intervals."""
        return {
            "reading": self.reading,
            "requests": self.requests,
            "positions": self.positions,
            "ess_share": self.ess_share,
            "ips": {
                "value": next(iter(self.ips.values())).mean,
                "intervals": {name: [one.low, one.high] for name, one in self.ips.items()},
            },
            "snips": {"value": sum(self.snips), "by_position": list(self.snips)},
        }


def evaluate_slates(log: BanditLog, weights: Values, reading: Reading, seed: int = 0) -> SlateEvaluation:
    """The value of whole slates from the weights (n,) of the rows of a log whose requests are known."""
    if reading not in READINGS:
        raise unknown_name("reading of slates", reading, READINGS)
    requests = _requests(log, reading)
    shape = (int(requests.max()) + 1, log.n_positions)
    by_slate = to_slates(weights, requests, log.positions, shape, empty=1.0)
    rewards = to_slates(log.rewards, requests, log.positions, shape, empty=0.0)
    # What is not there earns nothing, and nothing is missed by it.
    missed = to_slates(1 - log.rewards, requests, log.positions, shape, empty=0.0)
    found = slate_ips(by_slate, rewards, reading)
    opposite = slate_ips(by_slate, missed, reading).numerator if len(log) == by_slate.size else None
    return SlateEvaluation(
        reading=reading,
        requests=shape[0],
        positions=shape[1],
        ips=_intervals(found, opposite, shape[1], seed),
        snips=tuple(slate_snips(by_slate, rewards, reading).tolist()),
        ess_share=effective_sample_size(slate_weights(by_slate, reading)[:, -1]) / shape[0],
    )


def _intervals(found: RatioRows, opposite: Values | None, most: int, seed: int) -> dict[str, Estimate]:
    """Intervals for clicks per request, which lie within 0 and `most`, one for each position."""
    rng = Rng(seed).numpy("ope", "slates")
    known = None if opposite is None else opposite / most
    share = betting_interval(found.numerator / most, 0.0, np.inf, opposite=known)
    betting = Estimate(found.value, share.low * most, share.high * most, share.n, share.how, share.level)
    kinds = {
        "betting": betting,
        "normal": normal_interval(found.numerator),
        "bootstrap": bootstrap_interval(found, rng),
    }
    return {
        name: Estimate(one.mean, max(0.0, one.low), min(float(most), one.high), one.n, one.how, one.level)
        for name, one in kinds.items()
    }


def _requests(log: BanditLog, reading: Reading) -> Codes:
    """The request of each row, once the rows are known to be slates."""
    if log.requests is None:
        raise DataError("Slates need to know which rows were shown together; name --request-col.")
    if log.n_positions < 2:
        raise DataError("Slates need the position of every row, and this log has one; name --position-col.")
    keys = log.requests * log.n_positions + log.positions
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    if (counts > 1).any():
        row = int(first[counts > 1].min())
        raise DataError(
            f"A request shows one item at each position, but {int((counts > 1).sum()):,} positions have "
            f"several (first: position {log.position_ids[log.positions[row]]!r} of the request in row "
            f"{row + 1:,}); name another --request-col."
        )
    deepest = np.zeros(int(log.requests.max()) + 1, dtype=np.int64)
    np.maximum.at(deepest, log.requests, log.positions)
    gaps = np.flatnonzero(np.bincount(log.requests) != deepest + 1)
    if reading == "cascade" and len(gaps):
        raise DataError(
            f"The cascade reading needs everything above a position, and {len(gaps):,} of {len(deepest):,} "
            "requests have gaps; log whole slates, or use the independent reading."
        )
    return log.requests
