"""What only some models can do is asked of the model itself; who cannot says so in a sentence."""

import numpy as np
import pytest
import torch

from contracts import SCORERS
from feature_tables import with_features
from fixed_scorers import Fixed
from small import small_split
from towpath.errors import ConfigError
from towpath.models import capabilities
from towpath.models.capabilities import (
    HasFactors,
    HasItemSimilarity,
    HasManualBackward,
    HasPairFeatures,
    HasParameterRates,
    HasSquaredNorm,
    NeedsPretraining,
    manual_backward,
    score_with_norm,
)
from towpath.models.registry import build
from towpath.models.scorer import Scorer, context_of, sizes_of
from towpath.training.optimiser import Optimiser

TRAIN = with_features(small_split()).train
WHO = {
    HasSquaredNorm: {"mf", "gmf", "mlp", "ncf", "headed", "wide_deep"},
    HasManualBackward: {"mf"},
    HasParameterRates: {"mf", "gmf", "mlp", "headed", "wide_deep"},
    HasFactors: {"mf", "gmf", "sgns", "attention"},
    HasPairFeatures: {"mf", "gmf", "mlp", "ncf", "attention", "headed", "wide_deep"},
    HasItemSimilarity: set(SCORERS) - {"popularity"},
    NeedsPretraining: {"ncf", "headed"},
}


@pytest.mark.parametrize("capability", WHO, ids=lambda capability: capability.__name__)
def test_who_can_do_what(capability: type) -> None:
    models = {name: build(name, SCORERS[name], sizes_of(TRAIN)) for name in SCORERS}
    assert {name for name, model in models.items() if isinstance(model, capability)} == WHO[capability]


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        ("with_factors", "Fixed does not score by inner products; use loss=logistic"),
        ("with_pair_features", "Fixed has no vectors for pairs"),
        ("with_item_similarity", "Fixed does not know which items are alike"),
    ],
)
def test_who_cannot_says_so(ask: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        getattr(capabilities, ask)(Fixed(torch.zeros(2, 3)))


def test_a_model_that_can_only_score_has_no_norm_no_gradients_and_no_rates() -> None:
    fixed: Scorer = Fixed(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    context, items = context_of(fixed, np.array([1]), TRAIN.histories), torch.tensor([[1, 0]])
    scores, norm = score_with_norm(fixed, context, items)
    assert (scores.tolist(), norm.tolist()) == ([[4.0, 3.0]], 0.0)
    assert manual_backward(fixed, context, items) is None
    assert Optimiser([fixed], 0.1).state() == {}
