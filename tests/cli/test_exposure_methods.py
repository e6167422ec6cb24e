"""ExpoMF, adversarial learning and causal embeddings on the command line, like everything else."""

from pathlib import Path

import pytest

from towpath.serving.artifact import load_artifact

QUICK = ["--set", "epochs=3", "--set", "embedding_dim=4", "--set", "batch_size=512"]


@pytest.mark.parametrize(
    ("method", "players"),
    [("expomf", {"exposure"}), ("adversarial", {"g", "link"}), ("causal-embedding", {"treatment"})],
)
def test_a_baseline_is_fitted_and_recommends(
    method: str, players: set[str], towpath, events: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    told = towpath("fit", events, "--method", method, *QUICK, "--out", out, "--json").json
    assert (told["model"], told["method"], told["epochs"]) == ("mf", method, 3)
    assert {name.split(".")[0] for name in load_artifact(out / "artifact").auxiliary_state} == players
    assert towpath("recommend", out, "--user", "u1", "--json").json["fallback"] is False


def test_g_names_the_adversary(towpath, events: Path, tmp_path: Path) -> None:
    asked = ["--method", "adversarial", "--g", "mf", *QUICK]
    told = towpath("fit", events, *asked, "--out", tmp_path / "run", "--json").json
    assert told["settings"]["g"] == "mf"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["--method", "adversarial", "--w", "mf"], "the method 'adversarial' has no player w"),
        (["--method", "expomf", "--g", "mf"], "the method 'expomf' has no player g"),
        (["--method", "expomf", "--model", "gmf"], "The method 'expomf' trains mf only"),
        (["--method", "causal-embeding"], "did you mean 'causal-embedding'?"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_read(
    asked: list[str], sentence: str, towpath, tmp_path: Path
) -> None:
    assert sentence in towpath("fit", "no-such-file.csv", *asked, "--out", tmp_path / "run").sentence()
