"""Three fits on one fixed seed still end in the floats that an earlier commit computed.

`floats.json` says which commit, data, seed and settings its numbers come from. A change that moves them on
purpose computes them anew in the same commit, with the reason in its message.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import towpath
from towpath.data.split import Split
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world

STORED: dict[str, Any] = json.loads((Path(__file__).parent / "floats.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def split() -> Split:
    data = STORED["provenance"]["data"]
    return towpath.split(make_latent_world(LatentWorld(**data["world"]), Rng(data["seed"])).log)


def numbers_of(split: Split, fitted: dict[str, Any]) -> dict[str, Any]:
    seed = STORED["provenance"]["seed"]
    done = towpath.fit(split, fitted["model"], fitted["method"], seed, **fitted["settings"])
    weights = {name: p.detach().double() for name, p in done.scorer.named_parameters()}
    return {
        "losses": [row["loss"] for row in done.history],
        "validation_hit": [row["validation_hit"] for row in done.history],
        "ndcg": towpath.evaluate(done, split).metrics()["ndcg"],
        "parameters": {
            name: [float(p.sum()), float(p.square().sum())]
            for name, p in weights.items()
            if not name.endswith(".inputs.bias")  # of keys among others, which a softmax does not see
        },
    }


@pytest.mark.parametrize("label", STORED["fits"])
def test_floats_are_those_of_the_earlier_commit(label: str, split: Split) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        fitted = STORED["fits"][label]
        assert_close(numbers_of(split, fitted), fitted["numbers"], fitted.get("tolerance", 1e-6))
    finally:
        torch.set_num_threads(threads)


def assert_close(found: Any, stored: Any, tolerance: float) -> None:
    """The same form, and numbers within a relative tolerance; of sums that are near zero, an absolute one."""
    if isinstance(stored, dict):
        assert found.keys() == stored.keys()
        for key, value in stored.items():
            assert_close(found[key], value, tolerance)
    else:
        assert found == pytest.approx(stored, rel=tolerance, abs=tolerance / 1000)
