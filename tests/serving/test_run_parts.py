"""A run proves that all of its parts are its own; another run's parts and changed bytes are refused."""

import json
import shutil
from pathlib import Path

import pytest

from small import small_split
from towpath import files
from towpath.errors import ArtifactError
from towpath.files import CHECKSUMS, check_listed, list_checksums, new_file
from towpath.methods.recipe import Recipe
from towpath.serving.run import Plan, Run, open_run

SETTINGS = {"epochs": 2, "embedding_dim": 4}


def made(folder: Path, seed: int = 0, **split) -> Path:
    plan = Plan(small_split(**split), Recipe("mf", "plain", SETTINGS, seed), {"source": "by hand"})
    open_run(folder, plan, resume=False).train(plan)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        "run": made(folder / "run"),
        "other seed": made(folder / "seed", seed=1),
        "other data": made(folder / "data", users=40),
    }


@pytest.fixture
def run(runs: dict[str, Path], tmp_path: Path) -> Path:
    return shutil.copytree(runs["run"], tmp_path / "run")


def use(run: Path) -> None:
    """Everything that a run is asked for."""
    opened = Run(run)
    _ = opened.split, opened.artifact, opened.history
    check_listed(run / "checkpoint.safetensors")


def test_every_file_of_a_run_is_listed(run: Path) -> None:
    listed = json.loads((run / CHECKSUMS).read_text())["files"]
    assert set(listed) == {path.name for path in run.iterdir()} - {CHECKSUMS}
    for part in ("split", "artifact"):
        inside = json.loads((run / part / "manifest.json").read_text())["files"]
        assert set(inside) == {path.name for path in (run / part).iterdir()} - {"manifest.json"}
    use(run)


@pytest.mark.parametrize("other", ["other seed", "other data"])
@pytest.mark.parametrize("part", ["split", "artifact"])
@pytest.mark.parametrize("format_", [1, 2])
def test_a_part_of_another_run_is_refused(
    part: str, other: str, format_: int, run: Path, runs: dict[str, Path]
) -> None:
    if format_ == 1:  # as earlier versions made runs: known by fingerprints only
        record = json.loads((run / "run.json").read_text()) | {"format": 1}
        (run / "run.json").write_text(json.dumps(record))
        (run / CHECKSUMS).unlink()
    shutil.rmtree(run / part)
    shutil.copytree(runs[other] / part, run / part)
    if (part, other) == ("split", "other seed"):
        use(run)  # which is the same split
        return
    with pytest.raises(ArtifactError, match=r"belongs to another run|comes from elsewhere"):
        use(run)


@pytest.mark.parametrize("name", ["run.json", "history.jsonl", "checkpoint.safetensors", CHECKSUMS])
def test_a_changed_byte_is_refused(name: str, run: Path) -> None:
    whole = (run / name).read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 23)):
        (run / name).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        if name == CHECKSUMS and json_of(run / name) == json.loads(whole):
            continue  # white space
        with pytest.raises(ArtifactError):
            use(run)


def json_of(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        return None


def test_a_changed_checkpoint_does_not_resume(run: Path) -> None:
    shutil.rmtree(run / "artifact")
    plan = Plan(small_split(), Recipe("mf", "plain", SETTINGS, 0), {"source": "by hand"})
    path = run / "checkpoint.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ArtifactError, match=r"checkpoint\.safetensors is not what checksums\.json lists"):
        open_run(run, plan, resume=True).train(plan)
    path.write_bytes(whole)
    open_run(run, plan, resume=True).train(plan)
    use(run)


def test_a_run_without_its_list_is_refused(run: Path) -> None:
    (run / CHECKSUMS).unlink()
    with pytest.raises(ArtifactError, match=r"checksums\.json is missing"):
        Run(run)


@pytest.mark.parametrize("text", ["{}", '{"files": 3}', '{"files": {"../x": ["a"]}}', "[" * 100_000, ""])
def test_a_list_of_another_form_is_refused(text: str, run: Path) -> None:
    (run / CHECKSUMS).write_text(text)
    with pytest.raises(ArtifactError):
        use(run)


@pytest.mark.parametrize(
    "record",
    [[], 3, {"format": 2}, {"format": 2, "recipe": 1, "data": {}}, {"format": [2]}, {"format": {"a": 1}}],
)
def test_a_run_json_of_another_form_is_refused(record: object, run: Path) -> None:
    (run / "run.json").write_text(json.dumps(record))
    list_checksums(run)
    with pytest.raises(ArtifactError):
        Run(run)


@pytest.mark.parametrize("row", ["3", "[]", '{"epoch": "x"}', '{"epoch": {}}', "[" * 100_000, "\udcff"])
def test_a_history_of_another_form_is_refused(row: str, run: Path) -> None:
    (run / "history.jsonl").write_bytes(row.encode(errors="surrogateescape"))
    list_checksums(run)
    with pytest.raises(ArtifactError, match=r"history\.jsonl cannot be parsed"):
        _ = Run(run).history


def test_a_process_killed_between_list_and_file_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    list_checksums(tmp_path)
    (tmp_path / ".a.new").write_text("new")
    files._enter(tmp_path, "a", tmp_path / ".a.new")  # what comes just before the rename
    check_listed(tmp_path / "a")
    with new_file(tmp_path / "a") as partial:
        partial.write_text("newer")
    check_listed(tmp_path / "a")
    (tmp_path / "a").write_text("else")
    with pytest.raises(ArtifactError, match="comes from elsewhere"):
        check_listed(tmp_path / "a")
