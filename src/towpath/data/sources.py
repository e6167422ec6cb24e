"""A named set, a file, a glob or a folder, read and cleaned into Interactions."""

import glob
import shutil
import tempfile
import zipfile
from dataclasses import dataclass, fields, replace
from pathlib import Path

from towpath.data.catalogue import CATALOGUE, NamedSet, local_copy
from towpath.data.cleaning import Cleaning, Step
from towpath.data.columns import Columns
from towpath.data.encoding import encode
from towpath.data.engine import engine
from towpath.data.fetch import refuse_changed
from towpath.data.interactions import Interactions
from towpath.data.layout import COMPRESSIONS, KINDS, is_data_file, uncompressed
from towpath.data.readers import read_raw
from towpath.errors import DataError, unknown_name


@dataclass(frozen=True)
class Reading:
    """What was read, from where, what was guessed on the way, and what cleaning dropped."""

    interactions: Interactions
    source: str
    notes: tuple[str, ...]
    steps: tuple[Step, ...]


def read(
    data: str | Path,
    *,
    data_dir: Path | None = None,
    columns: Columns = Columns(),  # noqa: B008  # frozen
    cleaning: Cleaning = Cleaning(),  # noqa: B008  # frozen
) -> Reading:
    """The events of a named set (looked for in `data_dir`), path, glob or folder, cleaned and encoded."""
    entry = CATALOGUE.get(str(data))
    with tempfile.TemporaryDirectory(prefix="towpath-", ignore_cleanup_errors=True) as scratch:
        if entry is None:
            files, source = find_files(str(data)), str(data)
        else:
            copy = local_copy(entry, data_dir)
            refuse_changed(entry, copy)
            files, source = [_member(entry, copy, Path(scratch))], f"{entry.name} ({copy})"
            columns = _merge(columns, entry.columns)
        files = [_plain_parquet(file, Path(scratch) / str(place)) for place, file in enumerate(files)]
        with engine() as connection:
            raw = read_raw(connection, files, columns, entry.missing_value if entry else None)
            interactions, steps = encode(connection, raw, cleaning)
    return Reading(interactions, source, raw.source.notes, steps)


def find_files(data: str) -> list[Path]:
    """The files that a path, glob or folder stands for, in the order of their names."""
    path = Path(data).expanduser()
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if is_data_file(file))
        if not files:
            raise DataError(
                f"The folder {data} holds no file with a known ending ({', '.join(KINDS)}, .gz, .zst)."
            )
        return files
    if path.exists():
        return [path]
    files = sorted(Path(match) for match in glob.glob(str(path), recursive=True) if Path(match).is_file())
    if files:
        return files
    if glob.has_magic(data) or path.suffix or len(path.parts) > 1:
        raise DataError(
            f"There is no file {data}; check the path, or see `towpath data list` for named sets."
        )
    raise unknown_name("dataset or file", data, CATALOGUE)


def _merge(told: Columns, usual: Columns) -> Columns:
    """The columns of a named set, but for those that the user told."""
    return replace(usual, **{f.name: getattr(told, f.name) for f in fields(told) if getattr(told, f.name)})


def _member(entry: NamedSet, copy: Path, scratch: Path) -> Path:
    """The file of events, unpacked into the scratch folder if it lies in an archive."""
    if entry.member is None or copy.suffix != ".zip":
        return copy
    try:
        with zipfile.ZipFile(copy) as archive:
            wanted = Path(entry.member).name
            found = next((m for m in archive.namelist() if Path(m).name == wanted), None)
            if found is None:
                raise DataError(
                    f"{copy} should contain {entry.member} but does not; fetch {entry.name} again."
                )
            return Path(archive.extract(found, scratch))
    except (zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{copy} is truncated or damaged; fetch {entry.name} again.") from error


def _plain_parquet(file: Path, scratch: Path) -> Path:
    """The file itself, or a decompressed copy of a Parquet file that was compressed once more."""
    if file.suffix not in COMPRESSIONS or KINDS.get(Path(file.stem).suffix.lower()) != "parquet":
        return file
    scratch.mkdir()  # one for each file: two may have the same name in different folders
    plain = scratch / file.stem
    try:
        with uncompressed(file) as packed, plain.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
    except OSError as error:
        raise DataError(f"{file} is truncated or damaged ({error}).") from error
    return plain
