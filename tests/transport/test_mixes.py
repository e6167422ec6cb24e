"""Every trainable model plays f, w and g; the mixes of the paper by name."""

from itertools import product

import pytest
import torch

from contracts import SCORERS
from feature_tables import with_features
from small import small_split
from towpath.errors import ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.registry import build, is_trainable
from towpath.models.scorer import sizes_of
from towpath.rng import Rng
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask
from towpath.transport.game import TransportLearner
from towpath.transport.settings import TransportSettings

SPLIT = with_features(small_split(users=16, items=20, per_user=8))
SIZES = sizes_of(SPLIT.train)
TRAINABLE = [name for name in SCORERS if is_trainable(name)]
# The paper's letters: M for matrix factorisation, N for neural collaborative filtering, Attn for attention.
LETTERS = {"M": "mf", "N": "ncf", "Attn": "attention"}
MIXES = ["M/N/N", "M/M/N", "N/M/M", "Attn/Attn/Attn"]
# One epoch of the game proper, on a few batches.
QUICK = {"batch_size": 48, "epochs": 2, "warm_epochs": 1, "list_length": 5, "pool": 15}


def played(f: str, w: str, g: str, **settings: object) -> TransportLearner:
    """The game of these three after its first epoch."""
    scorer = build(f, SCORERS[f], SIZES)
    scorer.initialise(SPLIT.train, Rng(0))
    game = TransportLearner(
        TrainingTask(scorer, SPLIT.train, TrainingSettings(batch_size=48), Rng(0)),
        TransportSettings(players="models", w=w, g=g, list_length=5, warm_epochs=0, **settings),
    )
    game.epoch(1)
    return game


def moved(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> bool:
    return any(not torch.equal(value, after[key]) for key, value in before.items())


@pytest.mark.parametrize(("f", "w", "g"), list(product(TRAINABLE, repeat=3)))
def test_every_model_plays_every_part(f: str, w: str, g: str) -> None:
    start = build(f, SCORERS[f], SIZES)
    start.initialise(SPLIT.train, Rng(0))
    game = played(f, w, g)
    assert moved(start.state_dict(), game.scorer.state_dict())
    assert all(torch.isfinite(value).all() for value in game.state().values())


@pytest.mark.parametrize("mix", MIXES)
def test_the_papers_mixes_train_and_serve_f_alone(mix: str) -> None:
    f, w, g = (LETTERS[letter] for letter in mix.split("/"))
    assert {f, w, g} <= set(TRAINABLE)
    settings = {**SCORERS[f], **QUICK, "players": "models", "w": w, "g": g}
    done = fit(SPLIT, Recipe(f, "transport", settings))
    assert len(done.history) == 2
    assert {"lipschitz", "penalty"} <= set(done.history[-1])  # the last epoch was one of the game
    assert {key.split(".")[0] for key in done.auxiliary_state} == {"w", "g"}


@pytest.mark.parametrize("lipschitz", ["max-norm", "gradient-penalty", "none"])
@pytest.mark.parametrize("g", TRAINABLE)
def test_every_control_holds_every_critic(lipschitz: str, g: str) -> None:
    game = played("mf", "mf", g, lipschitz=lipschitz, row_norm=0.5)
    assert all(torch.isfinite(value).all() for value in game.auxiliary_state().values())
    tables = [m for m in game.critic.modules() if isinstance(m, torch.nn.Embedding)]
    assert tables
    if lipschitz == "max-norm":
        assert max(float(t.weight.detach().norm(dim=1).max()) for t in tables) <= 0.5 + 1e-4


@pytest.mark.parametrize("f", TRAINABLE)
def test_a_frozen_critic_stands_on_the_vectors_of_any_f(f: str) -> None:
    game = played(f, "mf", "", lipschitz="frozen")
    assert all(torch.isfinite(value).all() for value in game.auxiliary_state().values())


def test_what_is_learned_in_one_go_plays_no_part() -> None:
    with pytest.raises(ConfigError, match="sgns is learned in one go"):
        played("mf", "mf", "sgns")


def test_a_critic_model_resumes_to_the_same_floats() -> None:
    whole, parted = (played("mf", "ncf", "ncf", lipschitz="max-norm") for _ in range(2))
    other = played("mf", "ncf", "ncf", lipschitz="max-norm")
    other.epoch(2)
    other.load_state(parted.state())
    for game in (whole, other):
        game.epoch(2)
    assert not moved(whole.state(), other.state())
