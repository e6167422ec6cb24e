"""Files and folders that are either wholly there or not there at all, and folders that can prove it.

A folder is proved whole by its manifest: what it holds, a checksum of every file, and one of itself. A folder
whose files are replaced one by one, such as a run, has a list of checksums instead, which everything written
into it enters before it takes its place: a killed process leaves a list that is right of the old file and the
new one.
"""

import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from towpath.boundary import loading
from towpath.checksums import MANIFEST, Manifest, file_digest, manifest_checksum, rendered
from towpath.errors import ArtifactError, ConfigError
from towpath.locks import only_writer

_LEFT_OVER = (".partial", ".lock", ".writing")  # temporary names, which all begin with a dot
# The keys of a manifest by which a folder is known and proved whole; the rest is what it has to say.
PROOFS = ("kind", "format", "files", "checksum")


@dataclass(frozen=True)
class Form:
    """What a folder says it is and must have; the number grows when the form of such folders changes."""

    kind: str
    format: int
    files: tuple[str, ...] = ()  # without these it is none
    contents: type[BaseModel] | None = None  # what its manifest says, next to what all of them say


def _within(name: str) -> str:
    """The name of a file in a folder or in one below it; raises for any other."""
    parts = name.split("/")
    if not all(part.isprintable() and part not in ("", ".", "..") and "\\" not in part for part in parts):
        raise ValueError("a name outside of the folder")
    return name


FileName = Annotated[str, AfterValidator(_within), StringConstraints(max_length=255)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _Proofs(BaseModel):
    """The part of a manifest that is the same for all kinds of folders."""

    model_config = ConfigDict(strict=True)

    kind: str = ""
    format: int
    files: dict[FileName, Digest] = Field(min_length=1)
    checksum: Digest


class _Checksums(BaseModel):
    """The list of checksums of a folder whose files are replaced one by one: the last ones of each file."""

    model_config = ConfigDict(strict=True, extra="forbid")

    files: dict[FileName, Annotated[list[Digest], Field(min_length=1, max_length=2)]]
    checksum: Digest


CHECKSUMS = "checksums.json"


class ArtifactContents(BaseModel):
    """What the manifest of a trained model says."""

    model: str
    model_class: str = ""
    settings: dict[str, Any]  # the model checks its own
    sizes: dict[str, Any]  # so do sizes
    data: dict[str, Any] = {}
    recipe: dict[str, Any] = {}
    metrics: dict[str, float] = {}
    best_epoch: int = 0
    stopped_because: str = ""


# A trained model; here because models read vectors from it, and serving is built on models.
ARTIFACT_FILES = ("model.safetensors", "history.safetensors", "users.parquet", "items.parquet")
ARTIFACT = Form("artifact", 1, ARTIFACT_FILES, ArtifactContents)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A temporary sibling to fill, which becomes `target` when the block ends well and vanishes otherwise.

    What a killed process left under the temporary name is removed first. An older `target` is moved aside,
    then removed: a reader sees the old folder or the new one, never a mixture. If another process is making
    the same folder, that is said. What was not written by Towpath is never replaced.
    """
    _refuse_special(target)
    _refuse_nameless(target)
    partial, old = unfinished(target), target.with_name(f".{target.name}.old")
    with _said(target, "free some space or choose another place"), only_writer(target, ".writing"):
        target.parent.mkdir(parents=True, exist_ok=True)
        _put_back(old, target)
        _refuse_replacing(target)
        _remove(partial)
        partial.mkdir()
        try:
            yield partial
            _enter(target.parent, target.name, partial / MANIFEST)
            _remove(old)
            if target.exists():
                os.rename(target, old)
            os.rename(partial, target)
        except BaseException:
            _remove(partial)
            _put_back(old, target)
            raise
        _remove(old)


def unfinished(target: Path) -> Path:
    """Where `new_folder` has a folder filled, for processes that help to fill it."""
    return target.with_name(f".{target.name}.partial")


@contextmanager
def new_file(target: Path, advice: str = "free some space or choose another place") -> Iterator[Path]:
    """A temporary sibling to write, which replaces `target` when the block ends well, else vanishes.

    `advice` ends the sentence that says why it could not be written.
    """
    _refuse_special(target)
    # A name of its own: two processes that write the same file do not write into each other's.
    partial = target.with_name(f".{target.name}.{os.getpid()}-{get_ident()}.partial")
    with _said(target, advice):
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target)
        try:
            yield partial
            if target.name != CHECKSUMS:
                _enter(target.parent, target.name, partial)
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


def list_checksums(folder: Path) -> None:
    """Start the list of checksums of a folder with everything that is in it now."""
    parts = {path.name: path / MANIFEST if path.is_dir() else path for path in sorted(folder.iterdir())}
    _write_checksums(folder, {name: [file_digest(path)] for name, path in parts.items()})


def check_listed(path: Path) -> None:
    """Nothing, unless the folder around this file or folder lists other checksums than it has."""
    if not (path.parent / CHECKSUMS).is_file():
        return
    listed = _listed(path.parent).files.get(path.name)
    found = path / MANIFEST if path.is_dir() else path
    with loading(path):
        same = listed is not None and file_digest(found) in listed
    if not same:
        raise damaged(
            path.parent,
            path.name,
            f"is not what {CHECKSUMS} lists: it was changed or comes from elsewhere",
        )


def _listed(folder: Path) -> _Checksums:
    with loading(folder / CHECKSUMS, "copy the folder again, or make it again"):
        found = _Checksums.model_validate_json((folder / CHECKSUMS).read_bytes())
    if found.checksum != manifest_checksum({"files": found.files}):
        raise damaged(folder, CHECKSUMS, "does not match its own checksum")
    return found


def _enter(folder: Path, name: str, content: Path) -> None:
    """Add the checksum of what is about to take this name, if the folder has a list."""
    if not (folder / CHECKSUMS).is_file() or not content.is_file():
        return
    files = _listed(folder).files
    _write_checksums(folder, {**files, name: [*files.get(name, [])[-1:], file_digest(content)]})


def _write_checksums(folder: Path, files: dict[str, list[str]]) -> None:
    write_text(
        folder / CHECKSUMS, rendered({"files": files, "checksum": manifest_checksum({"files": files})})
    )


def _remove_leftovers(target: Path) -> None:
    """Remove what killed processes left of a file; what a living one is writing stays."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*-*.partial"):
        owner = left.name.removeprefix(f".{target.name}.").partition("-")[0]
        if owner.isdecimal() and not _is_alive(int(owner)):
            left.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # where this would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


