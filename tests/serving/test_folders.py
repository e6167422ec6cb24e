"""Folders and files are wholly there or not at all."""

from pathlib import Path

import pytest

from towpath.serving.folders import new_folder, write_text


def everything(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


def test_a_new_folder_appears_with_all_its_files(tmp_path: Path) -> None:
    with new_folder(tmp_path / "deep" / "new") as partial:
        (partial / "a").write_text("1")
        assert not (tmp_path / "deep" / "new").exists()
    assert everything(tmp_path) == {"deep/new/a": "1"}


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    with new_folder(tmp_path / "kept") as partial:
        (partial / "a").write_text("old")

    def fail() -> None:
        with new_folder(tmp_path / "kept") as partial:
            (partial / "a").write_text("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert everything(tmp_path) == {"kept/a": "old"}


def test_an_older_folder_and_a_killed_writers_rest_are_replaced(tmp_path: Path) -> None:
    (tmp_path / ".kept.partial").mkdir()
    (tmp_path / ".kept.partial" / "rest").write_text("half")
    for text in ("old", "new"):
        with new_folder(tmp_path / "kept") as partial:
            (partial / text).write_text(text)
    assert everything(tmp_path) == {"kept/new": "new"}


def test_a_text_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "a", "\ud800")
    assert everything(tmp_path) == {"a": "old"}
