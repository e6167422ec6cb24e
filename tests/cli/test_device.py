"""--device reaches what it is for, and one that is not there is refused before anything is read."""

from pathlib import Path

import pytest
import torch

from pretended_device import pretended_device
from towpath.device import device_of
from towpath.evaluation import evaluate as evaluation
from towpath.serving.run import Run

QUICK = ["--set", "epochs=2", "--set", "embedding_dim=4", "--set", "batch_size=512"]
VERBS = {
    "fit": ["fit", "nothing.csv", "--out", "out"],
    "compare": ["compare", "nothing.csv", "--seeds", "1"],
    "tune": ["tune", "nothing.csv", "--out", "out"],
    "sweep": ["sweep", "nothing.csv", "--setting", "l2", "--values", "0,1", "--out", "out"],
    "evaluate": ["evaluate", "no-run"],
    "recommend": ["recommend", "no-run", "--user", "1"],
    "simulate run": ["simulate", "run", "no-world", "--arms", "plain"],
}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("verb", VERBS)
def test_a_device_that_is_not_there_is_refused_before_anything_is_read(
    verb: str, towpath, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sentence = towpath(*VERBS[verb], "--device", "cuda").sentence()
    assert sentence == "The device 'cuda' was asked for, and torch finds none here; use cpu."
    assert list(tmp_path.iterdir()) == []


def test_a_run_goes_from_device_to_device(events, towpath, tmp_path: Path, monkeypatch) -> None:
    run, seen, score = tmp_path / "run", [], evaluation.score_block

    def watched(scorer, *rest):
        seen.append(device_of(scorer).type)
        return score(scorer, *rest)

    monkeypatch.setattr(evaluation, "score_block", watched)
    with pretended_device(monkeypatch) as name:
        fitted = towpath("fit", events, *QUICK, "--out", run, "--device", name, "--json").json
        assert fitted["epochs"] == 2
        assert set(seen) == {name}
        assert Run(run).record["device"] == name
        there = towpath("evaluate", run, "--device", name, "--json").json
        assert set(seen) == {name}
        asked = ("recommend", run, "--user", "3", "--json")
        lists = [towpath(*asked).json["items"], towpath(*asked, "--device", name).json["items"]]
    here = towpath("evaluate", run, "--json").json
    assert seen[-1] == "cpu"
    assert there["metrics"] == pytest.approx(here["metrics"], abs=0.05)
    one, other = ([item["score"] for item in items] for items in lists)
    assert one == pytest.approx(other, rel=1e-3)
