"""What another version of Towpath wrote is refused in one sentence, never with a traceback.

Artifacts, runs, splits and searches of another format have tests of their own next to the others about them
(tests/serving/test_artifact.py, tests/cli/test_bad_input.py, tests/data, tests/experiments/test_tune.py).
"""

import json
import re
from pathlib import Path

import pytest
import torch

from towpath.cli import main
from towpath.errors import ArtifactError
from towpath.files import ARTIFACT, PROOFS, Form, list_checksums, read_manifest, write_manifest
from towpath.models.tensors import write_tensors
from towpath.training.checkpoint import load_checkpoint
from towpath.worlds.store import load_world


def test_a_checkpoint_of_another_format(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    write_tensors({"learner/x": torch.zeros(1)}, path, {"format": "0"})
    with pytest.raises(ArtifactError, match=r"has format '0', this version reads '\d+'; delete it") as said:
        load_checkpoint(path)
    assert str(path) in str(said.value)


def test_a_world_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "truth.safetensors").write_bytes(b"")
    write_manifest(tmp_path, Form("world", 0), {}, ["truth.safetensors"])
    with pytest.raises(
        ArtifactError, match=r"has format 0, and this towpath reads format \d+; make it again"
    ):
        load_world(tmp_path)


@pytest.mark.parametrize("command", ["evaluate", "recommend", "report"])
def test_a_run_of_another_format(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text('{"format": 0}')
    (tmp_path / "artifact").mkdir()
    (tmp_path / "artifact" / "manifest.json").write_text('{"kind": "artifact", "format": 0}')
    more = ["--user", "1"] if command == "recommend" else []
    assert main([command, str(tmp_path), *more]) == 2
    (sentence,) = capsys.readouterr().err.strip().splitlines()
    assert re.match(r"towpath: .* format 0, and this towpath reads format \d+; ", sentence)


def test_a_run_with_a_setting_that_has_another_name_now(
    tmp_path: Path, events: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = ["fit", str(events), "--set", "epochs=1", "--out", str(tmp_path / "run")]
    assert main(fit) == 0
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    settings = record["recipe"]["settings"]
    settings["head_negatives"] = settings.pop("hard_negatives")
    (tmp_path / "run" / "run.json").write_text(json.dumps(record))
    artifact = tmp_path / "run" / "artifact"
    manifest = read_manifest(artifact, ARTIFACT)
    about = {key: value for key, value in manifest.items() if key not in PROOFS}
    write_manifest(artifact, ARTIFACT, about | {"recipe": record["recipe"]}, manifest["files"])
    list_checksums(tmp_path / "run")
    capsys.readouterr()
    assert main([*fit, "--resume"]) == 2
    sentence = capsys.readouterr().err.strip().splitlines()[-1]
    assert "was started by another version of towpath (0.1.0), whose settings differ" in sentence
    assert "(hard_negatives, head_negatives)" in sentence
    assert main(["evaluate", str(tmp_path / "run")]) == 0  # the finished model can still be used
