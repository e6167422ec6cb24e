from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contracts import SCORERS
from small_fits import (
    FAST,
    SPLIT,
    TRAINING,
    copied,
    model,
    plainly_trained,
    same_floats_again,
    same_floats_resumed,
    unchanged,
)
from towpath.baselines.adversarial import (
    AdversarialLearner,
    AdversarialSettings,
    PropensityLink,
    adversary_hinge,
)
from towpath.errors import ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.rng import Rng
from towpath.training.batches import Batch
from towpath.training.losses import logistic_loss
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

HARD = {"hard_negatives": 1, "hard_negative_depth": 12}


def learner(training: TrainingSettings = TRAINING, **chosen: object) -> AdversarialLearner:
    ours = AdversarialSettings(**({"warm_epochs": 1} | chosen))
    return AdversarialLearner(TrainingTask(model(), SPLIT.train, training, Rng(0)), ours)


def first_batch(game: AdversarialLearner) -> Batch:
    return next(iter(game._batches.epoch(1, Rng(0))))


@pytest.mark.parametrize("pairs", [{}, HARD, {"pairs": "catalogue"}])
def test_with_every_chance_one_it_is_plain_training_float_for_float(pairs: dict) -> None:
    training = TRAINING.model_copy(update=pairs)
    game = learner(training, min_propensity=1.0)
    rows = [game.epoch(number) for number in (1, 2, 3)]
    assert unchanged(game.scorer, copied(plainly_trained(training)))
    assert [row["propensity"] for row in rows] == [1.0, 1.0, 1.0]


def test_below_one_it_is_something_else() -> None:
    game = learner()
    for number in (1, 2, 3):
        game.epoch(number)
    assert not unchanged(game.scorer, copied(plainly_trained()))


@pytest.mark.parametrize(("effect", "expected"), [("interaction", 0.8 + 0.3), ("additive", 0.8 + 0.15)])
def test_the_link_by_hand(effect: str, expected: float) -> None:
    link = PropensityLink(0.1, effect)
    assert torch.equal(link(torch.tensor([2.0]), torch.tensor([1.0])), torch.sigmoid(torch.tensor([2.0])))
    with torch.no_grad():
        link.line.copy_(torch.tensor([-0.2, 0.5, 0.15]))
    labels = torch.tensor([1.0, 0.0])
    found = link(torch.tensor([2.0, 2.0]), labels)
    torch.testing.assert_close(found, torch.sigmoid(torch.tensor([expected, 0.8])))
    assert link(torch.tensor([-50.0]), labels[:1]).tolist() == pytest.approx([0.1])


@settings(max_examples=50, deadline=None)
@given(
    own=st.floats(0, 20), loss=st.floats(0, 20), chance=st.floats(0.1, 1), fit=st.floats(0, 2),
    margin=st.floats(0, 1),
)  # fmt: skip
def test_the_hinge_is_at_rest_exactly_where_f_loses_enough(
    own: float, loss: float, chance: float, fit: float, margin: float
) -> None:
    g = torch.tensor(own, dtype=torch.float64, requires_grad=True)
    reweighted = torch.tensor(loss / chance, dtype=torch.float64)
    hinge = adversary_hinge(g, reweighted, fit, margin)
    (slope,) = torch.autograd.grad(hinge, g)
    owed = margin + fit * own - loss / chance
    assume(abs(owed) > 1e-9)  # on the edge rounding decides
    assert float(hinge.detach()) == pytest.approx(max(0.0, owed), abs=1e-9)
    assert float(slope) == (fit if owed > 0 else 0)


def test_where_the_hinge_is_inactive_the_adversary_gets_no_gradient() -> None:
    game = learner()
    batch = first_batch(game)
    for losses, moved in ((1e3, False), (0.0, True)):
        scores = game.adversary.score(batch.context, batch.items)
        hinge = game._hinge(scores, batch.labels, torch.full(batch.labels.shape, losses))
        gradients = torch.autograd.grad(hinge.mean(), list(game.adversary.parameters()))
        assert any(bool((g != 0).any()) for g in gradients) is moved
        assert bool((hinge > 0).any()) is moved


