"""Files and folders that are either wholly there or not there at all."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A temporary sibling to fill, which becomes `target` when the block ends well and vanishes otherwise.

    What a killed process left under the temporary name is removed first. An older `target` is moved aside,
    then removed: a reader sees the old folder or the new one, never a mixture.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial, old = (target.with_name(f".{target.name}.{state}") for state in ("partial", "old"))
    _remove(partial)
    partial.mkdir()
    try:
        yield partial
        _remove(old)
        if target.exists():
            os.rename(target, old)
        os.rename(partial, target)
    except BaseException:
        _remove(partial)
        if old.exists() and not target.exists():
            os.rename(old, target)
        raise
    _remove(old)


def write_text(target: Path, text: str) -> None:
    """The file `target` with this text, replaced in one step."""
    partial = target.with_name(f".{target.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def sha256_of(path: Path) -> str:
    """The checksum of the file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
