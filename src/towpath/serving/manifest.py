"""The manifest of an artifact: what it holds, and the checksums that prove it is whole."""

import hashlib
import json
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from towpath.errors import ArtifactError
from towpath.serving.folders import sha256_of, write_text

FORMAT = 1
NAME = "manifest.json"

# The form of a manifest is checked by its checksum; the values are whatever JSON can hold.
Manifest = dict[str, Any]


def library_versions() -> dict[str, str]:
    """The versions of everything that can move a number."""
    return {"python": platform.python_version()} | {n: version(n) for n in ("towpath", "torch", "numpy")}


def write_manifest(folder: Path, contents: Manifest, files: Iterable[str]) -> None:
    """`manifest.json` in the folder, with a checksum of each of `files` and one of itself."""
    sums = {name: sha256_of(folder / name) for name in files}
    manifest = {"format": FORMAT, **contents, "versions": library_versions(), "files": sums}
    write_text(folder / NAME, _rendered(manifest | {"checksum": _checksum(manifest)}))


def read_manifest(folder: Path) -> Manifest:
    """The manifest, once every byte of it and of the files it names has been checked."""
    manifest = _parsed(folder)
    if manifest.get("format") != FORMAT:
        raise ArtifactError(
            f"{folder} has format {manifest.get('format')!r}, and this towpath reads format {FORMAT}; "
            "fit again, or use the towpath version that wrote it."
        )
    unsigned = {key: value for key, value in manifest.items() if key != "checksum"}
    # Rendering again catches changes that leave the parsed values alone, such as white space.
    same = (folder / NAME).read_text(encoding="utf-8") == _rendered(manifest)
    if not same or manifest.get("checksum") != _checksum(unsigned):
        raise _damaged(folder, NAME, "does not match its own checksum")
    for name, expected in manifest["files"].items():
        _check_file(folder, name, expected)
    return manifest


def _parsed(folder: Path) -> Manifest:
    if not folder.is_dir():
        raise ArtifactError(f"There is no artifact at {folder}; make one with towpath fit.")
    if not (folder / NAME).is_file():
        raise ArtifactError(f"{folder} is not an artifact: it has no {NAME}; give the folder that fit wrote.")
    try:
        manifest = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except ValueError as error:  # covers JSON and text decoding
        raise _damaged(folder, NAME, "cannot be parsed") from error
    if not isinstance(manifest, dict):
        raise _damaged(folder, NAME, "is not a JSON object")
    return manifest


def _check_file(folder: Path, name: str, expected: str) -> None:
    if not (folder / name).is_file():
        raise _damaged(folder, name, "is missing")
    if sha256_of(folder / name) != expected:
        raise _damaged(folder, name, "does not match its checksum, so it was changed or cut short")


def _damaged(folder: Path, name: str, what: str) -> ArtifactError:
    return ArtifactError(f"The artifact {folder} is damaged: {name} {what}; copy it again, or fit again.")


def _rendered(manifest: Manifest) -> str:
    return json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _checksum(unsigned: Manifest) -> str:
    return hashlib.sha256(_rendered(unsigned).encode()).hexdigest()
