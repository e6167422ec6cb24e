"""The laws that every model obeys."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from towpath.data.interactions import PADDING
from towpath.data.split import Split
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.capabilities import (
    HasFactors,
    HasItemSimilarity,
    HasManualBackward,
    HasPairFeatures,
    HasParameterRates,
    HasSquaredNorm,
)
from towpath.models.registry import Model, build, depends_on_seed, is_trainable, model_type
from towpath.models.scorer import Context, Scorer, context_of, sizes_of
from towpath.rng import Rng
from towpath.serving.artifact import artifact_of, load_artifact, save_artifact
from towpath.serving.recommender import Recommender
from towpath.testing.data import small_split
from towpath.testing.declared import assert_described, assert_equal

_USERS = np.array([3, 0, 41])
_ITEMS = torch.tensor([[5, 1, 9], [0, 39, 2], [7, 7, 8]])


class ScorerContract:
    """One test for each law of a model. Extend it, and set `model` to your class or its registered name.

    `settings` are those under which it is tested. The data have at least 42 users and 40 items.
    """

    model: ClassVar[Model]
    settings: ClassVar[Mapping[str, Any]] = {}  # whatever the model's settings are

    def split(self) -> Split:
        """The data that it is tested on."""
        return small_split()

    def filled(self, seed: int = 0) -> Scorer:
        """The model after its start, in evaluation mode."""
        train = self.split().train
        scorer = build(self.model, self.settings, sizes_of(train))
        scorer.initialise(train, Rng(seed))
        return scorer.eval()

    def context(self, scorer: Scorer, users: NDArray[np.int64] = _USERS) -> Context:
        """What the model sees of these users."""
        return context_of(scorer, users, self.split().train.histories)

    def scores(self, scorer: Scorer, users: NDArray[np.int64], items: Tensor) -> Tensor:
        """Scores without gradients."""
        with torch.no_grad():
            return scorer.score(self.context(scorer, users), items)

    # -- settings and start ---------------------------------------------------------------------------------

    def test_settings_have_defaults_and_texts(self) -> None:
        """So that a recipe may leave them out, and the reference can explain them."""
        assert_described(model_type(self.model).settings_type)

    def test_same_seed_same_floats(self) -> None:
        """A start is repeated by its seed, so nothing is drawn from a global generator."""
        assert_equal(self.filled(7).state_dict(), self.filled(7).state_dict(), "two starts from one seed")

    def test_another_seed_is_another_start_unless_nothing_is_drawn(self) -> None:
        """A model that draws without having parameters to train says so (`needs_seed`)."""
        first, second = self.filled(7).state_dict(), self.filled(8).state_dict()
        differs = any(not torch.equal(first[key], second[key]) for key in first)
        assert depends_on_seed(self.model) is differs, "needs_seed does not say whether the start is drawn"

    # -- scores ---------------------------------------------------------------------------------------------

    def test_scores_are_finite_and_in_shape(self) -> None:
        """(b, k) for candidates of each user's own, and for the same ones for everyone."""
        scorer = self.filled()
        for items in (_ITEMS, _ITEMS[:1]):
            found = self.scores(scorer, _USERS, items)
            assert found.shape == (3, 3), f"scores of items {tuple(items.shape)} are {tuple(found.shape)}"
            assert torch.isfinite(found).all(), "some scores are not finite"

    def test_a_batch_scores_like_its_single_users(self) -> None:
        """Who else is in a batch does not matter."""
        scorer = self.filled()
        alone = [self.scores(scorer, _USERS[n : n + 1], _ITEMS[n : n + 1]) for n in range(3)]
        torch.testing.assert_close(self.scores(scorer, _USERS, _ITEMS), torch.cat(alone))

    def test_the_same_candidates_for_everyone_equal_repeated_ones(self) -> None:
        """Items (1, k) stand for the same k items in every row."""
        scorer = self.filled()
        repeated = self.scores(scorer, _USERS, _ITEMS[:1].expand(3, -1))
        torch.testing.assert_close(self.scores(scorer, _USERS, _ITEMS[:1]), repeated)

    def test_the_order_of_candidates_does_not_matter(self) -> None:
        """Each item has its own score."""
        scorer = self.filled()
        backward = self.scores(scorer, _USERS, _ITEMS.flip(1))
        torch.testing.assert_close(self.scores(scorer, _USERS, _ITEMS), backward.flip(1))

    def test_more_history_than_it_asks_for_changes_no_score(self) -> None:
        """Next to a player that looks back further, it finds longer histories in a batch."""
        scorer, histories = self.filled(), self.split().train.histories
        longer = context_of(scorer, _USERS, histories, scorer.history_length + 3)
        with torch.no_grad():
            torch.testing.assert_close(scorer.score(longer, _ITEMS), self.scores(scorer, _USERS, _ITEMS))

    def test_a_user_without_a_history_gets_finite_scores(self) -> None:
        """Histories may be padding throughout."""
        scorer = self.filled()
        nothing = torch.full((3, scorer.history_length), PADDING)
        with torch.no_grad():
            found = scorer.score(Context(torch.from_numpy(_USERS), nothing), _ITEMS)
        assert torch.isfinite(found).all(), "some scores are not finite"

    # -- training -------------------------------------------------------------------------------------------

    def test_every_parameter_receives_a_gradient(self) -> None:
        """An output layer that was forgotten stays at its random start, and nothing else would tell."""
        scorer, sizes = self.filled(), sizes_of(self.split().train)
        context = self.context(scorer, np.arange(sizes.users))
        value = scorer.score(context, torch.arange(sizes.items)[None]).square().sum()
        named = {name: p for name, p in scorer.named_parameters() if p.requires_grad}
        assert bool(named) is is_trainable(self.model), "its parameters depend on the settings"
        found = torch.autograd.grad(value, list(named.values()), allow_unused=True) if named else ()
        without = [n for n, g in zip(named, found, strict=True) if g is None or not g.to_dense().any()]
        assert not without, f"no gradient reaches {', '.join(without)}"

    def test_listening_to_the_look_ups_changes_no_score(self) -> None:
        """Critics are asked for gradients by hooks on the tables, which may turn fused kernels off."""
        scorer = self.filled()
        plain = self.scores(scorer, _USERS, _ITEMS)
        for table in [m for m in scorer.modules() if isinstance(m, nn.Embedding)]:
            table.register_forward_hook(lambda module, inputs, output: None)
        torch.testing.assert_close(self.scores(scorer, _USERS, _ITEMS), plain)

    def test_it_is_fitted_saved_loaded_and_asked(self) -> None:
        """One epoch, a folder and back: the same lists."""
        settings = {**self.settings, "epochs": 1, "batch_size": 256}
        split = self.split()
        artifact = artifact_of(fit(split, Recipe(self.model, settings=settings)), split)
        with TemporaryDirectory() as folder:
            save_artifact(artifact, Path(folder) / "model")
            loaded = load_artifact(Path(folder) / "model", models=[model_type(self.model)])
        assert_equal(artifact.scorer.state_dict(), loaded.scorer.state_dict(), "saved and loaded parameters")
        user = artifact.user_ids.ids(np.array([3]))[0]
        assert Recommender(loaded).recommend(user, 5) == Recommender(artifact).recommend(user, 5)

    def test_state_travels_to_a_fresh_scorer(self) -> None:
        """All that scores depend on is in the state."""
        scorer = self.filled()
        other = build(self.model, self.settings, scorer.sizes).eval()
        other.load_state_dict(scorer.state_dict())
        moved, stayed = (self.scores(s, _USERS, _ITEMS) for s in (other, scorer))
        assert torch.equal(moved, stayed), "a fresh scorer with the same state scores otherwise"

    # -- capabilities ---------------------------------------------------------------------------------------

    def test_scores_with_a_norm_are_the_scores(self) -> None:
        """HasSquaredNorm."""
        scorer = self.filled()
        if isinstance(scorer, HasSquaredNorm):
            context = self.context(scorer)
            with_norm, norm = scorer.score_with_norm(context, _ITEMS)
            torch.testing.assert_close(with_norm, scorer.score(context, _ITEMS))
            assert norm.shape == (), "the norm is one number"
            assert norm >= 0, "the norm is negative"

    def test_gradients_that_it_knows_are_those_of_autograd(self) -> None:
        """HasManualBackward."""
        scorer = self.filled()
        context = self.context(scorer)
        if not isinstance(scorer, HasManualBackward) or not scorer.has_manual_backward(context, _ITEMS):
            return
        slopes = torch.linspace(-1, 2, _ITEMS.numel()).view(_ITEMS.shape)
        known = scorer.gradients(context, _ITEMS, slopes, 0.3)
        parameters = list(scorer.parameters())
        scores, norm = scorer.score_with_norm(context, _ITEMS)
        found = torch.autograd.grad((scores * slopes).sum() + 0.3 * norm, parameters, allow_unused=True)
        reached = {p: g for p, g in zip(parameters, found, strict=True) if g is not None}
        assert known.keys() == reached.keys(), "it knows other gradients than autograd finds"
        for parameter, gradient in reached.items():
            torch.testing.assert_close(known[parameter], gradient)

    def test_rates_name_parameters(self) -> None:
        """HasParameterRates."""
        scorer = self.filled()
        if isinstance(scorer, HasParameterRates):
            unknown = set(scorer.rates()) - set(dict(scorer.named_parameters()))
            assert not unknown, f"rates names what is no parameter: {', '.join(sorted(unknown))}"

    def test_factors_give_the_scores(self) -> None:
        """HasFactors."""
        scorer = self.filled()
        if isinstance(scorer, HasFactors):
            with torch.no_grad():
                states, table = scorer.factors(self.context(scorer))
                every = torch.arange(scorer.sizes.items)[None]
                torch.testing.assert_close(states @ table.T, self.scores(scorer, _USERS, every))

    def test_pairs_and_items_have_their_vectors_in_shape(self) -> None:
        """HasPairFeatures and HasItemSimilarity."""
        scorer = self.filled()
        with torch.no_grad():
            if isinstance(scorer, HasPairFeatures):
                found = scorer.pair_features(self.context(scorer), _ITEMS)
                assert found.shape[:2] == _ITEMS.shape, f"pair_features are {tuple(found.shape)}"
                assert found.dim() == 3, f"pair_features are {tuple(found.shape)}, not (b, k, p)"
            if isinstance(scorer, HasItemSimilarity):
                alike = scorer.item_similarity(torch.tensor([4, 7])).shape
                assert alike == (2, scorer.sizes.items), f"item_similarity is {tuple(alike)}"
