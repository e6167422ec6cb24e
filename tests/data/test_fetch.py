import hashlib
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from fuzz import corpus

from towpath.data.builtin_datasets import BUILTIN_DATASETS
from towpath.data.fetch import checked_copy, fetch
from towpath.data.sources import read
from towpath.errors import ConfigError, DataError

SHARED = Path(__file__).parents[3] / "shared" / "data"
CONTENT = bytes(range(256)) * 4000
SUM = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Publisher:
    """What the local server sends, and what it was asked for."""

    content: bytes = CONTENT
    ranges: bool = True
    breaks_after: int | None = None
    status: int | None = None
    moved_to: str | None = None
    asked: list[str | None] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    state = Publisher()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that http.server calls
            wanted = self.headers.get("Range")
            state.asked.append(wanted)
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and state.ranges else 0
            if state.moved_to is not None and not self.path.endswith("moved"):
                self.send_response(302)
                self.send_header("Location", state.moved_to)
                self.end_headers()
                return
            if state.status or start > len(state.content):
                self.send_error(state.status or 416)
                return
            body = state.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if state.breaks_after is None else body[: state.breaks_after])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name that http.server has
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.address = f"http://127.0.0.1:{server.server_port}/ml-1m.zip"
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture
def name(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> str:
    entry = replace(BUILTIN_DATASETS["ml-1m"], address=publisher.address, checksum=SUM)
    monkeypatch.setitem(BUILTIN_DATASETS, "ml-1m", entry)
    return "ml-1m"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_download_is_checked_and_reported(name: str, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = fetch(name, tmp_path / "new" / "folder", progress=lambda here, total: seen.append((here, total)))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [here for here, _ in seen] == sorted(here for here, _ in seen)
    assert files(path.parent) == ["ml-1m.zip"]


def test_what_is_there_already_is_not_fetched_again(name: str, publisher: Publisher, tmp_path: Path) -> None:
    fetch(name, tmp_path)
    fetch(name, tmp_path)
    assert publisher.asked == [None]
    (tmp_path / "ml-1m.zip").write_bytes(b"damaged")
    assert fetch(name, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_download_goes_on(
    name: str, publisher: Publisher, tmp_path: Path, ranges: bool
) -> None:
    publisher.ranges, publisher.breaks_after = ranges, 300_000
    with pytest.raises(DataError, match=r"300,000 of 1,024,000 bytes.*run the same command again"):
        fetch(name, tmp_path)
    assert files(tmp_path) == ["ml-1m.zip.part"]
    publisher.breaks_after = None
    seen: list[int] = []
    assert fetch(name, tmp_path, progress=lambda here, total: seen.append(here)).read_bytes() == CONTENT
    assert publisher.asked == [None, "bytes=300000-"]
    assert (seen[0] > 300_000) == ranges
    assert files(tmp_path) == ["ml-1m.zip"]


def test_a_part_that_is_too_long_is_thrown_away(name: str, publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "ml-1m.zip.part").write_bytes(CONTENT + b"more")
    assert fetch(name, tmp_path).read_bytes() == CONTENT
    assert publisher.asked == [f"bytes={len(CONTENT) + 4}-", None]


def test_a_wrong_checksum_leaves_nothing_behind(name: str, publisher: Publisher, tmp_path: Path) -> None:
    publisher.content = CONTENT[:-1] + b"x"
    with pytest.raises(DataError, match=f"should have the checksum {SUM}"):
        fetch(name, tmp_path)
    assert files(tmp_path) == []


def test_a_refusal_and_a_dead_address_are_one_sentence(
    name: str, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.status = 404
    with pytest.raises(DataError, match="answered 404"):
        fetch(name, tmp_path)
    monkeypatch.setitem(
        BUILTIN_DATASETS, name, replace(BUILTIN_DATASETS[name], address="http://127.0.0.1:1/ml-1m.zip")
    )
    with pytest.raises(DataError, match=r"could not be read .* with --from"):
        fetch(name, tmp_path)
    assert files(tmp_path) == []


def test_a_local_copy_is_taken_and_checked(name: str, publisher: Publisher, tmp_path: Path) -> None:
    copy = tmp_path / "mine.zip"
    copy.write_bytes(CONTENT)
    assert fetch(name, tmp_path / "data", source=copy).read_bytes() == CONTENT
    assert publisher.asked == []
    copy.write_bytes(b"another file")
    with pytest.raises(DataError, match=r"mine.zip should have the checksum .* leave --from out"):
        fetch(name, tmp_path / "data", source=copy)
    # The good copy of before is still there.
    assert (tmp_path / "data" / "ml-1m.zip").read_bytes() == CONTENT
    assert files(tmp_path / "data") == ["ml-1m.zip"]
    with pytest.raises(DataError, match="There is no file"):
        fetch(name, tmp_path / "data", source=tmp_path / "absent.zip")


def test_an_unpacked_copy_needs_no_fetching(name: str, tmp_path: Path) -> None:
    (tmp_path / "mine" / "ml-1m").mkdir(parents=True)
    with pytest.raises(DataError, match=f"is a folder; .* with --data-dir {tmp_path / 'mine'}"):
        fetch(name, tmp_path / "data", source=tmp_path / "mine" / "ml-1m")


def test_a_fetch_that_fails_leaves_no_empty_folder(name: str, publisher: Publisher, tmp_path: Path) -> None:
    publisher.status = 404
    with pytest.raises(DataError, match="answered 404"):
        fetch(name, tmp_path / "data")
    assert files(tmp_path) == []


def test_without_a_published_checksum_the_first_copy_counts(
    name: str, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BUILTIN_DATASETS, name, replace(BUILTIN_DATASETS[name], checksum=None))
    fetch(name, tmp_path)
    assert files(tmp_path) == ["ml-1m.zip", "ml-1m.zip.sha256"]
    kept = (tmp_path / "ml-1m.zip.sha256").read_bytes()
    for damaged in (b"", b"\xff\xfe", b"abc ml-1m.zip"):
        (tmp_path / "ml-1m.zip.sha256").write_bytes(damaged)
        with pytest.raises(DataError, match="should hold the checksum that was kept"):
            fetch(name, tmp_path)
    (tmp_path / "ml-1m.zip.sha256").write_bytes(kept)
    (tmp_path / "ml-1m.zip").unlink()
    publisher.content = b"something else"
    with pytest.raises(DataError, match="should have the checksum"):
        fetch(name, tmp_path)


def test_an_unknown_name_gets_the_nearest_suggested(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'ml-1m'"):
        fetch("ml1m", tmp_path)


def test_a_folder_that_cannot_be_made_is_said(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot be stored"):
        fetch(name, tmp_path / "file" / "data")


def test_a_download_has_a_limit(
    name: str, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(BUILTIN_DATASETS[name], most_bytes=len(CONTENT) // 2)
    monkeypatch.setitem(BUILTIN_DATASETS, name, short)
    with pytest.raises(DataError, match="so it is something else and was not kept"):
        fetch(name, tmp_path)
    assert files(tmp_path) == []


def test_a_publisher_who_moved_is_followed_within_the_same_scheme_only(
    name: str, publisher: Publisher, tmp_path: Path
) -> None:
    for elsewhere in ("file:///etc/passwd", "ftp://127.0.0.1/x", publisher.address.replace("http", "https")):
        publisher.moved_to = elsewhere
        with pytest.raises(DataError, match=r"could not be read|Redirection") as raised:
            fetch(name, tmp_path)
        assert len(str(raised.value)) < 400
    publisher.moved_to = f"{publisher.address}-moved"
    assert fetch(name, tmp_path).read_bytes() == CONTENT


def test_every_published_checksum_is_a_sha256() -> None:
    sums = [entry.checksum for entry in BUILTIN_DATASETS.values() if entry.checksum is not None]
    assert len(sums) == 3
    assert all(one.startswith("sha256:") and len(one) == 71 for one in sums)


@pytest.mark.parametrize("place", ["ml-100k/u.data", "ml-100k.zip"])
def test_a_local_copy_that_is_not_the_publishers_is_read_with_a_recorded_warning(
    place: str, tmp_path: Path
) -> None:
    text = "1\t10\t3\t881250949\n2\t20\t4\t881250950\n"
    (tmp_path / place).parent.mkdir(exist_ok=True)
    if place.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / place, "w") as archive:
            archive.writestr("ml-100k/u.data", text)
    else:
        (tmp_path / place).write_text(text)
    reading = read("ml-100k", data_dir=tmp_path)
    assert len(reading.interactions) == 2
    assert reading.notes[0].startswith(f"warning: {tmp_path / place} has another checksum than the ml-100k")


@pytest.mark.skipif(not (SHARED / "ml-1m.zip").exists(), reason="needs MovieLens 1M in ../shared/data")
def test_the_publishers_own_file_is_read_without_a_warning() -> None:
    notes = checked_copy(BUILTIN_DATASETS["ml-1m"], SHARED / "ml-1m.zip")
    assert notes == checked_copy(BUILTIN_DATASETS["ml-100k"], SHARED / "ml-100k" / "u.data") == ()


@pytest.mark.parametrize("kind", corpus.ARCHIVES)
def test_hostile_archives_are_refused_or_unpacked_within_the_scratch_folder(
    kind: str, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "ml-1m.zip").write_bytes(corpus.ARCHIVES[kind]())
    if kind == "outside":
        assert read("ml-1m", data_dir=tmp_path / "data", complete=False).counts.rows == 100
    else:
        with pytest.raises(DataError, match=r"ml-1m\.zip cannot be read"):
            read("ml-1m", data_dir=tmp_path / "data")
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")] == ["data/ml-1m.zip"]
