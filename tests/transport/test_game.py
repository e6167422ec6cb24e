from pathlib import Path

import pytest
import torch

from small import small_split
from towpath.errors import ConfigError, TrainingError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.registry import build
from towpath.models.scorer import Scorer, sizes_of
from towpath.rng import Rng
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask
from towpath.transport.game import TransportLearner
from towpath.transport.settings import TransportSettings

HARD = {"hard_negatives": 1, "hard_negative_depth": 12}

SPLIT = small_split()
TRAINING = TrainingSettings(batch_size=64, epochs=3)
FAST = {"batch_size": 64, "epochs": 3, "embedding_dim": 8, "list_length": 5, "warm_epochs": 1}


def model(seed: int = 0) -> Scorer:
    scorer = build("mf", {"embedding_dim": 8}, sizes_of(SPLIT.train))
    scorer.initialise(SPLIT.train, Rng(seed))
    return scorer


def learner(training: TrainingSettings = TRAINING, **settings: object) -> TransportLearner:
    task = TrainingTask(model(), SPLIT.train, training, Rng(0))
    return TransportLearner(task, TransportSettings(**({"list_length": 5} | settings)))


def copied(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def unchanged(module: torch.nn.Module, before: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


@pytest.mark.parametrize("schedule", ["flat", "nested", "simultaneous"])
@pytest.mark.parametrize("players", ["margin", "models"])
@pytest.mark.parametrize("pairs", [{}, HARD, {"pairs": "catalogue"}])
def test_frozen_weights_without_penalty_are_plain_training_float_for_float(
    schedule: str, players: str, pairs: dict
) -> None:
    training = TRAINING.model_copy(update=pairs)
    game = learner(training, floor=1.0, ceiling=1.0, penalty=0.0, schedule=schedule, players=players)
    plain = PlainLearner(TrainingTask(model(), SPLIT.train, training, Rng(0)))
    for number in (1, 2, 3):
        game.epoch(number)
        plain.epoch(number)
    assert unchanged(game.scorer, copied(plain.scorer))


@pytest.mark.parametrize("players", ["margin", "models"])
def test_each_move_reaches_its_own_player_only(players: str) -> None:
    game = learner(players=players, reweight="all")
    game._deployment.begin_epoch(1, Rng(0))
    batch = next(iter(game._batches.epoch(1, Rng(0))))
    modules = {"f": game.scorer, "w": game.weights, "g": game.critic}
    for mover in "gwf":
        before = {name: copied(module) for name, module in modules.items()}
        scored = game._scored(batch)
        table = game._game_batch(scored)
        assert table.deploys_something
        if mover == "f":
            game._move_f(scored, table, game._weights_of(table))
        else:
            game._move_inner(mover, table)
        for name, module in modules.items():
            trains = name == mover and any(p.requires_grad for p in module.parameters())
            assert unchanged(module, before[name]) is not trains, (mover, name)
            assert all(p.grad is None for p in module.parameters())


VARIANTS = [
    {"players": "margin", "domain": "sampled", "pool": 15},
    {"players": "margin", "domain": "exact", "steps_g": 2},
    {"players": "margin", "domain": "ranking"},
    {"players": "margin", "hard_negatives": 1, "hard_negative_depth": 12},
    {"players": "margin", "relaxation": "soft"},
    {"players": "margin", "relaxation": "soft", "schedule": "simultaneous"},
    {"players": "margin", "measure": "literal"},
    {"players": "margin", "target_distance": 0.5},
    {"players": "margin", "reweight": "all"},
    {"players": "models", "domain": "ranking", "lipschitz": "gradient-penalty"},
    {"players": "models", "lipschitz": "gradient-penalty", "steps_g": 2},
    {"players": "models", "lipschitz": "frozen", "schedule": "nested", "steps_w": 2, "steps_g": 2},
    {
        "players": "models",
        "lipschitz": "none",
        "reweight": "all",
        "fresh": False,
        "steps_w": 2,
    },
    {"players": "models", "w": "mf", "g": "mf", "warm_epochs": 0},
    {"players": "margin", "pairs": "catalogue"},
    {"players": "models", "pairs": "catalogue", "domain": "ranking"},
]


@pytest.mark.parametrize("settings", VARIANTS, ids=lambda s: ",".join(f"{k}={v}" for k, v in s.items()))
def test_every_variant_plays_and_reports_the_game(settings: dict) -> None:
    result = fit(SPLIT, Recipe("mf", "transport", FAST | settings))
    last = result.history[-1]
    assert 0 < last["ess"] <= 1 + 1e-6
    assert last["risk"] > 0
    assert last["lipschitz"] > 0
    assert 0 <= last["reco_negative"] <= 1
    assert all(key.startswith(("w.", "g.")) for key in result.auxiliary_state)
    assert any(key.startswith("w.") for key in result.auxiliary_state)


@pytest.mark.parametrize("players", ["margin", "models"])
def test_same_seed_same_floats(players: str) -> None:
    recipe = Recipe("mf", "transport", FAST | HARD | {"players": players})
    first, again = fit(SPLIT, recipe), fit(SPLIT, recipe)
    assert unchanged(first.scorer, copied(again.scorer))
    assert all(torch.equal(first.auxiliary_state[k], again.auxiliary_state[k]) for k in first.auxiliary_state)


@pytest.mark.parametrize(
    "settings",
    [
        {"players": "margin", "target_distance": 0.5, "domain": "ranking"},
        {"players": "models", "lipschitz": "frozen", "steps_g": 2},
        {"players": "models", "hard_negatives": 1, "hard_negative_depth": 12},
        {"players": "margin", "steps_w": 2},
        {"players": "margin", "schedule": "simultaneous"},
    ],
)
def test_a_resumed_game_reaches_the_same_floats(tmp_path: Path, settings: dict) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    chosen = FAST | settings | {"patience": 9}
    whole = fit(SPLIT, Recipe("mf", "transport", chosen | {"epochs": 5}))
    fit(SPLIT, Recipe("mf", "transport", chosen | {"epochs": 2}), checkpoint=checkpoint)
    resumed = fit(SPLIT, Recipe("mf", "transport", chosen | {"epochs": 5}), checkpoint=checkpoint)
    assert unchanged(whole.scorer, copied(resumed.scorer))
    assert all(
        torch.equal(whole.auxiliary_state[k], resumed.auxiliary_state[k]) for k in whole.auxiliary_state
    )
    assert whole.history[-1]["penalty"] == resumed.history[-1]["penalty"]


@pytest.mark.parametrize("schedule", ["flat", "simultaneous"])
def test_a_tight_target_raises_the_penalty_and_a_loose_one_lowers_it(schedule: str) -> None:
    tight, loose = (
        fit(SPLIT, Recipe("mf", "transport", FAST | {"target_distance": t, "schedule": schedule}))
        for t in (0.0, 100.0)
    )
    assert loose.history[-1]["penalty"] < 1.0 < tight.history[-1]["penalty"]


def test_without_a_penalty_w_flees_and_the_game_is_called_off() -> None:
    """The risk alone rewards w for choosing easy pairs: the paper's `degenerates` without the regulariser."""
    chosen = {
        "penalty": 0,
        "reweight": "all",
        "floor": 0.0,
        "learning_rate_w": 0.5,
        "epochs": 40,
        "negatives": 3,
    }
    with pytest.raises(TrainingError, match=r"w (left the positives|collapsed) in epoch \d+"):
        fit(SPLIT, Recipe("mf", "transport", FAST | chosen | {"players": "models", "patience": 40}, seed=2))


def test_w_moves_towards_what_is_shown() -> None:
    chosen = {"learning_rate_w": 0.1, "floor": 0.2, "ceiling": 5, "epochs": 10, "patience": 10}
    row = fit(SPLIT, Recipe("mf", "transport", FAST | chosen)).history[-1]
    assert row["w_shown"] > 1.2 * row["w_hidden"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"floor": 3, "ceiling": 2}, "floor"),
        ({"domain": "ranking", "relaxation": "soft"}, "no gradient"),
        ({"domain": "sampled", "pool": 3}, "cannot exceed pool"),
        ({"players": "models", "w": "ease"}, "w needs a model with parameters to train"),
        ({"players": "models", "g": "mff"}, "did you mean 'mf'"),
        ({"penality": 1}, "did you mean 'penalty'"),
        ({"hard_negatives": 4, "negatives": 3}, "cannot exceed negatives"),
        ({"warm_epochs": 3}, "none left for the game"),
        ({"list_length": 41}, "cannot be made of 40"),
    ],
)
def test_what_does_not_fit_together_is_said(settings: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        fit(SPLIT, Recipe("mf", "transport", FAST | settings))


def test_a_closed_form_model_cannot_play_f() -> None:
    with pytest.raises(ConfigError, match="closed form"):
        fit(SPLIT, Recipe("ease", "transport", {}))