@contextmanager
def scratch_folder(name: str = "") -> Iterator[Path]:
    """A temporary folder, gone after the block; those that killed processes of ours left are removed too."""
    for left in Path(tempfile.gettempdir()).glob("towpath-*-*"):
        owner = left.name.split("-")[1]
        if owner.isdecimal() and not _is_alive(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    prefix = f"towpath-{os.getpid()}-{name}"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def refuse_unwritable(target: Path) -> None:
    """Nothing, unless `target` cannot be made where it is to be; to be asked before the work begins."""
    _refuse_special(target)
    _refuse_nameless(target)
    nearest = next(folder for folder in target.absolute().parents if folder.exists())
    if not nearest.is_dir():
        raise ConfigError(f"{target} cannot be made: {nearest} is not a directory; choose another --out.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(f"{target} cannot be made: you may not write to {nearest}; choose another --out.")


def _refuse_special(target: Path) -> None:
    """Nothing, unless `target` is a device or a pipe: the new file would take its name, /dev/null's even."""
    if target.exists() and not target.is_file() and not target.is_dir():
        raise ConfigError(f"{target} is a device or a pipe, not a file; choose another --out.")


def _refuse_nameless(target: Path) -> None:
    if target.name in ("", ".."):  # such as an empty text, the root or the current folder
        raise ConfigError(f"--out should name a file or folder to make, and {str(target)!r} is not one.")


def _refuse_replacing(target: Path) -> None:
    """Nothing, unless something is at `target` that is neither empty nor a folder with a manifest."""
    if not is_free(target) and not (target / MANIFEST).is_file():
        raise ConfigError(f"{target} already exists and towpath did not write it; choose another --out.")


def is_free(target: Path) -> bool:
    """Whether nothing is at this place, or a folder with nothing but leftovers of killed processes."""
    if not target.is_dir():
        return not target.exists()
    return all(path.name.startswith(".") and path.name.endswith(_LEFT_OVER) for path in target.iterdir())


def write_manifest(folder: Path, form: Form, contents: Manifest, files: Iterable[str]) -> None:
    """The manifest of the folder, with a checksum of each of `files` and one of itself."""
    sums = {name: file_digest(folder / name) for name in files}
    manifest = {"kind": form.kind, "format": form.format, **contents, "files": sums}
    write_text(folder / MANIFEST, rendered(manifest | {"checksum": manifest_checksum(manifest)}))


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
    _refuse_other_contents(folder, form, manifest)
    unsigned = {key: value for key, value in manifest.items() if key != "checksum"}
    # Rendering again catches changes that leave the parsed values alone, such as white space. It fails for
    # what a manifest cannot hold, such as NaN or half of a character.
    with loading(folder / MANIFEST):
        same = text == rendered(manifest) and manifest.get("checksum") == manifest_checksum(unsigned)
    if not same:
        raise damaged(folder, MANIFEST, "does not match its own checksum")
    for name, expected in manifest["files"].items():
        if not (folder / name).is_file() or (folder / name).is_symlink():
            raise damaged(folder, name, "is missing")
        if file_digest(folder / name) != expected:
            raise damaged(folder, name, "does not match its checksum, so it was changed or cut short")
    for below in {(folder / name).parent for name in manifest["files"]} - {folder}:
        more = [file for file in below.iterdir() if str(file.relative_to(folder)) not in manifest["files"]]
        if more:
            raise damaged(folder, str(more[0].relative_to(folder)), "is not listed in its manifest")
    return manifest


def kind_of(folder: Path) -> str | None:
    """What the manifest of a folder says that it is, unproved; None where there is none that can be read."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return manifest.get("kind") if isinstance(manifest, dict) else None


def _refuse_other_contents(folder: Path, form: Form, manifest: Manifest) -> None:
    """Nothing, unless a manifest does not say what one of its kind must, or says it in another form."""
    try:
        proofs = _Proofs.model_validate(manifest)
        if form.contents is not None:
            form.contents.model_validate(manifest)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))[:60]
        raise damaged(folder, MANIFEST, f"has no valid {where} ({first['msg'].lower()})") from None
    # A large part may be a folder of files, which has no ending.
    there = {*proofs.files, *(name.partition("/")[0] for name in proofs.files if "/" in name)}
    missing = [name for name in form.files if not {name, name.partition(".")[0]} & there]
    if missing:
        raise damaged(folder, MANIFEST, f"does not list {missing[0]}, which every saved {form.kind} has")


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
    except (ValueError, RecursionError) as error:  # covers JSON and text decoding
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
    """Give the older folder its name again, unless another one has it by now."""
    if old.exists() and not target.exists():
        os.rename(old, target)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
