"""Tables as a folder of Parquet files with a manifest that proves them whole."""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from towpath.errors import ArtifactError

MANIFEST = "manifest.json"
# The manifest of a folder: strings and numbers that JSON can hold.
Manifest = dict[str, Any]


def write_tables(folder: Path, tables: dict[str, pa.Table], about: Manifest) -> None:
    """The folder with one Parquet file a table, there as a whole or not at all; replaces an older one."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise ArtifactError(f"{folder} cannot be written: {error.strerror}; choose another place.") from error
    try:
        files = {f"{name}.parquet": table for name, table in tables.items()}
        for name, table in files.items():
            pq.write_table(table, partial / name, compression="zstd")
        sums = {name: file_digest(partial / name) for name in files}
        (partial / MANIFEST).write_text(_rendered({**about, "files": sums}), encoding="utf-8")
        _swap(partial, folder)
    except OSError as error:
        raise ArtifactError(f"{folder} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def read_manifest(folder: Path, expected: Manifest) -> Manifest:
    """The manifest, once all files have been checked and it says what is `expected` (kind, format)."""
    path = folder / MANIFEST
    try:
        text = path.read_text(encoding="utf-8")
        manifest = json.loads(text)
    except FileNotFoundError as error:
        raise ArtifactError(
            f"{folder} should be a saved {expected['kind']} but has no {MANIFEST}."
        ) from error
    except (OSError, ValueError) as error:
        raise _damaged(path) from error
    # Rendering again catches changed bytes that leave the values alone, such as white space.
    if not isinstance(manifest, dict) or _rendered(manifest) != text:
        raise _damaged(path)
    for key, value in expected.items():
        if manifest.get(key) != value:
            raise ArtifactError(
                f"{folder} should have {key} {value!r} but has {manifest.get(key)!r}; "
                "make it again, or use the towpath version that wrote it."
            )
    _check_files(folder, manifest)
    return manifest


def read_table(folder: Path, name: str) -> pa.Table:
    """One table of the folder."""
    try:
        return pq.read_table(folder / f"{name}.parquet")
    except (OSError, pa.ArrowException) as error:
        raise _damaged(folder / f"{name}.parquet") from error


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _swap(partial: Path, folder: Path) -> None:
    """Put the new folder in the place of the old one, which is removed only afterwards."""
    old = partial.with_name(partial.name + "-old")
    if folder.exists():
        os.rename(folder, old)
    try:
        os.rename(partial, folder)
    except BaseException:
        if old.exists():
            os.rename(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _check_files(folder: Path, manifest: Manifest) -> None:
    sums = manifest.get("files")
    if not isinstance(sums, dict):
        raise _damaged(folder / MANIFEST)
    for name, digest in sums.items():
        path = folder / Path(name).name  # never outside the folder, whatever a manifest says
        if not path.is_file() or file_digest(path) != digest:
            raise _damaged(path)


def _damaged(path: Path) -> ArtifactError:
    return ArtifactError(f"{path} is missing, truncated or changed since it was written; make it again.")


def _rendered(manifest: Manifest) -> str:
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
