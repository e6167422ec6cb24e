"""Training, validation and test parts of one table of interactions."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, StringConstraints

from towpath.boundary import stored
from towpath.data import sql
from towpath.data.engine import open_engine
from towpath.data.feature_parquet import features_json, read_feature_table, write_feature_table
from towpath.data.interactions import COLUMNS, MISSING_TIME, Interactions
from towpath.data.joining import join
from towpath.data.parquet import read_columns, read_ids, write_ids, write_table
from towpath.data.vocabulary import Id, Vocabulary
from towpath.errors import ArtifactError, ConfigError, DataError
from towpath.files import Form, kind_of, new_folder, read_manifest, write_manifest
from towpath.mapped import count_codes
from towpath.memory import refuse_beyond

if TYPE_CHECKING:  # reading and splitting need no torch, which the generators bring along
    from towpath.rng import Rng

Part = Literal["validation", "test"]
PARTS = ("train", "validation", "test")
FEATURES = ("user_features", "item_features")


class _Contents(BaseModel):
    """What the manifest of a split says."""

    description: str
    fingerprint: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    outside: list[str] = []


STORED_AS = Form(
    "split", 1, ("users.parquet", "items.parquet", *(f"{part}.parquet" for part in PARTS)), _Contents
)
LEAVE_LAST_TWO = "leave-last-two-out"  # how descriptions of such splits begin
# Hashed piece by piece, so that a fingerprint needs no copy of the table.
CHUNK_ROWS = 1 << 20


@dataclass(frozen=True)
class Split:
    """Three parts that share vocabularies and add up to the whole."""

    train: Interactions
    validation: Interactions
    test: Interactions
    description: str  # how it was made, e.g. "leave-last-two-out"; part of the fingerprint
    # Parts that come from files of their own: in these, pairs that also occur in training stay targets.
    outside: tuple[str, ...] = ()

    def part(self, name: Part) -> Interactions:
        """The part that is evaluated on."""
        return self.validation if name == "validation" else self.test

    @cached_property
    def before_test(self) -> Interactions:
        """Training and validation together: what is known when test is evaluated."""
        return join(self.train, self.validation)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of all columns, both vocabularies, the description, and features if there are some."""
        digest = hashlib.sha256(self.description.encode())
        for ids in (self.train.user_ids, self.train.item_ids):
            _update(digest, f"ids {len(ids)} {ids.values.type}", *ids.hashable())
        for part in (self.train, self.validation, self.test):
            for name in COLUMNS:
                column = getattr(part.rows, name)
                if column is not None:
                    _update(digest, f"{name} {len(column)} {column.dtype}", column)
        for name in FEATURES:
            table = getattr(self.train, name)
            if table is not None:
                _update(digest, f"{name} {features_json(table)}", table.starts, table.codes, table.numbers)
        return digest.hexdigest()


def split_leave_last_two(interactions: Interactions, *, engine: str = "duckdb") -> Split:
    """Each user's last positive is for test, the one before for validation, the rest for training.

    Last by (time, row of the file); without a time column by the row alone, which the description says.
    Users with fewer than three positives stay in training. The rows of one request (slate) stay together: the
    last request with a positive is for test then. What was shown in between goes to the part that it follows.
    """
    interactions = interactions.rows
    description = last_two_described(timed=interactions.times is not None)
    if interactions.times is not None:
        _refuse_missing_times(interactions, interactions.times, "split_leave_last_two")
    if interactions.labels is not None:
        parts = _parts(interactions, sql.LEAVE_LAST_TWO_POSITIVES, engine)
    elif engine == "duckdb":
        parts = _last_two(interactions)
    else:
        parts = _parts(interactions, sql.LEAVE_LAST_TWO, engine)
    return _split(interactions, parts, description)


