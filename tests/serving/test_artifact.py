"""An artifact comes back as it went in, or not at all."""

import json
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts import SCORERS
from fixed_scorers import Fixed
from small import small_split
from towpath.data.vocabulary import Vocabulary
from towpath.errors import ArtifactError
from towpath.files import ARTIFACT, PROOFS, Form, read_manifest, write_manifest
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.popularity import Popularity
from towpath.models.scorer import Context
from towpath.serving.artifact import (
    FILES,
    PLAYERS,
    Artifact,
    artifact_of,
    load_artifact,
    save_artifact,
    serving_history_of,
)


def an_artifact(model: str = "ease") -> Artifact:
    split = small_split()
    quick = {"epochs": 2}
    return artifact_of(fit(split, Recipe(model, settings={**SCORERS[model], **quick})), split)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_artifact(an_artifact(), tmp_path / "artifact")
    return tmp_path / "artifact"


@pytest.mark.parametrize("model", SCORERS)
def test_every_model_comes_back_with_the_same_floats(model: str, tmp_path: Path) -> None:
    stored = an_artifact(model)
    save_artifact(stored, tmp_path / "a")
    loaded = load_artifact(tmp_path / "a")
    assert type(loaded.scorer) is type(stored.scorer)
    assert loaded.scorer.settings == stored.scorer.settings
    for name, tensor in stored.scorer.state_dict().items():
        assert torch.equal(loaded.scorer.state_dict()[name], tensor)
    assert loaded.user_ids == stored.user_ids
    assert loaded.item_ids == stored.item_ids
    for part in ("starts", "items"):
        assert np.array_equal(
            getattr(loaded.history.histories, part), getattr(stored.history.histories, part)
        )
    assert np.array_equal(loaded.history.trained, stored.history.trained)
    assert np.array_equal(loaded.history.item_counts, stored.history.item_counts)
    assert {key: loaded.about[key] for key in stored.about} == stored.about


@pytest.fixture(scope="module", params=["margin", "models"])
def game(request: pytest.FixtureRequest) -> Artifact:
    split = small_split()
    quick = {"epochs": 3, "embedding_dim": 4, "batch_size": 64, "list_length": 5, "players": request.param}
    return artifact_of(fit(split, Recipe("mf", "transport", quick)), split)


def test_players_come_back_next_to_the_scorer_and_change_nothing_about_it(
    game: Artifact, tmp_path: Path
) -> None:
    save_artifact(game, tmp_path / "a")
    loaded = load_artifact(tmp_path / "a")
    assert "w.line" in loaded.auxiliary_state or {"w.scorer", "g.scorer"} <= {
        name.rsplit(".", 2)[0] for name in loaded.auxiliary_state
    }
    assert loaded.auxiliary_state.keys() == game.auxiliary_state.keys()
    assert all(
        torch.equal(loaded.auxiliary_state[name], tensor) for name, tensor in game.auxiliary_state.items()
    )
    save_artifact(replace(game, auxiliary_state={}), tmp_path / "f alone")
    assert not (tmp_path / "f alone" / PLAYERS).exists()
    assert load_artifact(tmp_path / "f alone").auxiliary_state == {}
    one, other = (tmp_path / name / "model.safetensors" for name in ("a", "f alone"))
    assert one.read_bytes() == other.read_bytes()


def test_changed_players_are_refused(game: Artifact, tmp_path: Path) -> None:
    save_artifact(game, tmp_path / "a")
    whole = (tmp_path / "a" / PLAYERS).read_bytes()
    (tmp_path / "a" / PLAYERS).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ArtifactError, match=r"players\.safetensors does not match its checksum"):
        load_artifact(tmp_path / "a")
    (tmp_path / "a" / PLAYERS).unlink()
    with pytest.raises(ArtifactError, match=r"players\.safetensors is missing"):
        load_artifact(tmp_path / "a")


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([3, 1, 2]),
        pa.array(["007", "7", "ä"]),
        pa.array([date(2020, 1, 1), date(2021, 1, 1), date(2019, 1, 1)]),
        pa.array([UUID(int=n).bytes for n in range(3)], pa.binary(16)),
    ],
    ids=["int", "text", "date", "bytes"],
)
def test_ids_of_any_type_come_back_unchanged(ids: pa.Array, tmp_path: Path) -> None:
    plain = an_artifact("popularity")
    save_artifact(Artifact(plain.scorer, Vocabulary(ids), plain.item_ids, plain.history, {}), tmp_path / "a")
    # Sizes are those of the vocabulary; popularity does not depend on the number of users.
    assert load_artifact(tmp_path / "a").user_ids.values.equals(ids)


def test_writing_twice_gives_the_same_bytes_and_replaces(folder: Path) -> None:
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    save_artifact(an_artifact(), folder)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert [p.name for p in folder.parent.iterdir()] == ["artifact"]


def test_all_files_may_be_read_by_whom_a_new_file_may_be_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    modes = {file.name: file.stat().st_mode for file in folder.iterdir()}
    assert set(modes.values()) == {(tmp_path / "new").stat().st_mode}, modes


