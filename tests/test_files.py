"""Files and folders are wholly there or not at all, and a folder that is not as it was written says so."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from towpath.checksums import MANIFEST
from towpath.errors import ArtifactError, ConfigError
from towpath.files import (
    Form,
    is_free,
    new_file,
    new_folder,
    read_manifest,
    refuse_unwritable,
    write_manifest,
    write_text,
)

THING = Form("thing", 1)


def everything(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST]
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def fill(folder: Path, text: str, error: BaseException | None = None) -> None:
    with new_folder(folder) as partial:
        (partial / "a").write_text(text)
        (partial / MANIFEST).write_text("{}")  # else it would not be towpath's, and never be replaced
        if error is not None:
            raise error


def test_a_new_folder_appears_with_all_its_files(tmp_path: Path) -> None:
    with new_folder(tmp_path / "deep" / "new") as partial:
        (partial / "a").write_text("1")
        assert not (tmp_path / "deep" / "new").exists()
    assert everything(tmp_path) == {"deep/new/a": "1"}


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    fill(tmp_path / "kept", "old")
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "kept", "new", KeyboardInterrupt())
    assert everything(tmp_path) == {"kept/a": "old"}


def test_a_disk_that_fails_is_one_sentence(tmp_path: Path) -> None:
    fill(tmp_path / "kept", "old")
    with pytest.raises(ArtifactError, match=r"kept cannot be written: no space left; free some space"):
        fill(tmp_path / "kept", "new", OSError(28, "No space left"))
    with (
        pytest.raises(ArtifactError, match=r"file cannot be written: broken; try later\."),
        new_file(tmp_path / "file", advice="try later"),
    ):
        raise OSError("broken")
    assert everything(tmp_path) == {"kept/a": "old"}


def test_an_older_folder_and_a_killed_writers_rest_are_replaced(tmp_path: Path) -> None:
    (tmp_path / ".kept.partial").mkdir()
    (tmp_path / ".kept.partial" / "rest").write_text("half")
    for text in ("old", "new"):
        fill(tmp_path / "kept", text)
    assert everything(tmp_path) == {"kept/a": "new"}


def test_a_writer_killed_between_its_two_renames_loses_nothing(tmp_path: Path) -> None:
    fill(tmp_path / "kept", "old")
    os.rename(tmp_path / "kept", tmp_path / ".kept.old")
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "kept", "new", KeyboardInterrupt())
    assert everything(tmp_path) == {"kept/a": "old"}


def test_a_text_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "a", "\ud800")
    assert everything(tmp_path) == {"a": "old"}


def test_a_place_is_refused_before_the_work_begins(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match=r"file is not a directory; choose another --out"):
        refuse_unwritable(tmp_path / "file" / "deep" / "index.html")
    refuse_unwritable(tmp_path / "new" / "deep" / "index.html")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("write", [refuse_unwritable, lambda p: write_text(p, "x"), lambda p: fill(p, "x")])
def test_a_device_or_a_pipe_is_refused_and_stays(write: Callable[[Path], None], tmp_path: Path) -> None:
    """As /dev/null, which root's --out once replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="is a device or a pipe, not a file; choose another --out"):
        write(pipe)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize("place", ["", ".", "/", ".."])
def test_a_place_without_a_name_is_refused(place: str) -> None:
    with pytest.raises(ConfigError, match="--out should name a file or folder to make"):
        refuse_unwritable(Path(place))
    with pytest.raises(ConfigError, match="--out should name a file or folder to make"):
        fill(Path(place), "new")


def test_what_towpath_did_not_write_is_never_replaced(tmp_path: Path) -> None:
    target = tmp_path / "letters"
    target.mkdir()
    (target / "to mother.txt").write_text("dear")
    with pytest.raises(ConfigError, match="already exists and towpath did not write it"):
        fill(target, "new")
    with pytest.raises(ConfigError, match="already exists and towpath did not write it"):
        fill(target / "to mother.txt", "new")
    assert everything(tmp_path) == {"letters/to mother.txt": "dear"}


def test_leftovers_of_killed_processes_do_not_make_a_folder_taken(tmp_path: Path) -> None:
    assert is_free(tmp_path / "absent")
    (tmp_path / ".tune.json.12-34.partial").write_text("ha")
    (tmp_path / ".results.lock").write_text("")
    assert is_free(tmp_path)
    (tmp_path / ".hidden").write_text("somebody's")
    assert not is_free(tmp_path)
    assert not is_free(tmp_path / ".hidden")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_locked_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match="you may not write to"):
        refuse_unwritable(tmp_path / "index.html")


