"""What is attacked, and what must hold: a sentence or the right answer, never a traceback."""

import asyncio
import csv
import gzip
import io
import json
import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzz import corpus
from fuzz.mutators import Rng, anything, as_json, changed, damaged
from towpath.data.cleaning import Cleaning
from towpath.data.interactions import Interactions
from towpath.data.sources import read
from towpath.errors import LONGEST_MESSAGE, TowpathError
from towpath.files import CHECKSUMS, MANIFEST, list_checksums

EVENTS = corpus.table(rating=np.arange(corpus.ROWS) % 5 + 1.0)


class SilentDifferenceError(AssertionError):
    """Something else was read than the input holds, without a word."""


class Target(Protocol):
    """Attacked with one input after the other, each drawn from its own generator."""

    def __call__(self, rng: Rng) -> str:
        """What became of one input: read, same, refused; raises if it was not handled."""


def refused_or(action: Callable[[], str]) -> str:
    """What the action says, or "refused" for an expected error whose message is short."""
    try:
        return action()
    except TowpathError as error:
        said = str(error)
    assert len(said) <= LONGEST_MESSAGE, f"a message of {len(said)} characters"
    return "refused"


def different(what: str, one: object, two: object) -> None:
    """Raise unless the two are equal."""
    if one != two:
        raise SilentDifferenceError(f"{what}: {one!r} and {two!r}")


def _text(delimiter: str) -> bytes:
    rows = [line.split(",") for line in corpus.csv_lines(EVENTS)]
    return "".join(delimiter.join(row) + "\n" for row in rows).encode()


NULLS = pa.table({**{n: EVENTS.column(n) for n in EVENTS.column_names}, "note": [None, "a"] * 30})
BASES = {
    "a.csv": _text(","),
    "a.tsv": _text("\t"),
    "a.dat": _text("::"),
    "a.jsonl": "".join(json.dumps(row) + "\n" for row in EVENTS.to_pylist()).encode(),
    "a.parquet": corpus.parquet(EVENTS, compression="none"),
    "b.parquet": corpus.parquet(NULLS, row_group_size=13),
    "a.csv.gz": gzip.compress(_text(",")),
}


