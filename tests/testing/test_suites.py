"""The suites find what breaks a contract."""

import pytest
import torch
from torch import Tensor, nn

from towpath.data.interactions import Interactions
from towpath.methods.method import Method
from towpath.models.factorization import Factorization
from towpath.models.popularity import Popularity
from towpath.models.scorer import Context, Settings, Sizes
from towpath.rng import Rng
from towpath.testing import MethodContract, ScorerContract
from towpath.training.learner import Learner
from towpath.training.optimiser import Optimiser
from towpath.training.plain import PlainLearner, PlainSettings
from towpath.training.task import TrainingTask


def broken(suite: type[ScorerContract] | type[MethodContract]) -> list[str]:
    """The laws that a suite says are broken, in the order of the alphabet."""
    found = []
    for name in dir(suite):
        if name.startswith("test_"):
            try:
                getattr(suite(), name)()
            except AssertionError:
                found.append(name.removeprefix("test_"))
    return found


class Forgetful(Popularity):
    """Keeps what it has learned outside of its state."""

    def initialise(self, train: Interactions, rng: Rng) -> None:
        self.learned = torch.from_numpy(train.item_counts).float()

    def score(self, context: Context, items: Tensor) -> Tensor:
        learned = getattr(self, "learned", torch.zeros(self.sizes.items))
        return learned[items].expand(len(context.users), -1)


class Neighbourly(Popularity):
    """Depends on who else is in the batch, and on the order of the items."""

    def score(self, context: Context, items: Tensor) -> Tensor:
        return super().score(context, items).cumsum(1) + len(context.users)


class Unused(Factorization):
    """Has a layer that nothing goes through, and a start that no seed repeats."""

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        self.layer = nn.Linear(3, 3)


class Nearsighted(Popularity):
    """Adds up whatever is in a history, however long it is."""

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        self.history_length = 2

    def score(self, context: Context, items: Tensor) -> Tensor:
        return super().score(context, items) + context.histories.sum(1, keepdim=True)


@pytest.mark.parametrize(
    ("kind", "laws"),
    [
        (Popularity, []),
        (Forgetful, ["it_is_fitted_saved_loaded_and_asked", "state_travels_to_a_fresh_scorer"]),
        (Neighbourly, ["a_batch_scores_like_its_single_users", "the_order_of_candidates_does_not_matter"]),
        (Unused, ["every_parameter_receives_a_gradient", "same_seed_same_floats"]),
        (Nearsighted, ["more_history_than_it_asks_for_changes_no_score"]),
    ],
)
def test_what_is_wrong_with_a_model(kind: type[Popularity], laws: list[str]) -> None:
    class Suite(ScorerContract):
        model = kind

    assert broken(Suite) == laws


class Undeclared(PlainLearner):
    """Does not say that it has an optimiser."""

    def optimisers(self) -> dict[str, Optimiser]:
        return {}


class Meddling(PlainLearner):
    """Makes f look back further than f does."""

    def __init__(self, task: TrainingTask, settings: PlainSettings) -> None:
        task.scorer.history_length = 7
        super().__init__(task)


class Textless(Settings):
    """A setting without a text, which is the fit loop's as well."""

    epochs: int = 3


@pytest.mark.parametrize(
    ("learner", "settings", "laws"),
    [
        (PlainLearner, PlainSettings, []),
        (Undeclared, PlainSettings, ["a_resumed_fit_reaches_the_same_floats"]),
        (Meddling, PlainSettings, ["players_next_to_f_do_not_change_what_f_is"]),
        (PlainLearner, Textless, ["settings_belong_to_one_owner", "settings_have_defaults_and_texts"]),
    ],
)
def test_what_is_wrong_with_a_method(
    learner: type[Learner], settings: type[Settings], laws: list[str]
) -> None:
    class Suite(MethodContract):
        method = Method("own", settings, learner)

    assert broken(Suite) == laws