def _last_two(interactions: Interactions) -> NDArray[np.int8]:
    """What `sql.LEAVE_LAST_TWO` gives: the part of each row of a table that is in order."""
    columns = (getattr(interactions, name) for name in COLUMNS)
    size = len(interactions) + sum(column.nbytes for column in columns if column is not None)
    refuse_beyond(size, f"Splitting {len(interactions):,} events", "clean more away")
    lengths = count_codes(interactions.users, interactions.n_users)
    ends = np.cumsum(lengths)[lengths >= sql.SHORTEST]
    parts = np.full(len(interactions), sql.TRAIN, dtype=np.int8)
    parts[ends - 1], parts[ends - 2] = sql.TEST, sql.VALIDATION
    return parts


def last_two_described(*, timed: bool) -> str:
    """What leaving out the last two is called."""
    return LEAVE_LAST_TWO if timed else f"{LEAVE_LAST_TWO} by order of the file (no times)"


def time_described(cuts: Sequence[int]) -> str:
    """What a split at these two moments is called."""
    return f"by time, validation from {cuts[0]}, test from {cuts[1]}"


def random_described(validation_share: float, test_share: float, seed: int) -> str:
    """What a split at random is called."""
    return f"at random, validation {validation_share:g}, test {test_share:g}, seed {seed}"


def cut_places(events: int, validation_share: float, test_share: float) -> tuple[int, int]:
    """How many events should come before each of the two moments."""
    return round(events * (1 - test_share - validation_share)), round(events * (1 - test_share))


def split_by_time(
    interactions: Interactions,
    *,
    validation_share: float = 0.1,
    test_share: float = 0.1,
    engine: str = "duckdb",
) -> Split:
    """The latest `test_share` of all events is for test, the `validation_share` before it for validation.

    Two cuts in time for everyone, so nothing is learnt from the future; events of one moment stay together,
    which may make the later parts a little smaller. Users with fewer than three events stay in training.
    """
    check_shares(validation_share, test_share)
    interactions = interactions.rows
    if interactions.times is None:
        raise no_times()
    _refuse_missing_times(interactions, interactions.times, "split_by_time")
    cuts = _cuts(
        interactions,
        interactions.times,
        engine,
        *cut_places(len(interactions), validation_share, test_share),
    )
    statement = sql.parts_by_threshold("event_time", *cuts, labelled=interactions.labels is not None)
    parts = _parts(interactions, statement, engine, event_time=interactions.times)
    return _split(interactions, parts, time_described(cuts))


def split_at_random(
    interactions: Interactions,
    *,
    validation_share: float = 0.1,
    test_share: float = 0.1,
    rng: "Rng",
    engine: str = "duckdb",
) -> Split:
    """Each event goes to validation or test with these chances, drawn by the generator "split".

    Users with fewer than three events stay in training.
    """
    check_shares(validation_share, test_share)
    interactions = interactions.rows
    draws = rng.numpy("split").random(len(interactions))
    if interactions.requests is not None:
        # The rows of a slate go together.
        draws = rng.numpy("split").random(int(interactions.requests.max()) + 1)[interactions.requests]
    thresholds = draw_thresholds(validation_share, test_share)
    statement = sql.parts_by_threshold("draw", *thresholds, labelled=interactions.labels is not None)
    parts = _parts(interactions, statement, engine, draw=draws)
    return _split(interactions, parts, random_described(validation_share, test_share, rng.seed))


def draw_thresholds(validation_share: float, test_share: float) -> tuple[float, float]:
    """From which draw on an event is for validation, and from which for test."""
    return 1 - validation_share - test_share, 1 - test_share


