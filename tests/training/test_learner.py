"""A learner says what it is made of; its state comes from that."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from small import small_split
from towpath.errors import ArtifactError
from towpath.models.registry import build
from towpath.models.scorer import sizes_of
from towpath.rng import Rng
from towpath.training.checkpoint import load_checkpoint
from towpath.training.learner import Learner
from towpath.training.optimiser import Optimiser

TRAIN = small_split().train


class TwoPlayers(Learner):
    """A factorisation, a line next to it, and a number."""

    numbers = ("pressure",)

    def __init__(self, seed: int) -> None:
        self.scorer = build("mf", {"embedding_dim": 2}, sizes_of(TRAIN))
        self.scorer.initialise(TRAIN, Rng(seed))
        self.line = torch.nn.Linear(1, 1)
        self.optimiser = Optimiser([self.line], 0.1)
        self.pressure = 0.1 + seed

    def epoch(self, number: int) -> dict[str, float]:
        self.optimiser.step(self.line(torch.ones(1)).sum())
        self.pressure += 1 / 3
        return {"loss": 0.0}

    def players(self) -> dict[str, torch.nn.Module]:
        return {"line": self.line}

    def optimisers(self) -> dict[str, Optimiser]:
        return {"line": self.optimiser}


def test_a_state_holds_modules_optimisers_and_numbers_and_comes_back() -> None:
    first, second = TwoPlayers(0), TwoPlayers(1)
    first.epoch(1)
    state = first.state()
    assert {key.rsplit(".", 1)[0] for key in state} >= {"module.line", "module.scorer.users", "number"}
    second.load_state(state)
    assert second.pressure == first.pressure  # to the last bit
    again = second.state()
    assert state.keys() == again.keys()
    assert all(torch.equal(value, again[key]) for key, value in state.items())
    for one in (first, second):
        one.epoch(2)
    assert torch.equal(first.line.weight, second.line.weight)


def test_a_state_is_a_copy() -> None:
    learner = TwoPlayers(0)
    before = learner.state()
    kept = {key: value.clone() for key, value in before.items()}
    learner.epoch(1)
    assert all(torch.equal(value, kept[key]) for key, value in before.items())


def test_other_players_than_the_scorer_are_kept_for_analysis() -> None:
    assert set(TwoPlayers(0).auxiliary_state()) == {"line.weight", "line.bias"}


def test_a_checkpoint_of_an_earlier_version_gets_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_file({"learner/scorer.bias": torch.zeros(1)}, path, {"format": "3", "history": "[]"})
    with pytest.raises(
        ArtifactError, match="has format '3', this version reads '4'; delete it to start over"
    ):
        load_checkpoint(path)