@pytest.fixture
def thing(tmp_path: Path) -> Path:
    (tmp_path / "a").write_text("content")
    write_manifest(tmp_path, THING, {"note": "ä"}, ["a"])
    return tmp_path


def test_a_manifest_comes_back(thing: Path) -> None:
    manifest = read_manifest(thing, THING)
    assert (manifest["kind"], manifest["format"], manifest["note"]) == ("thing", 1, "ä")


@pytest.mark.parametrize("name", ["a", MANIFEST])
def test_every_changed_byte_is_noticed(name: str, thing: Path) -> None:
    whole = (thing / name).read_bytes()
    for place in range(len(whole)):
        (thing / name).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ArtifactError):
            read_manifest(thing, THING)


def test_values_changed_with_care_are_noticed(thing: Path) -> None:
    changed = json.loads((thing / MANIFEST).read_text()) | {"note": "b"}
    (thing / MANIFEST).write_text(json.dumps(changed, indent=2, ensure_ascii=False) + "\n")
    with pytest.raises(ArtifactError, match="does not match its own checksum"):
        read_manifest(thing, THING)


@pytest.mark.parametrize("value", ["NaN", "1e999", '"\\ud800"'])
def test_values_that_no_manifest_can_hold_are_noticed(value: str, thing: Path) -> None:
    text = (thing / MANIFEST).read_text()
    (thing / MANIFEST).write_text(text.replace("{", '{"more": ' + value + ",", 1))
    with pytest.raises(ArtifactError, match="damaged"):
        read_manifest(thing, THING)


def test_folders_that_are_something_else(thing: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="should be a saved split but is a saved thing"):
        read_manifest(thing, Form("split", 1))
    with pytest.raises(ArtifactError, match="has format 1, and this towpath reads format 2"):
        read_manifest(thing, Form("thing", 2))
    with pytest.raises(ArtifactError, match=r"There is no saved thing at .*: there is no such folder"):
        read_manifest(tmp_path / "nowhere", THING)
    (thing / MANIFEST).write_text("[]")
    with pytest.raises(ArtifactError, match="is not a JSON object"):
        read_manifest(thing, THING)
    (thing / MANIFEST).unlink()
    with pytest.raises(ArtifactError, match=r"it has no manifest\.json"):
        read_manifest(thing, THING)


def resigned(thing: Path, **changes: object) -> None:
    """A manifest with these changes whose own checksum is right again."""
    from towpath import checksums

    manifest = json.loads((thing / MANIFEST).read_text()) | changes
    manifest.pop("checksum")
    manifest |= {"checksum": checksums.manifest_checksum(manifest)}
    (thing / MANIFEST).write_text(checksums.rendered(manifest))


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "has no valid files"),
        ([], "has no valid files"),
        ({"../a": "0" * 64}, "has no valid files"),
        ({"/etc/passwd": "0" * 64}, "has no valid files"),
        ({"a": "short"}, "has no valid files"),
        ({"b": "0" * 64}, "does not list a, which every saved thing has"),
    ],
)
def test_lists_of_files_that_cannot_be_are_refused(files: object, why: str, thing: Path) -> None:
    resigned(thing, files=files)
    with pytest.raises(ArtifactError, match=why):
        read_manifest(thing, Form("thing", 1, ("a",)))


def test_a_link_in_place_of_a_file_is_refused(thing: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("content")
    (thing / "a").unlink()
    (thing / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArtifactError, match="a is missing"):
        read_manifest(thing, THING)


def test_what_a_killed_writer_left_of_a_file_is_removed_and_a_living_ones_stays(tmp_path: Path) -> None:
    dead, living = tmp_path / ".a.999999999-1.partial", tmp_path / f".a.{os.getppid()}-1.partial"
    for left in (dead, living):
        left.write_text("half")
    write_text(tmp_path / "a", "whole")
    assert set(everything(tmp_path)) == {"a", living.name}


def test_two_writers_of_one_folder_do_not_destroy_each_others_work(tmp_path: Path) -> None:
    with new_folder(tmp_path / "kept") as partial:
        (partial / "a").write_text("first")
        with (
            pytest.raises(ConfigError, match=r"Another towpath is writing to .*kept now"),
            new_folder(tmp_path / "kept"),
        ):
            pass
    assert everything(tmp_path) == {"kept/a": "first"}