class Readers:
    """Damaged event files: refused, or read with every row accounted for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._right = read(self._write("a.csv", BASES["a.csv"])).interactions

    def __call__(self, rng: Rng) -> str:
        if rng.random() < 0.15:
            return self._same(rng)
        name = list(BASES)[rng.integers(len(BASES))]
        if name == "a.csv.gz" and rng.random() < 0.7:
            content = gzip.compress(damaged(BASES["a.csv"], rng), 1)
        else:
            content = damaged(BASES[name], rng)
        path = self._write(name, content)
        return refused_or(lambda: self._read(path, content))

    def _read(self, path: Path, content: bytes) -> str:
        found = read(path, cleaning=Cleaning(repeats="allow", missing="drop"), complete=False)
        dropped = sum(step.dropped_rows for step in found.steps)
        different("rows", found.counts.rows, len(found.interactions) + dropped)
        expected = _rows(path.name, content)
        if expected is not None:
            different(f"rows of {path.name}", found.counts.rows, expected)
        return "read"

    def _same(self, rng: Rng) -> str:
        """The same events written in another valid way."""
        content, name = _rewritten(rng)
        found = read(self._write(name, content)).interactions
        for column in ("users", "items", "times", "values"):
            if not np.array_equal(getattr(found, column), getattr(self._right, column)):
                raise SilentDifferenceError(f"{column} of {name}")
        different("ids", _ids(found), _ids(self._right))
        return "same"

    def _write(self, name: str, content: bytes) -> Path:
        path = self._folder / name
        path.write_bytes(content)
        return path


def _ids(found: Interactions) -> list[str]:
    return [str(one) for ids in (found.user_ids, found.item_ids) for one in ids.values.to_pylist()]


def _rows(name: str, content: bytes) -> int | None:
    """How many rows another reader finds; None where it does not say."""
    try:
        if name.endswith(".parquet"):
            return pq.read_table(io.BytesIO(content)).num_rows
        if name.endswith(".gz"):
            content = gzip.decompress(content)
        text = content.decode("latin-1").removeprefix("\xef\xbb\xbf")
        if name.endswith(".jsonl"):
            return sum(bool(line.strip()) for line in text.replace("\r", "\n").split("\n"))
        if name.endswith(".dat") or '"' in text:
            return None  # dialects differ about stray quotes
        lines = [
            row for row in csv.reader(io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))) if row
        ]
        return len(lines) - 1 if any(ord(c) >= 65 for c in "".join(lines[0])) else None
    except Exception:  # another reader's opinion, wanted only if it has one
        return None


def _rewritten(rng: Rng) -> tuple[bytes, str]:
    ends = ("\n", "\r\n", "\r")
    order = rng.permutation(4)
    quoted = rng.random() < 0.5
    one_end = ends[rng.integers(3)] if rng.random() < 0.5 else None
    text = "\n" * int(rng.integers(3)) if rng.random() < 0.2 else ""
    for line in corpus.csv_lines(EVENTS):
        cells = [line.split(",")[place] for place in order]
        cells = [f'"{cell}"' if quoted or rng.random() < 0.1 else cell for cell in cells]
        text += ",".join((*cells, '"a\r\nb"')) + (one_end or ends[rng.integers(3)])
        if rng.random() < 0.05:
            text += one_end or "\n"
    text = text.replace('"a\r\nb"', "note", 1)
    content = (b"\xef\xbb\xbf" if rng.random() < 0.2 else b"") + text.encode()
    return (gzip.compress(content, 1), "a.csv.gz") if rng.random() < 0.2 else (content, "a.csv")


class Runs:
    """Damaged runs: refused, or they answer as before."""

    def __init__(self, folder: Path) -> None:
        self._run, self._other = folder / "run", folder / "other"
        self._copy = folder / "copy"
        for place, (out, seed) in enumerate(((self._run, 0), (self._other, 1))):
            _make_run(out, seed, place)
        self._right = _answers(self._run)
        files = sorted(path for path in self._run.rglob("*") if path.is_file())
        self._files = [path.relative_to(self._run) for path in files]

    def __call__(self, rng: Rng) -> str:
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._run, self._copy)
        self._attack(rng)
        return refused_or(self._use)

    def _attack(self, rng: Rng) -> None:
        how = rng.random()
        name = self._files[rng.integers(len(self._files))]
        path = self._copy / name
        if how < 0.05:
            path.unlink()
        elif how < 0.15:
            shutil.copyfile(self._other / name, path)
        elif how < 0.2:
            part = ("split", "artifact")[rng.integers(2)]
            shutil.rmtree(self._copy / part)
            shutil.copytree(self._other / part, self._copy / part)
        elif how < 0.5 and name.suffix == ".json":
            path.write_bytes(as_json(changed(json.loads(path.read_bytes()), rng), rng))
        else:
            path.write_bytes(damaged(path.read_bytes(), rng))
        if how > 0.8 and path.is_file() and name.name != CHECKSUMS:
            self._sign(path)

    def _sign(self, path: Path) -> None:
        """Checksums that are right again, as somebody would make them who changes a file on purpose."""
        from towpath import files

        manifest = path.parent / MANIFEST
        if path.parent != self._copy and manifest.is_file():
            try:
                stored = json.loads(manifest.read_bytes())
                if path != manifest:
                    stored["files"][path.name] = files.file_digest(path)
                stored.pop("checksum", None)
                stored |= {"checksum": files._checksum(stored)}
                manifest.write_text(files._rendered(stored))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                return
        list_checksums(self._copy)

    def _use(self) -> str:
        if _answers(self._copy) != self._right and not self._signed():
            raise SilentDifferenceError("a damaged run answers something else")
        return "same"

    def _signed(self) -> bool:
        """Whether all checksums were made anew: then the run is another one, and says so."""
        return (self._copy / CHECKSUMS).read_bytes() != (self._run / CHECKSUMS).read_bytes()


def _make_run(out: Path, seed: int, place: int) -> None:
    from towpath.methods.recipe import Recipe
    from towpath.serving.run import Plan, open_run

    plan = Plan(_split(40 + place), Recipe("mf", "plain", {"epochs": 2, "embedding_dim": 3}, seed), {})
    open_run(out, plan, resume=False).train(plan)


def _split(users: int) -> Any:
    from towpath.data.split import split_leave_last_two

    rng = np.random.default_rng(users)
    table = pa.table({"user": np.repeat(np.arange(users), 6), "item": rng.integers(0, 20, users * 6)})
    return split_leave_last_two(read(table, cleaning=Cleaning(repeats="allow")).interactions)


def _answers(folder: Path) -> list[Any]:
    """What a run says: some lists, its split, its history, where it would go on."""
    from towpath.serving.recommender import load
    from towpath.serving.run import Run
    from towpath.training.checkpoint import load_checkpoint

    run, recommender = Run(folder), load(folder)
    lists = [recommender.recommend(user, k=5) for user in (0, 1, 2)]
    progress = load_checkpoint(folder / "checkpoint.safetensors").progress
    return [str(lists), run.split.fingerprint, run.history, progress.history, run.record["recipe"]]


class Settings:
    """Settings of every model and method: refused, or finite."""

    def __init__(self, folder: Path) -> None:
        from towpath.methods.registry import METHODS
        from towpath.models.registry import MODELS

        self._models, self._methods = list(MODELS), list(METHODS)

    def __call__(self, rng: Rng) -> str:
        from towpath.cli.options import parse_grid, parse_settings
        from towpath.methods.recipe import Recipe

        model = self._models[rng.integers(len(self._models))]
        method = self._methods[rng.integers(len(self._methods))] if rng.random() < 0.5 else "plain"

        def resolve() -> str:
            known = list(Recipe(model, method).resolved()["settings"])
            pairs = []
            for _ in range(int(rng.integers(1, 4))):
                key = (
                    known[rng.integers(len(known))]
                    if rng.random() < 0.95
                    else "".join(map(chr, rng.bytes(3)))
                )
                pairs.append(f"{key}={as_json(anything(rng), rng).decode(errors='replace')}")
            (parse_grid if rng.random() < 0.1 else parse_settings)(pairs)
            resolved = Recipe(model, method, parse_settings(pairs)).resolved()["settings"]
            json.dumps(resolved, allow_nan=False)  # which raises for what is not finite
            return "read"

        return refused_or(resolve)


@dataclass
class Requests:
    """Requests to the server, without its network: 200 or 4xx with JSON, never 500."""

    folder: Path

    def __post_init__(self) -> None:
        from towpath.serving.http.app import make_app
        from towpath.serving.http.service import Service
        from towpath.serving.http.settings import ArmSettings, Place, ServerSettings

        logging.getLogger("towpath.serving").setLevel(logging.CRITICAL)
        _make_run(self.folder / "served", 0, 0)
        self._loop = asyncio.new_event_loop()
        settings = ServerSettings(arms=(ArmSettings("a", str(self.folder / "served")),), log=None)
        service = self._loop.run_until_complete(_made(lambda: Service(settings, Place())))
        self._loop.run_until_complete(service.start())
        self._app, self._service = make_app(service), service

    def close(self) -> None:
        """Stop what goes on in the background."""
        self._loop.run_until_complete(self._service.stop())
        self._loop.close()

    BODIES = (
        ("/recommend", {"user": 1, "k": 3, "candidates": [1, 2, 3], "exclude": [1]}),
        ("/recommend", {"user": "1", "k": 5}),
        ("/recommend", {"history": [1, 2], "k": 3}),
        ("/similar", {"item": 3, "k": 4}),
        ("/outcomes", [{"event_id": "e", "request_id": "r", "item": 1, "kind": "click"}]),
        ("/outcomes", {"event_id": "e", "request_id": "r", "item": 1, "kind": "order", "units": 1}),
    )  # fmt: skip

    def __call__(self, rng: Rng) -> str:
        path, body = self.BODIES[rng.integers(len(self.BODIES))]
        content = as_json(changed(body, rng), rng)
        if rng.random() < 0.2:
            content = damaged(content, rng)
        method = "POST" if rng.random() < 0.97 else ("GET", "PUT", "")[rng.integers(3)]
        path = path if rng.random() < 0.97 else damaged(path.encode(), rng).decode("latin-1")
        status, answer = self._loop.run_until_complete(self._ask(method, path, content))
        assert status < 500, f"{status} to {content[:200]!r}"
        json.loads(answer)
        return "read" if status == 200 else "refused"

    async def _ask(self, method: str, path: str, content: bytes) -> tuple[int, bytes]:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(errors="replace"),
            "headers": [], "query_string": b"", "client": ("127.0.0.1", 1), "root_path": "", "scheme": "http",
            "server": ("127.0.0.1", 80), "http_version": "1.1",
        }  # fmt: skip
        await self._app(scope, receive, send)
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


async def _made(make: Callable[[], Any]) -> Any:
    return make()


# How many of a thousand inputs each target gets; files take longest.
TARGETS: dict[str, tuple[type, int]] = {
    "readers": (Readers, 15),
    "runs": (Runs, 10),
    "settings": (Settings, 375),
    "requests": (Requests, 600),
}
