"""Files and folders that are either wholly there or not there at all, and folders that can prove it.

A folder is proved whole by its manifest: what it holds, a checksum of every file, and one of itself.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from towpath.errors import ArtifactError, ConfigError

MANIFEST = "manifest.json"
# The keys of a manifest by which a folder is known and proved whole; the rest is what it has to say.
PROOFS = ("kind", "format", "files", "checksum")
# What a manifest holds is checked by its checksum; the values are whatever JSON can hold.
Manifest = dict[str, Any]


@dataclass(frozen=True)
class Form:
    """What a folder says it is; the number grows when the form of such folders changes."""

    kind: str
    format: int


# A trained model; here because models read vectors from it, and serving is built on models.
ARTIFACT = Form("artifact", 1)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A temporary sibling to fill, which becomes `target` when the block ends well and vanishes otherwise.

    What a killed process left under the temporary name is removed first. An older `target` is moved aside,
    then removed: a reader sees the old folder or the new one, never a mixture.
    """
    partial, old = (target.with_name(f".{target.name}.{state}") for state in ("partial", "old"))
    with _said(target, "free some space or choose another place"):
        target.parent.mkdir(parents=True, exist_ok=True)
        _put_back(old, target)
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
            _put_back(old, target)
            raise
        _remove(old)


@contextmanager
def new_file(target: Path, advice: str = "free some space or choose another place") -> Iterator[Path]:
    """A temporary sibling to write, which replaces `target` when the block ends well, else vanishes.

    `advice` ends the sentence that says why it could not be written.
    """
    partial = target.with_name(f".{target.name}.partial")
    with _said(target, advice):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
            with partial.open("rb") as written:
                os.fsync(written.fileno())  # else a power cut could leave the new name with the old nothing
            os.replace(partial, target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def write_text(target: Path, text: str) -> None:
    """The file `target` with this text, replaced in one step."""
    with new_file(target) as partial:
        partial.write_text(text, encoding="utf-8")


def refuse_unwritable(target: Path) -> None:
    """Nothing, unless `target` cannot be made where it is to be; to be asked before the work begins."""
    nearest = next(folder for folder in target.absolute().parents if folder.exists())
    if not nearest.is_dir():
        raise ConfigError(f"{target} cannot be made: {nearest} is not a directory; choose another --out.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(f"{target} cannot be made: you may not write to {nearest}; choose another --out.")


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def write_manifest(folder: Path, form: Form, contents: Manifest, files: Iterable[str]) -> None:
    """The manifest of the folder, with a checksum of each of `files` and one of itself."""
    sums = {name: file_digest(folder / name) for name in files}
    manifest = {"kind": form.kind, "format": form.format, **contents, "files": sums}
    write_text(folder / MANIFEST, _rendered(manifest | {"checksum": _checksum(manifest)}))


def read_manifest(folder: Path, form: Form) -> Manifest:
    """The manifest, once every byte of it and of the files it names has been checked."""
    manifest, text = _parsed(folder, form)
    if manifest.get("kind", form.kind) != form.kind:
        raise ArtifactError(f"{folder} should be a saved {form.kind} but is a saved {manifest['kind']}.")
    if manifest.get("format") != form.format:
        raise ArtifactError(
            f"{folder} has format {manifest.get('format')!r}, and this towpath reads format {form.format}; "
            "make it again, or use the towpath version that wrote it."
        )
    unsigned = {key: value for key, value in manifest.items() if key != "checksum"}
    # Rendering again catches changes that leave the parsed values alone, such as white space.
    if text != _rendered(manifest) or manifest.get("checksum") != _checksum(unsigned):
        raise damaged(folder, MANIFEST, "does not match its own checksum")
    for name, expected in manifest["files"].items():
        if not (folder / name).is_file():
            raise damaged(folder, name, "is missing")
        if file_digest(folder / name) != expected:
            raise damaged(folder, name, "does not match its checksum, so it was changed or cut short")
    return manifest


def kind_of(folder: Path) -> str | None:
    """What the manifest of a folder says that it is, unproved; None where there is none that can be read."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest.get("kind") if isinstance(manifest, dict) else None


def damaged(folder: Path, name: str, what: str) -> ArtifactError:
    """The error for a folder one of whose files is not as it was written."""
    return ArtifactError(f"{folder} is damaged: {name} {what}; copy it again, or make it again.")


def _parsed(folder: Path, form: Form) -> tuple[Manifest, str]:
    """The manifest as it stands, and its text."""
    if not (folder / MANIFEST).is_file():
        why = f"it has no {MANIFEST}" if folder.is_dir() else "there is no such folder"
        raise ArtifactError(
            f"There is no saved {form.kind} at {folder}: {why}; give a folder that towpath wrote."
        )
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
        manifest = json.loads(text)
    except ValueError as error:  # covers JSON and text decoding
        raise damaged(folder, MANIFEST, "cannot be parsed") from error
    if not isinstance(manifest, dict):
        raise damaged(folder, MANIFEST, "is not a JSON object")
    return manifest, text


@contextmanager
def _said(target: Path, advice: str) -> Iterator[None]:
    """Failures of the disk as one sentence."""
    try:
        yield
    except OSError as error:
        why = error.strerror.lower() if error.strerror else error
        raise ArtifactError(f"{target} cannot be written: {why}; {advice}.") from error


def _put_back(old: Path, target: Path) -> None:
    """Give the older folder its name again if nothing has interacted with its place."""
    if old.exists() and not target.exists():
        os.rename(old, target)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _rendered(manifest: Manifest) -> str:
    return json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _checksum(unsigned: Manifest) -> str:
    return hashlib.sha256(_rendered(unsigned).encode()).hexdigest()