def test_the_adversarys_gradient_comes_through_its_own_loss_and_through_the_chances() -> None:
    """d/dg of  margin + fit l(g) - l_f / sigmoid(g)  where the clamp and the hinge are not active."""
    game = learner(hinge_margin=50.0)
    batch = first_batch(game)
    with torch.no_grad():
        losses = logistic_loss(game.scorer.score(batch.context, batch.items), batch.labels)
    scores = game.adversary.score(batch.context, batch.items)
    q = torch.sigmoid(scores)
    by_hand = (0.5 * (q - batch.labels) + losses * (1 - q) / q).detach()
    bias = game.adversary.bias
    (found,) = torch.autograd.grad(game._hinge(scores, batch.labels, losses).sum(), bias)
    torch.testing.assert_close(found, by_hand.sum())


def test_each_move_reaches_its_own_players_only() -> None:
    game = learner()
    batch = first_batch(game)
    modules = {"f": game.scorer, "g": game.adversary, "link": game.link}
    for move, moves in ((game._move_f, {"f", "link"}), (game._move_g, {"g"})):
        before = {name: copied(module) for name, module in modules.items()}
        move(batch)
        for name, module in modules.items():
            assert unchanged(module, before[name]) is (name not in moves), (move, name)
            assert all(p.grad is None for p in module.parameters())


def test_the_adversary_fits_the_feedback_before_f_moves() -> None:
    game = learner(warm_epochs=3)
    batch = first_batch(game)
    before = copied(game.scorer)

    def own_loss() -> float:
        with torch.no_grad():
            scores = game.adversary.score(batch.context, batch.items)
        return float(logistic_loss(scores, batch.labels).mean())

    start = own_loss()
    game._warm_up()
    assert own_loss() < 0.95 * start
    assert unchanged(game.scorer, before)


def test_the_players_do_not_start_from_the_same_numbers() -> None:
    game = learner()
    assert not torch.equal(game.scorer.users.weight, game.adversary.users.weight)


def test_left_to_itself_the_link_raises_the_chances() -> None:
    """The link is on f's side, and one over q is what f pays: what the class warns of."""
    chosen = FAST | {"warm_epochs": 1, "learning_rate_link": 0.3, "learning_rate_g": 1e-6}
    rows = fit(SPLIT, Recipe("mf", "adversarial", chosen)).history
    assert rows[-1]["propensity"] > rows[0]["propensity"] + 0.05


@pytest.mark.parametrize(
    ("f", "g"), [("gmf", ""), ("mf", "attention"), ("attention", "mf"), ("attention", "")]
)
def test_any_model_plays_either_part(f: str, g: str) -> None:
    chosen = SCORERS[f] | {"g": g, "epochs": 1, "warm_epochs": 1, "batch_size": 64}
    result = fit(SPLIT, Recipe(f, "adversarial", chosen))
    assert result.history[0]["loss"] > 0
    assert any(key.startswith("g.") for key in result.auxiliary_state)


def test_an_adversary_that_cannot_read_windows_is_refused() -> None:
    with pytest.raises(ConfigError, match="learns from windows"):
        fit(SPLIT, Recipe("attention", "adversarial", SCORERS["attention"] | {"g": "wide_deep"}))


def test_history_and_players_are_kept() -> None:
    result = fit(SPLIT, Recipe("mf", "adversarial", FAST | {"g": "mf", "label_effect": "additive"}))
    last = result.history[-1]
    assert 0.1 <= last["propensity"] <= 1
    assert 0 <= last["active"] <= 1
    assert last["hinge"] >= 0
    assert {key.split(".")[0] for key in result.auxiliary_state} == {"g", "link"}


def test_same_seed_same_floats_and_resumed_too(tmp_path: Path) -> None:
    chosen = {"warm_epochs": 2, "hard_negatives": 1, "hard_negative_depth": 12}
    assert same_floats_again("adversarial", chosen)
    assert same_floats_resumed("adversarial", chosen, tmp_path)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"g": "ease"}, "g needs a model with parameters to train"),
        ({"g": "mff"}, "did you mean 'mf'"),
        ({"loss": "softmax"}, "softmax"),
        ({"min_propensity": 0}, "min_propensity cannot be 0"),
    ],
)
def test_what_does_not_fit_is_said(chosen: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Recipe("mf", "adversarial", chosen).resolve()
