"""The laws that every method obeys."""

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import torch

from towpath.data.split import Split
from towpath.methods.recipe import Recipe
from towpath.methods.registry import AnyMethod, method_named
from towpath.methods.run import fit
from towpath.models.registry import Model, build, model_type
from towpath.models.scorer import sizes_of
from towpath.rng import Rng
from towpath.testing.data import small_split
from towpath.testing.declared import assert_described, assert_equal, timeless
from towpath.training.fit import EpochMetrics, Fit
from towpath.training.learner import Learner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

_QUICK = {"batch_size": 64, "patience": 9}


class _StoppedError(Exception):
    """Training was interrupted."""


def _stop_after_two(row: EpochMetrics) -> None:
    if row["epoch"] == 2:
        raise _StoppedError


class MethodContract:
    """One test for each law of a method. Extend it, and set `method` to your Method or its registered name.

    `model` is what it trains, and `settings` are those of the recipe that it is tested with.
    """

    method: ClassVar[AnyMethod]
    model: ClassVar[Model] = "mf"
    settings: ClassVar[Mapping[str, Any]] = {"embedding_dim": 8}  # whatever model and method can be set

    def split(self) -> Split:
        """The data that it is tested on."""
        return small_split()

    def recipe(self, epochs: int = 3, seed: int = 0) -> Recipe:
        """What is fitted."""
        return Recipe(self.model, self.method, {**_QUICK, **self.settings, "epochs": epochs}, seed)

    def fitted(self, epochs: int = 3, seed: int = 0) -> Fit:
        """A fit of the recipe."""
        return fit(self.split(), self.recipe(epochs, seed))

    def learner(self, seed: int = 0) -> Learner:
        """The learner before its first epoch."""
        resolved, train = self.recipe(seed=seed).resolve(), self.split().train
        scorer = model_type(self.model)(resolved.model, sizes_of(train))
        scorer.initialise(train, Rng(seed))
        task = TrainingTask(scorer, train, resolved.training, Rng(seed), resolved.plain)
        return method_named(self.method).learner(task, resolved.method)

    # -- what it declares -----------------------------------------------------------------------------------

    def test_settings_have_defaults_and_texts(self) -> None:
        """So that a recipe may leave them out, and the reference can explain them."""
        assert_described(method_named(self.method).settings_type)

    def test_settings_belong_to_one_owner(self) -> None:
        """A recipe is flat: no setting of the method is one of the fit loop or of the model as well."""
        own = set(method_named(self.method).settings_type.model_fields)
        others = set(TrainingSettings.model_fields) | set(model_type(self.model).settings_type.model_fields)
        assert not own & others, f"these settings have two owners: {', '.join(sorted(own & others))}"

    def test_what_it_declares_exists(self) -> None:
        """Defaults, grid and players name settings, and every value of the grid can be."""
        method, recipe = method_named(self.method), self.recipe()
        assert set(method.training) <= set(TrainingSettings.model_fields)
        assert set(method.players) <= set(method.settings_type.model_fields)
        known = set(recipe.resolved()["settings"])
        for name, values in method.grid.items():
            assert name in known, f"the grid names {name}, which is no setting"
            assert len(values) > 0, f"the grid has no value of {name}"

    # -- its learner ----------------------------------------------------------------------------------------

    def test_players_next_to_f_do_not_change_what_f_is(self) -> None:
        """Making a learner leaves f's settings, sizes and history length as they were.

        A method that deploys f with heads of its own on it has f as the `tower` of what it deploys.
        """
        learner, recipe = self.learner(), self.recipe().resolve()
        f = getattr(learner.scorer, "tower", learner.scorer)
        alone = build(self.model, recipe.model.model_dump(), sizes_of(self.split().train))
        assert f.history_length == alone.history_length, "f's history length was changed"
        assert f.settings == alone.settings, "f's settings were changed"

    def test_state_travels_to_a_fresh_learner(self) -> None:
        """All that a learner has learned is in what it declares."""
        first, second = self.learner(), self.learner(seed=1)
        first.epoch(1)
        second.load_state(first.state())
        assert_equal(first.state(), second.state(), "a state and its copy")
        assert_equal(first.auxiliary_state(), second.auxiliary_state(), "players and their copies")

    def test_an_epoch_reports_finite_numbers_and_a_loss(self) -> None:
        """The history is for people to read."""
        row = self.learner().epoch(1)
        assert "loss" in row, "an epoch should report its loss"
        broken = [name for name, value in row.items() if not math.isfinite(value)]
        assert not broken, f"not finite: {', '.join(broken)}"

    # -- its fits -------------------------------------------------------------------------------------------

    def test_same_seed_same_floats(self) -> None:
        """Two fits with one seed agree in everything; another seed gives another fit."""
        one, again, other = self.fitted(), self.fitted(), self.fitted(seed=1)
        assert_equal(one.scorer.state_dict(), again.scorer.state_dict(), "two fits from one seed")
        assert_equal(one.auxiliary_state, again.auxiliary_state, "players of two fits from one seed")
        state, apart = one.scorer.state_dict(), other.scorer.state_dict()
        assert any(not torch.equal(state[key], apart[key]) for key in state), "the seed changes nothing"

    def test_a_resumed_fit_reaches_the_same_floats(self) -> None:
        """A fit that stopped after two of four epochs and went on ends where an undisturbed one ends."""
        whole = self.fitted(epochs=4)
        with TemporaryDirectory() as folder:
            checkpoint = Path(folder) / "checkpoint.safetensors"
            with suppress(_StoppedError):
                fit(self.split(), self.recipe(epochs=4), checkpoint=checkpoint, watch=_stop_after_two)
            resumed = fit(self.split(), self.recipe(epochs=4), checkpoint=checkpoint)
        assert timeless(whole.history) == timeless(resumed.history), "the histories differ"
        assert_equal(whole.scorer.state_dict(), resumed.scorer.state_dict(), "a whole and a resumed fit")
        assert_equal(whole.auxiliary_state, resumed.auxiliary_state, "players of a whole and a resumed fit")

    def test_weights_of_pairs_have_mean_one(self) -> None:
        """A method that learns weights can be asked for them."""
        method, done, resolved = method_named(self.method), self.fitted(), self.recipe().resolve()
        if method.weigh_pairs is None:
            return
        task = TrainingTask(done.scorer, self.split().train, resolved.training, Rng(0))
        pairs = method.weigh_pairs(task, resolved.method, done.auxiliary_state)
        assert len(pairs) > 0, "no pair was weighed"
        mean = float(pairs.weights[pairs.reweight_mask].mean())
        assert math.isclose(mean, 1, rel_tol=1e-6), f"the weights have mean {mean}"
