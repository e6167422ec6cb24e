"""Checksums of files and of the manifests that list them; loads nothing heavy, so commands start soon."""

import hashlib
import json
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
# What a manifest holds is checked by its checksum; the values are whatever JSON can hold.
Manifest = dict[str, Any]


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def rendered(manifest: Manifest) -> str:
    """The text of a manifest."""
    return json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def manifest_checksum(unsigned: Manifest) -> str:
    """The checksum of a manifest that has none yet."""
    return hashlib.sha256(rendered(unsigned).encode()).hexdigest()


def proved_manifest(folder: Path, files: tuple[str, ...]) -> Manifest | None:
    """The manifest of a folder with these files and no others, once every byte has been checked; else None.

    None says nothing about what is wrong: `files.read_manifest` does.
    """
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
        manifest = json.loads(text)
        unsigned = {key: value for key, value in manifest.items() if key != "checksum"}
        whole = text == rendered(manifest) and manifest["checksum"] == manifest_checksum(unsigned)
        sums = {name: file_digest(folder / name) for name in files if not (folder / name).is_symlink()}
        return manifest if whole and manifest["files"] == sums else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
