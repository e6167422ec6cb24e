"""Built-in datasets from their publishers: downloaded with resume, or copied, and checked."""

import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from towpath.checksums import file_digest
from towpath.data.builtin_datasets import BuiltinDataset, builtin_dataset
from towpath.errors import DataError
from towpath.files import write_text

# GivenColumns how many bytes are here, of how many (None where the publisher does not say).
Progress = Callable[[int, int | None], None]
BLOCK_BYTES = 1 << 18
PATIENCE_SECONDS = 60.0
RANGE_NOT_SATISFIABLE = 416


def fetch(
    name: str,
    data_dir: Path,
    *,
    source: Path | None = None,
    progress: Progress = lambda here, total: None,
) -> Path:
    """Where the checked copy of this set lies: downloaded, or taken from `source`.

    An interrupted download leaves a `.part` file, from which the next call goes on. A copy whose checksum is
    wrong is removed. Where the publisher gives no checksum, that of the first copy is kept next to it.
    """
    entry = builtin_dataset(name)
    target = data_dir / entry.file_name
    if source is not None and not source.is_file():
        raise _no_copy(source, entry)
    was_missing = not data_dir.exists()
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if target.is_file() and source is None and _matches(entry, target, target):
            return target
        part = target.with_name(target.name + (".part" if source is None else ".copy"))
        if source is None:
            _download(entry, part, progress)
        else:
            _copy(source, part, progress)
        _check(entry, part, target, source)
        os.replace(part, target)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        advice = "free some space or choose another --data-dir"
        raise DataError(f"{entry.name} cannot be stored in {data_dir}: {why}; {advice}.") from error
    finally:
        if was_missing:
            with suppress(OSError):
                data_dir.rmdir()  # which it can be only if nothing came to lie in it
    return target


def checked_copy(entry: BuiltinDataset, copy: Path) -> tuple[str, ...]:
    """A note if a local copy is not the publisher's; one that changed since it was fetched is refused.

    A copy that somebody made may have its reasons, so it is read, and the record says what it is not.
    """
    if _record(copy).is_file() and not _matches(entry, copy, copy):
        raise DataError(
            f"{copy} should have the checksum {_expected(entry, copy)}, which was kept when it was fetched, "
            f"but has another one; fetch {entry.name} again."
        )
    published = entry.checksum if copy.name == entry.file_name else entry.member_checksum
    if published is None or published == f"sha256:{file_digest(copy)}":
        return ()
    return (
        f"warning: {copy} has another checksum than the {entry.name} of its publisher, so numbers on it may "
        f"differ from published ones; `towpath data fetch {entry.name}` gets the publisher's",
    )


def _no_copy(source: Path, entry: BuiltinDataset) -> DataError:
    """The error for a path that holds no copy of the set as its publisher packed it."""
    if source.is_dir():
        return DataError(
            f"--from takes the publisher's own file {entry.file_name}, and {source} is a folder; an unpacked "
            f"copy needs no fetching, so name the folder around it with --data-dir {source.parent}."
        )
    return DataError(f"There is no file {source} to take the set from; check the path.")


def _copy(source: Path, part: Path, progress: Progress) -> None:
    try:
        shutil.copyfile(source, part)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    progress(part.stat().st_size, part.stat().st_size)


def _download(entry: BuiltinDataset, part: Path, progress: Progress) -> None:
    """Fill the part file, from where it ends if the publisher allows that."""
    try:
        with _open(entry.address, part) as response:
            _receive(response, part, progress, entry.most_bytes)
    except urllib.error.HTTPError as error:
        error.close()
        raise DataError(f"{entry.address} answered {error.code} {error.reason}; try later.") from error
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise DataError(
            f"{entry.address} could not be read ({reason}); run the same command again to go on, "
            f"or bring a copy of {entry.file_name} with --from."
        ) from error


class _SameScheme(urllib.request.HTTPRedirectHandler):
    """Follows a publisher who moved, but not from https to something that anybody on the way can change."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:  # the types are those of the standard library
        """The request to the new address; raises if its scheme is another one."""
        if urlsplit(newurl).scheme != urlsplit(req.full_url).scheme:
            fp.close()
            raise urllib.error.URLError(f"it redirects to {newurl[:80]}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(address: str, part: Path) -> HTTPResponse:
    """The answer to a request for the rest of the file, or for all of it where the rest is refused."""
    here = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={here}-"} if here else {})
    try:
        opener = urllib.request.build_opener(_SameScheme)
        response: HTTPResponse = opener.open(request, timeout=PATIENCE_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != RANGE_NOT_SATISFIABLE or not here:
            raise
        error.close()
        part.unlink()  # longer than the file itself, so not a part of it
        return _open(address, part)
    return response


def _receive(response: HTTPResponse, part: Path, progress: Progress, most: int) -> None:
    """Append what comes, or start over when the publisher sends the whole file; at most so many bytes."""
    resumed = response.status == 206
    here = part.stat().st_size if resumed else 0
    length = response.headers.get("Content-Length")
    total = here + int(length) if length is not None and length.isdecimal() else None
    with part.open("ab" if resumed else "wb") as file:
        while block := response.read(BLOCK_BYTES):
            file.write(block)
            here += len(block)
            progress(here, total)
            if here > most:
                break
    if here > most:
        part.unlink()
        raise DataError(
            f"What came as {part.stem} has more than {most >> 20:,} MB, so it is something else and was not "
            "kept; bring a copy with --from."
        )
    if total is not None and here < total:
        raise ConnectionError(f"the transfer broke off after {here:,} of {total:,} bytes")


def _check(entry: BuiltinDataset, copy: Path, target: Path, source: Path | None) -> None:
    """Raise and remove the copy if its checksum is wrong; keep the checksum if it is the first."""
    if not _matches(entry, copy, target):
        copy.unlink()
        what = f"What came as {entry.file_name}" if source is None else str(source)
        advice = (
            "fetch it again" if source is None else "bring another copy, or leave --from out to download it"
        )
        raise DataError(
            f"{what} should have the checksum {_expected(entry, target)} but has another one, so it is "
            f"damaged or another version and was not kept; {advice}."
        )
    if entry.checksum is None and not _record(target).exists():
        write_text(_record(target), f"{file_digest(copy)}  {entry.file_name}\n")


def _matches(entry: BuiltinDataset, copy: Path, target: Path) -> bool:
    expected = _expected(entry, target)
    if expected is None:
        return True
    algorithm, digest = expected.split(":")
    return file_digest(copy, algorithm) == digest


def _expected(entry: BuiltinDataset, target: Path) -> str | None:
    """The checksum as published, or as kept from the first copy; None before there is one."""
    if entry.checksum is not None:
        return entry.checksum
    record = _record(target)
    if not record.exists():
        return None
    found = re.match(rb"[0-9a-f]{64}\b", record.read_bytes()[:100])
    if found is None:
        raise DataError(
            f"{record} should hold the checksum that was kept when {entry.name} was fetched, but has none; "
            f"delete it and fetch {entry.name} again."
        )
    return f"sha256:{found[0].decode()}"


def _record(target: Path) -> Path:
    return target.with_name(target.name + ".sha256")
