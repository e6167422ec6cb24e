"""Every model, once it has been fitted, written to a folder and read back."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from contracts import SCORERS
from feature_tables import with_features
from small import small_split
from towpath.errors import ConfigError, DataError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.scorer import Scorer, context_of
from towpath.ranking.scoring import inference_mode
from towpath.serving.artifact import Artifact, artifact_of, load_artifact, save_artifact
from towpath.serving.recommender import Recommender

SPLIT = with_features(small_split())
USERS = np.arange(60)
EVERYTHING = torch.arange(40)[None]
NOT_ALIKE = {"popularity"}  # these do not know which items are alike, and say so


def fitted(model: str) -> Artifact:
    settings = {**SCORERS[model], "epochs": 1, "batch_size": 256}
    return artifact_of(fit(SPLIT, Recipe(model, settings=settings)), SPLIT)


once = cache(fitted)


def scores(scorer: Scorer) -> torch.Tensor:
    with inference_mode(scorer):
        return scorer.score(context_of(scorer, USERS, SPLIT.train.histories), EVERYTHING)


@pytest.fixture(params=SCORERS)
def model(request: pytest.FixtureRequest) -> str:
    return request.param


def test_saved_and_loaded_it_scores_the_same(model: str, tmp_path: Path) -> None:
    save_artifact(once(model), tmp_path / "a")
    assert torch.equal(scores(load_artifact(tmp_path / "a").scorer), scores(once(model).scorer))


def test_the_same_seed_fits_the_same_floats(model: str) -> None:
    assert torch.equal(scores(fitted(model).scorer), scores(once(model).scorer))


def test_what_a_user_has_had_is_never_listed(model: str) -> None:
    past = once(model).history.histories
    for code, answer in enumerate(Recommender(once(model)).recommend_many([f"u{n}" for n in USERS], k=28)):
        had = once(model).item_ids.ids(past.items[past.starts[code] : past.starts[code + 1]])
        assert not set(had) & set(answer.items)
        assert len(set(answer.items)) == 28


def test_an_unknown_user_is_served_by_the_fallback(model: str) -> None:
    answer = Recommender(once(model)).recommend("nobody", k=5)
    counts = SPLIT.train.item_counts
    assert answer.fallback
    assert list(answer.scores) == sorted(counts.tolist(), reverse=True)[:5]


def test_an_unknown_item_is_refused(model: str) -> None:
    with pytest.raises(DataError, match="There is no item 'film'"):
        Recommender(once(model)).similar("film")


def test_it_knows_which_items_are_alike_or_says_that_it_does_not(model: str) -> None:
    served = Recommender(once(model))
    if model in NOT_ALIKE:
        with pytest.raises(ConfigError, match="alike"):
            served.similar("i4")
        return
    answer = served.similar("i4", k=39)
    assert set(answer.items) == set(served.artifact.item_ids.ids(np.arange(40))) - {"i4"}
    assert np.isfinite(answer.scores).all()
