"""Files out of archives and compressed files, within limits."""

import zipfile
from pathlib import Path
from typing import IO

from towpath.boundary import reading
from towpath.data.layout import COMPRESSIONS, KINDS, File, uncompressed
from towpath.errors import DataError

# What an archive unpacks to may be this many times its size, or this large if it is small.
MOST_EXPANSION = 200
ALWAYS_FINE = 1 << 28
BLOCK_BYTES = 1 << 20


def unpacked_member(archive: Path, member: str, scratch: Path) -> Path | None:
    """The file of this name out of a zip archive, in the scratch folder; None if it is not in there."""
    with reading(archive, "fetch it again"), zipfile.ZipFile(archive) as packed:
        wanted = Path(member).name
        found = next((name for name in packed.namelist() if Path(name).name == wanted), None)
        if found is None:
            return None
        target = scratch / wanted
        with packed.open(found) as stream:
            _copy(stream, target, archive)
        return target


def plain_parquet(file: File, scratch: Path) -> File:
    """The file itself, or a decompressed copy of a Parquet file that was compressed once more."""
    if isinstance(file, str) or file.suffix not in COMPRESSIONS:
        return file
    if KINDS.get(Path(file.stem).suffix.lower()) != "parquet":
        return file
    scratch.mkdir()  # one for each file: two may have the same name in different folders
    plain = scratch / file.stem
    with reading(file), uncompressed(file) as packed:
        _copy(packed, plain, file)
    return plain


def refuse_expansion(packed: Path, unpacked_bytes: int) -> None:
    """Nothing, unless a file has unpacked to far more than its size."""
    most = max(ALWAYS_FINE, MOST_EXPANSION * packed.stat().st_size)
    if unpacked_bytes > most:
        raise DataError(
            f"{packed} unpacks to more than {most >> 20:,} MB, over {MOST_EXPANSION} times its size, which "
            "no log does; unpack it yourself if it is one."
        )


def _copy(stream: IO[bytes], target: Path, origin: Path) -> None:
    """The file with everything that the stream gives; raises when it is too much for its origin."""
    with target.open("wb") as out:
        while block := stream.read(BLOCK_BYTES):
            out.write(block)
            refuse_expansion(origin, out.tell())