def split_with_files(
    interactions: Interactions,
    own: Callable[[Interactions], Split],
    *,
    validation: Interactions | None = None,
    test: Interactions | None = None,
) -> Split:
    """A split whose validation or test part, or both, come from files of their own.

    With both, all interactions train. With one of them, `own` splits the interactions first: its last part
    stands in for the one that is not given, and the other goes back to training.
    """
    given = {"validation": validation, "test": test}
    outside = tuple(name for name, part in given.items() if part is not None)
    if validation is not None and test is not None:
        description = "validation and test from files"
        return assembled(interactions, validation, test, description, outside)
    split = own(interactions)
    if not outside:
        return split
    train = join(split.train, split.validation)
    description = f"{split.description}; {outside[0]} from a file"
    if test is not None:
        return assembled(train, split.test, test, description, outside)
    return assembled(train, validation or split.validation, split.test, description, outside)


def save_split(split: Split, folder: Path) -> None:
    """The split as a folder of Parquet files with a manifest, written as a whole or not at all."""
    about = {
        "description": split.description,
        "fingerprint": split.fingerprint,
        "outside": list(split.outside),
    }
    with new_folder(folder) as partial:
        write_ids(split.train.user_ids, partial / "users.parquet")
        write_ids(split.train.item_ids, partial / "items.parquet")
        for name in PARTS:
            columns = {column: getattr(getattr(split, name).rows, column) for column in COLUMNS}
            present = {column: values for column, values in columns.items() if values is not None}
            write_table(pa.table(present), partial / f"{name}.parquet")
        for name in FEATURES:
            if (table := getattr(split.train, name)) is not None:
                write_feature_table(table, partial / f"{name}.parquet")
        write_manifest(partial, STORED_AS, about, sorted(path.name for path in partial.iterdir()))


def load_split(folder: Path) -> Split:
    """The split in this folder, once every byte of it has been checked."""
    manifest = read_manifest(folder, STORED_AS)
    with stored(folder):
        users, items = read_ids(folder / "users.parquet"), read_ids(folder / "items.parquet")
        features = [
            read_feature_table(folder / f"{name}.parquet") if f"{name}.parquet" in manifest["files"] else None
            for name in FEATURES
        ]
        train, validation, test = (
            load_part(folder / f"{name}.parquet", users, items).with_features(*features) for name in PARTS
        )
        outside = tuple(manifest.get("outside", ()))
        split = Split(train, validation, test, manifest["description"], outside)
    if split.fingerprint != manifest.get("fingerprint"):
        raise ArtifactError(f"{folder} does not have the fingerprint that its manifest says; make it again.")
    return split


def is_split(folder: Path) -> bool:
    """Whether a folder says of itself that it holds a split."""
    return folder.is_dir() and kind_of(folder) == STORED_AS.kind


def preparation_of(folder: Path) -> dict[str, Any]:
    """What the manifest of a split says about where the data came from; any JSON."""
    return dict(read_manifest(folder, STORED_AS).get("preparation") or {"source": str(folder)})


def load_part(path: Path, users: Vocabulary, items: Vocabulary) -> Interactions:
    """The rows of a part: of one file, or of a folder of files."""
    columns: dict[str, Any] = read_columns(path if path.is_file() else path.with_suffix(""))
    return Interactions(user_ids=users, item_ids=items, **columns).positives


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def _update(digest: _Digest, heading: str, *columns: NDArray[np.generic]) -> None:
    digest.update(f"\0{heading}\0".encode())
    for column in columns:
        for start in range(0, len(column), CHUNK_ROWS):
            digest.update(column[start : start + CHUNK_ROWS].tobytes())


def no_times() -> DataError:
    """The error for a split by time of data without times."""
    return DataError(
        "split_by_time needs a time for every interaction, but the data have no time column; "
        "name it with --time-col, or use split_leave_last_two or split_at_random (--split random)."
    )


def check_shares(validation: float, test: float) -> None:
    """Raise for shares that leave no part of the events to train on."""
    if not (0 < validation < 1 and 0 < test < 1 and validation + test < 1):
        raise ConfigError(
            "The shares of validation and test should each be above 0 and together below 1, but "
            f"{validation:g} and {test:g} came."
        )


