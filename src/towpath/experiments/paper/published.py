"""The numbers that the paper publishes: mean and standard deviation over ten runs, by data set and method.

Hit and NDCG are times 100. Rel is on a scale of its own: on real data no definition of the paper's text gives
its level (docs/deviations/), in simulations it is the relevance summed over the list, or something like it.
Copied as they stand, with one misprint corrected: the deviation of DT-MCF's Hit on LastFM reads (20).
"""

from dataclasses import dataclass

from towpath.stats.estimate import Estimate
from towpath.stats.spread import mean_and_deviation

Number = tuple[float, float]  # mean and standard deviation
_RUNS = 10


@dataclass(frozen=True)
class PublishedRow:
    """The numbers of one method on one data set."""

    rel: Number
    hit: Number
    ndcg: Number


PUBLISHED: dict[str, dict[str, PublishedRow]] = {
    "ml-1m": {
        "Pop": PublishedRow((9.05, 0.02), (43.67, 0.10), (22.73, 0.03)),
        "IPW-MF": PublishedRow((14.00, 0.05), (60.48, 0.12), (31.17, 0.09)),
        "ExpoMF": PublishedRow((14.04, 0.08), (60.21, 0.14), (30.98, 0.10)),
        "AC-MF": PublishedRow((14.05, 0.07), (61.19, 0.11), (31.72, 0.11)),
        "MCF": PublishedRow((14.02, 0.03), (60.27, 0.15), (30.91, 0.11)),
        "DT-MCF": PublishedRow((14.65, 0.07), (61.95, 0.12), (32.83, 0.08)),
        "NCF": PublishedRow((13.77, 0.04), (59.95, 0.13), (31.07, 0.10)),
        "DT-NCF": PublishedRow((13.98, 0.06), (61.17, 0.15), (32.27, 0.07)),
        "Attn": PublishedRow((14.26, 0.10), (72.23, 0.19), (42.48, 0.10)),
        "DT-Attn": PublishedRow((16.32, 0.09), (74.82, 0.24), (43.09, 0.14)),
        "DT-(M/N/N)": PublishedRow((14.55, 0.11), (62.34, 0.20), (32.75, 0.11)),
        "DT-(M/M/N)": PublishedRow((14.63, 0.10), (63.02, 0.21), (33.21, 0.23)),
        "DT-(N/M/M)": PublishedRow((14.52, 0.08), (62.18, 0.19), (32.90, 0.16)),
        "DR-MF": PublishedRow((14.28, 0.12), (61.03, 0.16), (31.97, 0.08)),
        "CE-MF": PublishedRow((14.17, 0.08), (61.22, 0.18), (32.04, 0.07)),
    },
    "ml-1m-simulation": {
        "Pop": PublishedRow((2.85, 0.02), (56.12, 0.07), (29.71, 0.05)),
        "IPW-MF": PublishedRow((3.77, 0.02), (75.02, 0.11), (37.79, 0.06)),
        "ExpoMF": PublishedRow((3.73, 0.03), (74.87, 0.09), (37.86, 0.07)),
        "AC-MF": PublishedRow((3.79, 0.03), (74.98, 0.13), (37.77, 0.07)),
        "MCF": PublishedRow((3.75, 0.02), (75.64, 0.09), (37.70, 0.05)),
        "DT-MCF": PublishedRow((3.98, 0.02), (76.66, 0.12), (38.57, 0.08)),
        "NCF": PublishedRow((3.96, 0.02), (75.69, 0.09), (38.43, 0.05)),
        "DT-NCF": PublishedRow((4.11, 0.03), (76.87, 0.11), (38.72, 0.07)),
        "DT-(M/N/N)": PublishedRow((4.62, 0.03), (79.89, 0.17), (39.98, 0.10)),
        "DT-(M/M/N)": PublishedRow((4.67, 0.02), (79.80, 0.15), (39.94, 0.11)),
        "DT-(N/M/M)": PublishedRow((4.84, 0.04), (79.83, 0.20), (40.57, 0.11)),
        "DR-MF": PublishedRow((3.89, 0.03), (75.99, 0.10), (38.38, 0.07)),
        "CE-MF": PublishedRow((3.91, 0.02), (75.69, 0.12), (38.21, 0.06)),
    },
    "lastfm-2k": {
        "Pop": PublishedRow((1.63, 0.01), (25.22, 0.01), (15.35, 0.01)),
        "IPW-MF": PublishedRow((6.41, 0.04), (79.21, 0.31), (50.63, 0.19)),
        "ExpoMF": PublishedRow((6.44, 0.03), (79.62, 0.27), (50.76, 0.22)),
        "AC-MF": PublishedRow((6.48, 0.03), (79.64, 0.22), (51.05, 0.19)),
        "MCF": PublishedRow((6.38, 0.03), (79.02, 0.22), (50.06, 0.13)),
        "DT-MCF": PublishedRow((6.59, 0.02), (81.81, 0.20), (52.96, 0.14)),
        "NCF": PublishedRow((6.20, 0.05), (77.20, 0.35), (50.55, 0.18)),
        "DT-NCF": PublishedRow((6.56, 0.04), (80.83, 0.33), (52.03, 0.26)),
        "Attn": PublishedRow((5.71, 0.04), (67.48, 0.35), (56.12, 0.22)),
        "DT-Attn": PublishedRow((5.82, 0.05), (68.74, 0.37), (56.60, 0.19)),
        "DT-(M/N/N)": PublishedRow((6.53, 0.06), (81.09, 0.33), (52.05, 0.18)),
        "DT-(N/M/M)": PublishedRow((6.38, 0.07), (78.96, 0.31), (51.37, 0.20)),
    },
    # The Attn columns are, digit for digit, ExpoMF and AC-MF of the simulation below: one of them is a copy.
    "goodreads": {
        "Pop": PublishedRow((4.98, 0.01), (43.37, 0.06), (26.16, 0.03)),
        "IPW-MF": PublishedRow((5.94, 0.08), (59.04, 0.10), (35.19, 0.07)),
        "ExpoMF": PublishedRow((5.93, 0.10), (59.28, 0.14), (35.22, 0.08)),
        "AC-MF": PublishedRow((5.97, 0.07), (59.33, 0.12), (35.45, 0.11)),
        "MCF": PublishedRow((5.90, 0.08), (58.32, 0.12), (34.69, 0.10)),
        "DT-MCF": PublishedRow((6.14, 0.07), (60.95, 0.11), (36.45, 0.09)),
        "NCF": PublishedRow((5.84, 0.02), (58.07, 0.04), (34.90, 0.02)),
        "DT-NCF": PublishedRow((6.07, 0.09), (59.73, 0.34), (36.27, 0.15)),
        "Attn": PublishedRow((4.57, 0.04), (48.97, 0.26), (25.76, 0.17)),
        "DT-Attn": PublishedRow((4.68, 0.10), (49.30, 0.25), (26.04, 0.13)),
        "DT-(M/N/N)": PublishedRow((5.92, 0.04), (58.48, 0.22), (30.32, 0.17)),
        "DT-(N/M/M)": PublishedRow((6.28, 0.05), (61.64, 0.30), (36.32, 0.22)),
    },
    # The Hit of both mixes is that of ExpoMF and AC-MF.
    "goodreads-simulation": {
        "Pop": PublishedRow((4.34, 0.02), (42.75, 0.04), (23.20, 0.02)),
        "IPW-MF": PublishedRow((4.62, 0.09), (49.22, 0.34), (25.91, 0.15)),
        "ExpoMF": PublishedRow((4.57, 0.04), (48.97, 0.26), (25.76, 0.17)),
        "AC-MF": PublishedRow((4.68, 0.10), (49.30, 0.25), (26.04, 0.13)),
        "MCF": PublishedRow((4.56, 0.06), (48.06, 0.25), (25.25, 0.15)),
        "DT-MCF": PublishedRow((4.78, 0.06), (49.94, 0.21), (26.72, 0.12)),
        "NCF": PublishedRow((4.99, 0.05), (52.47, 0.18), (28.17, 0.11)),
        "DT-NCF": PublishedRow((5.13, 0.07), (52.96, 0.21), (29.78, 0.13)),
        "DT-(M/N/N)": PublishedRow((4.65, 0.04), (48.97, 0.26), (25.88, 0.14)),
        "DT-(N/M/M)": PublishedRow((4.95, 0.06), (49.30, 0.25), (28.61, 0.13)),
    },
}

# Offline, before its online test: relative lifts over the control in per cent, at 20, on a log of its own.
PUBLISHED_LIFTS: dict[str, dict[str, float]] = {
    "IPW-D&W": {"recall": 0.23, "ndcg": 0.06},
    "DT-D&W": {"recall": 0.56, "ndcg": 0.09},
}


def published_value(benchmark: str, column: str, metric: str) -> Estimate | None:
    """Mean ± standard deviation over ten runs in the paper; None where it has none."""
    row = PUBLISHED.get(benchmark, {}).get(column)
    number: Number | None = None if row is None else getattr(row, metric, None)
    return None if number is None else mean_and_deviation(*number, n=_RUNS)


def published_difference(benchmark: str, pair: tuple[str, str], metric: str) -> float | None:
    """How much higher the first of the pair is than the second in the paper; None where one is not there."""
    one, other = (published_value(benchmark, column, metric) for column in pair)
    return None if one is None or other is None else one.mean - other.mean
