"""Golden numbers: popularity on ML-1M, all ratings, last event of each user tests.

Provenance: measured before the first line of this package by other code, mean of four draws of negatives
(raw ids, nothing excluded 43.87/22.96; compact ids, all own items excluded 45.67/25.07; full ranking 3.7).
"""

from pathlib import Path

import pytest

from towpath.data.sources import read
from towpath.data.split import Split, split_leave_last_two
from towpath.evaluation.evaluate import Validator, evaluate
from towpath.evaluation.protocols import raw_items
from towpath.models.popularity import Popularity, PopularitySettings
from towpath.models.scorer import sizes_of
from towpath.ranking.blocks import NOTHING
from towpath.rng import Rng

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not (DATA / "ml-1m.zip").exists(), reason="ml-1m.zip does not lie in ../shared/data next to the project"
)


@pytest.fixture(scope="module")
def split() -> Split:
    return split_leave_last_two(read("ml-1m", data_dir=DATA).interactions)


@pytest.fixture(scope="module")
def popularity(split: Split) -> Popularity:
    scorer = Popularity(PopularitySettings(), sizes_of(split.train))
    scorer.initialise(split.train, Rng(0))
    return scorer


@pytest.mark.parametrize(("protocol", "hit", "ndcg"), [("paper", 43.9, 23.0), ("sampled", 45.7, 25.1)])
def test_sampled_protocols(popularity: Popularity, split: Split, protocol, hit: float, ndcg: float) -> None:
    metrics = evaluate(popularity, split, protocol=protocol).metrics()
    assert 100 * metrics["hit"] == pytest.approx(hit, abs=0.5)
    assert 100 * metrics["ndcg"] == pytest.approx(ndcg, abs=0.5)


def test_full_ranking(popularity: Popularity, split: Split) -> None:
    result = evaluate(popularity, split)
    assert (len(result.users), result.users_left_out) == (6040, 0)
    assert 100 * result.metrics()["hit"] == pytest.approx(3.7, abs=0.2)


def test_raw_ids_hold_246_phantoms(split: Split) -> None:
    raw = raw_items(split.train.item_ids)
    assert (len(raw), int((raw == NOTHING).sum())) == (3952, 246)


def test_validation_of_an_epoch_agrees_with_the_evaluation(popularity: Popularity, split: Split) -> None:
    expected = evaluate(popularity, split, on="validation").metrics()
    assert Validator(split)(popularity) == {name: expected[name] for name in ("hit", "ndcg")}