def _refuse_missing_times(interactions: Interactions, times: NDArray[np.int64], who: str) -> None:
    missing = np.flatnonzero(times == MISSING_TIME)
    if len(missing):
        user = interactions.user_ids.ids(interactions.users[missing[:1]])[0]
        item = interactions.item_ids.ids(interactions.items[missing[:1]])[0]
        raise missing_times(who, (len(missing), len(interactions)), (user, item))


def missing_times(who: str, counts: tuple[int, int], first: tuple[Id, Id]) -> DataError:
    """The error for events without a time, of which there are counts[0] of counts[1]."""
    return DataError(
        f"{who} needs a time for every interaction; {counts[0]:,} of {counts[1]:,} have none "
        f"(first: user {first[0]!r}, item {first[1]!r}). Use split_at_random (--split random), or drop them "
        "with interactions.timed()."
    )


def _ordered(interactions: Interactions, extra: dict[str, NDArray[np.generic]]) -> pa.Table:
    """The columns that a split looks at, as Arrow without a copy where it can be helped."""
    places = np.arange(len(interactions), dtype=np.int64)
    columns = {"place": places, "user_code": interactions.users, **extra}
    if interactions.labels is not None:
        columns["positive"] = interactions.labels
        columns["request"] = places if interactions.requests is None else interactions.requests
    return pa.table(columns)


def _cuts(interactions: Interactions, times: NDArray[np.int64], engine: str, *events: int) -> list[int]:
    """The moments that leave this many events before them."""
    with open_engine(engine) as connection:
        connection.register("ordered", _ordered(interactions, {"event_time": times}))
        found = [connection.execute(sql.first_moment_after(n)).fetchone() for n in events]
    return distinct_cuts(found)


def distinct_cuts(found: Sequence[tuple[Any, ...] | None]) -> list[int]:
    """The moments that were found; raises when the events have too few."""
    cuts = [row[0] for row in found if row and row[0] is not None]
    if len(set(cuts)) < len(found):
        raise DataError(
            "split_by_time needs enough distinct times to cut at, but too many events share their time; "
            "use split_leave_last_two (--split leave-last-two) or other shares."
        )
    return cuts


def _parts(
    interactions: Interactions, statement: str, engine: str, **extra: NDArray[np.generic]
) -> NDArray[np.int8]:
    """The part of each row, in their order: (n,)."""
    parts = np.empty(len(interactions), dtype=np.int8)
    with open_engine(engine) as connection:
        connection.register("ordered", _ordered(interactions, extra))
        for batch in connection.sql(statement).to_arrow_reader(1 << 17):
            parts[batch.column(0).to_numpy()] = batch.column(1).to_numpy()
    return parts


def _split(interactions: Interactions, parts: NDArray[np.int8], description: str) -> Split:
    train, validation, test = (
        interactions.where(parts == part).positives for part in (sql.TRAIN, sql.VALIDATION, sql.TEST)
    )
    refuse_empty_parts(train, validation, test, description)
    return assembled(train, validation, test, description)


def refuse_empty_parts(
    train: Interactions, validation: Interactions, test: Interactions, description: str
) -> None:
    """Raise if a part has no positives."""
    if not (len(validation) and len(test) and len(train)):
        raise DataError(
            f"A split ({description}) should give each part some positives, but training has {len(train):,}, "
            f"validation {len(validation):,} and test {len(test):,}; only users with at least "
            f"{sql.SHORTEST} of them are split, so bring more data, clean less or ask for larger shares."
        )


def assembled(
    train: Interactions,
    validation: Interactions,
    test: Interactions,
    description: str,
    outside: tuple[str, ...] = (),
) -> Split:
    """The split, with features encoded as if only users and items with training events were known."""
    users = train.user_features and train.user_features.fitted(train.histories.lengths > 0)
    items = train.item_features and train.item_features.fitted(train.item_counts > 0)
    train, validation, test = (part.with_features(users, items) for part in (train, validation, test))
    return Split(train, validation, test, description, outside)
