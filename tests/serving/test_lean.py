"""Lists without torch: the same as those of the recommender, or none."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from small import small_split
from towpath.checksums import MANIFEST, manifest_checksum, rendered
from towpath.errors import ArtifactError
from towpath.files import ARTIFACT_FILES
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.serving.artifact import artifact_of, save_artifact
from towpath.serving.lean import FILES, lean_lists
from towpath.serving.recommender import load

SPLIT = small_split()
USERS = [f"u{n}" for n in range(60)]
# What takes longer to load than the answer takes, or nearly.
HEAVY = ("torch", "pandas", "scipy", "duckdb", "numba", "pydantic", "pyarrow.compute")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    settings = {"mf": {"epochs": 3}, "ease": {"ridge": 7.0}, "ncf": {"epochs": 1}}
    made = {model: tmp_path_factory.mktemp("lean") / model for model in settings}
    for model, folder in made.items():
        save_artifact(artifact_of(fit(SPLIT, Recipe(model, settings=settings[model])), SPLIT), folder)
    return made


@pytest.mark.parametrize("model", ["mf", "ease"])
@pytest.mark.parametrize("filter_seen", [True, False])
def test_lists_are_those_of_the_recommender(folders: dict[str, Path], model: str, filter_seen: bool) -> None:
    answered, full = 0, load(folders[model])
    for user in USERS:
        lean = lean_lists(folders[model], [user], 5, filter_seen=filter_seen)
        if lean is None:
            continue
        answered += 1
        expected = full.recommend(user, 5, filter_seen=filter_seen)
        assert (lean[0].items, lean[0].how) == (expected.items, expected.how)
        assert lean[0].scores == pytest.approx(expected.scores, abs=1e-5)
    assert answered > 30


def test_a_stranger_gets_the_same_fallback_and_a_long_list_ends_where_items_do(
    folders: dict[str, Path],
) -> None:
    full = load(folders["mf"])
    assert lean_lists(folders["mf"], ["nobody"], 7) == [full.recommend("nobody", 7)]
    everything = len(SPLIT.train.item_ids)
    lean = lean_lists(folders["ease"], ["u3"], everything)
    assert lean is None or lean[0].items == load(folders["ease"]).recommend("u3", everything).items


def test_what_it_cannot_do_is_left_to_the_recommender(folders: dict[str, Path], tmp_path: Path) -> None:
    assert lean_lists(folders["ncf"], ["u1"], 3) is None
    assert lean_lists(folders["mf"], ["u1"], 0) is None
    assert lean_lists(tmp_path / "nothing", ["u1"], 3) is None


@pytest.mark.parametrize("damage", ["a byte", "a file", "a key", "a kind", "no files"])
def test_an_artifact_that_is_not_as_usual_is_left_to_the_recommender(
    folders: dict[str, Path], tmp_path: Path, damage: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(folders["mf"], folder)
    assert lean_lists(folder, ["nobody"], 3)
    manifest = json.loads((folder / MANIFEST).read_text())
    if damage == "a byte":
        content = bytearray((folder / "users.parquet").read_bytes())
        content[-1] ^= 1
        (folder / "users.parquet").write_bytes(content)
    elif damage == "a file":
        (folder / "history.safetensors").unlink()
    else:
        manifest |= {"a key": {"settings": 3}, "a kind": {"kind": "split"}, "no files": {"files": {}}}[damage]
        del manifest["checksum"]
        signed = manifest | {"checksum": manifest_checksum(manifest)}
        (folder / MANIFEST).write_text(rendered(signed))
    assert lean_lists(folder, ["nobody"], 3) is None
    with pytest.raises(ArtifactError):
        load(folder)


def test_the_files_are_those_of_every_artifact() -> None:
    assert FILES == ARTIFACT_FILES


def test_scores_that_only_rounding_tells_apart_are_left_to_the_recommender(tmp_path: Path) -> None:
    alike = fit(SPLIT, Recipe("mf", settings={"epochs": 1}))
    alike.scorer.items.weight.data[:] = alike.scorer.items.weight.data[0]
    save_artifact(artifact_of(alike, SPLIT), tmp_path / "alike")
    assert lean_lists(tmp_path / "alike", ["u1"], 3) is None


def test_no_heavy_library_is_loaded(folders: dict[str, Path]) -> None:
    code = (
        "import sys; from pathlib import Path; from towpath.serving.lean import lean_lists\n"
        f"assert lean_lists(Path({str(folders['mf'])!r}), ['nobody'], 3)\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_codes_of_single_ids() -> None:
    ids = SPLIT.train.user_ids
    assert [ids.code(user) for user in USERS] == ids.codes(USERS).tolist()
    assert ids.code("nobody") == -1
    assert ids.id(3) == ids.ids(np.array([3]))[0]
