"""The game with models of sequences as players."""

import math

import pytest

from small import small_split
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit

SPLIT = small_split()
# At the default rate, three epochs move the loss by less than dropout does.
FAST = {"batch_size": 64, "epochs": 3, "embedding_dim": 8, "list_length": 5, "learning_rate": 0.01}
ATTENTION = {"history_length": 5}


@pytest.mark.parametrize("lipschitz", ["max-norm", "gradient-penalty", "frozen", "none"])
def test_three_attention_players(lipschitz: str) -> None:
    players = {"players": "models", "w": "attention", "g": "attention", "lipschitz": lipschitz}
    done = fit(SPLIT, Recipe("attention", "transport", FAST | ATTENTION | players))
    assert done.history[-1]["loss"] < done.history[0]["loss"]
    assert all(math.isfinite(value) for row in done.history for value in row.values())
    assert any(name.startswith("w.scorer.blocks") for name in done.auxiliary_state)


@pytest.mark.parametrize("domain", ["exact", "sampled", "ranking"])
def test_attention_with_margin_players(domain: str) -> None:
    settings = FAST | ATTENTION | {"domain": domain, "pool": 12}
    done = fit(SPLIT, Recipe("attention", "transport", settings))
    assert done.history[-1]["loss"] < done.history[0]["loss"]
    assert 0 < done.history[-1]["ess"] <= 1


@pytest.mark.parametrize(
    ("f", "w", "g"), [("mf", "attention", "attention"), ("attention", "mf", "mf"), ("mf", "attention", "mf")]
)
def test_mixed_players(f: str, w: str, g: str) -> None:
    settings = FAST | (ATTENTION if f == "attention" else {}) | {"players": "models", "w": w, "g": g}
    done = fit(SPLIT, Recipe(f, "transport", settings | {"epochs": 2}))
    assert done.history[-1]["loss"] < done.history[0]["loss"]
    assert done.scorer.history_length == {"mf": 0, "attention": 5}[f]  # f's own, whoever plays next to it
