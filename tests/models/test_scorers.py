"""Laws that every scorer obeys, and what each of the simple ones computes."""

import numpy as np
import pytest
import torch

from contracts import SCORERS
from feature_tables import with_features
from small import small_split
from towpath.data.negatives import NegativeSampler
from towpath.data.split import Split
from towpath.errors import ConfigError
from towpath.models import factorization
from towpath.models.ease import interaction_matrix
from towpath.models.registry import MODELS, build
from towpath.models.scorer import Scorer, Sizes, context_of, sizes_of
from towpath.rng import Rng
from towpath.testing import ScorerContract

SPLIT = with_features(small_split())
SIZES = sizes_of(SPLIT.train)
USERS = np.array([3, 0, 41])
ITEMS = torch.tensor([[5, 1, 9], [0, 39, 2], [7, 7, 8]])


def test_no_model_is_left_out() -> None:
    assert set(SCORERS) == set(MODELS)


def filled(name: str, seed: int = 0) -> Scorer:
    scorer = build(name, SCORERS[name], SIZES)
    scorer.initialise(SPLIT.train, Rng(seed))
    return scorer.eval()  # without dropout


def scores(scorer: Scorer, users: np.ndarray, items: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return scorer.score(context_of(scorer, users, SPLIT.train.histories), items)


class TestEveryModel(ScorerContract):
    """The suite that authors of models get, on data with features."""

    @pytest.fixture(autouse=True, params=SCORERS)
    def _one_model(self, request: pytest.FixtureRequest) -> None:
        self.model, self.settings = request.param, SCORERS[request.param]

    def split(self) -> Split:
        return SPLIT


def test_popularity_counts() -> None:
    counted = scores(filled("popularity"), USERS, torch.arange(SIZES.items)[None])
    assert np.array_equal(counted[0].numpy(), SPLIT.train.item_counts)


def test_ease_meets_the_conditions_of_its_optimum() -> None:
    """Zero diagonal; off the diagonal the gradient X'(X B - X) + ridge B vanishes."""
    ease = filled("ease")
    interacted = torch.zeros(SIZES.users, SIZES.items)
    interacted[SPLIT.train.users, SPLIT.train.items] = 1
    gradient = interacted.T @ (interacted @ ease.weights - interacted) + 10.0 * ease.weights
    off_diagonal = ~torch.eye(SIZES.items, dtype=torch.bool)
    assert ease.weights.diagonal().abs().max() == 0
    assert gradient[off_diagonal].abs().max() < 1e-3


def test_ease_scores_are_the_matrix_product() -> None:
    ease = filled("ease")
    interacted = torch.zeros(SIZES.users, SIZES.items)
    interacted[SPLIT.train.users, SPLIT.train.items] = 1
    expected = (interacted @ ease.weights)[USERS]
    torch.testing.assert_close(scores(ease, USERS, torch.arange(SIZES.items)[None]), expected)


def test_ease_scores_users_without_training_events_at_zero() -> None:
    train = SPLIT.train.where(~np.isin(SPLIT.train.users, [0, 5, SIZES.users - 1]))
    ease = build("ease", {}, SIZES)
    ease.initialise(train, Rng(0))
    users = np.array([5, 3, 0, SIZES.users - 1])
    found = scores(ease, users, torch.arange(SIZES.items)[None])
    assert (found != 0).any(1).tolist() == [False, True, False, False]


def test_ease_refuses_a_catalogue_it_cannot_hold() -> None:
    with pytest.raises(ConfigError, match="30,000"):
        build("ease", {}, Sizes(10, 50_000))


def test_factorization_by_hand() -> None:
    mf = build("mf", {"embedding_dim": 2}, Sizes(1, 2))
    with torch.no_grad():
        mf.users.weight[:] = torch.tensor([[1.0, 2.0, 0.5]])
        mf.items.weight[:] = torch.tensor([[3.0, 4.0, 0.25], [0.0, 1.0, 0.0]])
        mf.bias.fill_(1.0)
    context = context_of(mf, np.array([0]), SPLIT.train.histories)
    assert mf.score(context, torch.tensor([[0, 1]])).tolist() == [[12.75, 3.5]]
    assert mf.score_with_norm(context, torch.tensor([[0, 1]]))[1].tolist() == 18.0


def test_a_start_from_ease_ranks_like_ease_when_wide_enough() -> None:
    """Scale and shift aside, the rank-39 copy of a 60 x 40 matrix is nearly the matrix itself."""
    ease, mf = filled("ease"), build("mf", {"embedding_dim": 39, "start": "ease", "start_ridge": 10.0}, SIZES)
    mf.initialise(SPLIT.train, Rng(0))
    every = torch.arange(SIZES.items)[None]
    copied, original = scores(mf, np.arange(60), every), scores(ease, np.arange(60), every)
    together = torch.corrcoef(torch.stack([copied.flatten(), original.flatten()]))[0, 1]
    assert together > 0.999


def test_a_start_from_the_data_ranks_like_them_when_wide_enough() -> None:
    mf = build("mf", {"embedding_dim": 39, "start": "svd"}, SIZES)
    mf.initialise(SPLIT.train, Rng(0))
    copied = scores(mf, np.arange(60), torch.arange(SIZES.items)[None])
    interacted = torch.from_numpy(interaction_matrix(SPLIT.train).toarray())
    assert torch.corrcoef(torch.stack([copied.flatten(), interacted.flatten()]))[0, 1] > 0.99
    assert copied[interacted == 1].min() > copied[interacted == 0].max()


@pytest.mark.parametrize("start", ["svd", "ease"])
def test_a_start_in_closed_form_is_calibrated(start: str) -> None:
    """Among positives and as many negatives, the mean probability is one half."""
    mf = build("mf", {"embedding_dim": 8, "start": start, "start_ridge": 10.0}, SIZES)
    mf.initialise(SPLIT.train, Rng(0))
    users = SPLIT.train.users.astype(np.int64)
    negative = NegativeSampler(SPLIT.train).sample(users, 1, Rng(5).numpy("n"))
    items = torch.from_numpy(np.column_stack([SPLIT.train.items, negative]))
    assert float(torch.sigmoid(scores(mf, users, items)).mean()) == pytest.approx(0.5, abs=0.03)


def test_a_start_wider_than_the_data_is_filled_with_zeros() -> None:
    mf = build("mf", {"embedding_dim": 100, "start": "ease"}, SIZES)
    mf.initialise(SPLIT.train, Rng(0))
    assert (mf.items.weight[:, 39:] == 0).all()


@pytest.mark.parametrize("available", [True, False])
def test_only_a_machine_without_compiled_loops_is_told_so(
    available: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factorization, "AVAILABLE", available)
    mf = build("mf", {}, SIZES)
    mf.initialise(SPLIT.train, Rng(0))
    assert ["towpath[fast]" in remark for remark in mf.remarks] == ([] if available else [True])


def test_large_tables_get_sparse_gradients() -> None:
    assert build("mf", {}, Sizes(200_000, 10)).users.sparse
    assert not build("mf", {}, Sizes(1_000, 10)).users.sparse


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("mff", {}, "no model 'mff'; did you mean 'mf'"),
        ("mf", {"embeding_dim": 3}, "did you mean 'embedding_dim'"),
        ("mf", {"embedding_dim": "many"}, "embedding_dim cannot be 'many'"),
        ("mf", {"init_std": 0}, "init_std cannot be 0"),
    ],
)
def test_what_does_not_exist_is_said_in_a_sentence(name: str, settings: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        build(name, settings, SIZES)