def test_no_pickle_inside(folder: Path) -> None:
    assert sorted(p.name for p in folder.iterdir()) == sorted([*FILES, "manifest.json"])
    for name in FILES[:2]:
        header = int.from_bytes((folder / name).read_bytes()[:8], "little")
        json.loads((folder / name).read_bytes()[8 : 8 + header])  # the whole header is JSON


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
def test_a_missing_or_truncated_file_is_refused(name: str, folder: Path) -> None:
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-1])
    with pytest.raises(ArtifactError, match=name.replace(".", r"\.")):
        load_artifact(folder)
    (folder / name).write_bytes(b"")
    with pytest.raises(ArtifactError, match=name.replace(".", r"\.")):
        load_artifact(folder)
    (folder / name).unlink()
    with pytest.raises(ArtifactError, match=name.replace(".", r"\.")):
        load_artifact(folder)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_byte_is_refused(data: st.DataObject, folder: Path) -> None:
    name = data.draw(st.sampled_from([*FILES, "manifest.json"]))
    whole = (folder / name).read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    flip = data.draw(st.integers(1, 255))
    try:
        (folder / name).write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
        with pytest.raises(ArtifactError):
            load_artifact(folder)
    finally:
        (folder / name).write_bytes(whole)


def rewritten(folder: Path, form: Form = ARTIFACT, **changes: object) -> Path:
    """The artifact as another version might have written it: checksums hold."""
    manifest = read_manifest(folder, ARTIFACT)
    kept = {key: manifest[key] for key in manifest if key not in PROOFS}
    write_manifest(folder, form, kept | changes, FILES)
    return folder


def test_another_format_version_is_refused(folder: Path) -> None:
    with pytest.raises(ArtifactError, match="format 2, and this towpath reads format 1"):
        load_artifact(rewritten(folder, Form("artifact", 2)))


def test_an_unknown_model_is_refused_with_the_nearest(folder: Path) -> None:
    with pytest.raises(ArtifactError, match="did you mean 'ease'"):
        load_artifact(rewritten(folder, model="esae"))


@pytest.mark.parametrize(
    "changes", [{"settings": {"ridge": 1.0, "new": 2}}, {"sizes": {"users": 60, "items": 41}}]
)
def test_settings_and_sizes_of_another_version_are_refused(changes: dict[str, object], folder: Path) -> None:
    with pytest.raises(ArtifactError, match="does not fit this towpath"):
        load_artifact(rewritten(folder, **changes))


class Reversed(Popularity):
    """A model of the user's own that nobody has registered."""

    def score(self, context: Context, items: torch.Tensor) -> torch.Tensor:
        return -super().score(context, items)


def test_a_model_of_the_users_own_comes_back_if_its_class_is_handed_in(tmp_path: Path) -> None:
    split = small_split()
    save_artifact(artifact_of(fit(split, Recipe(Reversed)), split), tmp_path / "a")
    manifest = read_manifest(tmp_path / "a", ARTIFACT)
    assert manifest["model"] == manifest["model_class"] == f"{Reversed.__module__}:Reversed"
    assert type(load_artifact(tmp_path / "a", [Popularity, Reversed]).scorer) is Reversed
    with pytest.raises(ArtifactError, match=r"Reversed'.* hand its class to towpath\.load\(folder, models="):
        load_artifact(tmp_path / "a")
    moved = rewritten(tmp_path / "a", model_class="__main__:Reversed")  # saved from a notebook, say
    assert type(load_artifact(moved, [Reversed]).scorer) is Reversed


def test_a_path_in_the_file_imports_nothing(folder: Path) -> None:
    asked = rewritten(folder, model="antigravity:Scorer", model_class="antigravity:Scorer")
    with pytest.raises(ArtifactError, match="Towpath imports nothing else by name"):
        load_artifact(asked, [Reversed])
    assert "antigravity" not in sys.modules


def test_a_class_that_is_built_otherwise_is_refused(folder: Path) -> None:
    asked = rewritten(folder, model_class="somewhere:Fixed")
    with pytest.raises(ArtifactError, match="does not fit this towpath"):
        load_artifact(asked, [Fixed])


def test_an_artifact_of_an_early_version_names_its_model_only(folder: Path) -> None:
    manifest = read_manifest(folder, ARTIFACT)
    early = {key: manifest[key] for key in manifest if key not in (*PROOFS, "model_class")}
    write_manifest(folder, ARTIFACT, early, FILES)
    assert type(load_artifact(folder).scorer).__name__ == "Ease"


def test_a_folder_that_is_no_artifact(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no saved artifact at"):
        load_artifact(tmp_path / "nowhere")
    with pytest.raises(ArtifactError, match=r"has no manifest\.json"):
        load_artifact(tmp_path)


def test_the_past_is_the_whole_log_in_order() -> None:
    split = small_split(users=7)
    past = serving_history_of(split)
    for user in range(7):
        parts = [part.histories.items[slice(*part.histories.starts[user : user + 2])] for part in
                 (split.train, split.validation, split.test)]  # fmt: skip
        assert past.histories.items[slice(*past.histories.starts[user : user + 2])].tolist() == [
            item for part in parts for item in part
        ]


def test_a_test_part_from_a_file_is_not_the_users_past() -> None:
    split = replace(small_split(users=7), outside=("test",))
    past = serving_history_of(split, keep_shown=True)
    assert past.shown is not None
    for histories in (past.histories, past.shown):
        assert histories.lengths.tolist() == split.before_test.histories.lengths.tolist()
        assert histories.items.tolist() == split.before_test.histories.items.tolist()
