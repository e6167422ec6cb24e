"""Time and peak memory of a diagnosis: a log of ML-1M size in seconds, 20 million impressions within 4 GB.

python -m benchmarks.diagnosis [--events 1000000 20000000] [--most-gigabytes 4]

A log of impressions with propensities, split at random, and a factorisation with random factors. Everything
that `towpath diagnose` computes is computed, the page included. Peak memory is that of the whole process: the
log itself and the libraries (about .5 GB) are in it.
"""

import argparse
import json
import resource
import sys
import time

import numpy as np
import pyarrow as pa

from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.data.vocabulary import Vocabulary
from towpath.diagnostics.diagnose import diagnose
from towpath.models.registry import build
from towpath.models.scorer import Scorer, sizes_of
from towpath.reports.diagnosis_page import diagnosis_page
from towpath.reports.page import to_html
from towpath.rng import Rng

PER_USER, PER_ITEM = 160, 1000  # impressions


def made_split(events: int) -> Split:
    """Impressions of which a twentieth is clicked: 70 % training, 15 % validation, 15 % test."""
    rng, users, items = Rng(0).numpy("diagnosis"), max(10, events // PER_USER), max(10, events // PER_ITEM)
    what = (rng.random(events, dtype=np.float32) ** 3 * items).astype(np.int32)
    log = Interactions(
        users=np.sort(rng.integers(users, size=events, dtype=np.int32)),
        items=what,
        user_ids=Vocabulary(pa.array(range(users))),
        item_ids=Vocabulary(pa.array(range(items))),
        labels=rng.random(events, dtype=np.float32) < 0.05,
        propensities=np.full(events, 1 / items, dtype=np.float32),
    )
    parts = np.searchsorted([0.7, 0.85], rng.random(events, dtype=np.float32)).astype(np.int8)
    return Split(*(log.where(parts == part).positives for part in range(3)), "at random")


def random_model(split: Split) -> Scorer:
    """A factorisation that nobody has trained."""
    scorer = build("mf", {"embedding_dim": 16}, sizes_of(split.train))
    rng = Rng(1).numpy("model")
    for table in (scorer.users.weight, scorer.items.weight):
        table.data.numpy()[:] = rng.normal(0, 0.3, size=tuple(table.shape))
    return scorer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000, 20_000_000])
    parser.add_argument("--most-gigabytes", type=float, default=4.0)
    options = parser.parse_args()
    for events in sorted(options.events):  # the peak never falls
        split = made_split(events)
        scorer, start, processor = random_model(split), time.perf_counter(), time.process_time()
        found = diagnose(scorer, split)
        to_html(diagnosis_page(found, "benchmark"))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        numbers = {
            "events": events,
            "users": split.train.n_users,
            "items": split.train.n_items,
            "seconds": round(time.perf_counter() - start, 1),
            "processor_seconds": round(time.process_time() - processor, 1),
            "peak_gigabytes": round(peak, 2),
        }
        print(json.dumps(numbers), flush=True)
    if peak > options.most_gigabytes:
        sys.exit(f"over {options.most_gigabytes:g} GB")


if __name__ == "__main__":
    main()
