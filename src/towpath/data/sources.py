"""A built-in dataset, a file, a glob or a folder, read and cleaned into Interactions."""

import glob
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pyarrow as pa

from towpath.boundary import reading as guarded
from towpath.data.builtin_datasets import BUILTIN_DATASETS, BuiltinDataset, local_copy
from towpath.data.cleaning import Cleaning, Step, refuse_one_sided
from towpath.data.columns import REQUIRED, Columns
from towpath.data.encoding import encode as to_interactions
from towpath.data.engine import Engine, open_engine
from towpath.data.feature_files import FeatureReport, read_features
from towpath.data.feature_kinds import (
    FeatureFiles,
    FeatureForm,
    GivenColumns,
    parse_feature_spec,
    refuse_unknown_columns,
)
from towpath.data.features import FeatureTable
from towpath.data.fetch import checked_copy
from towpath.data.frames import DataFrame, is_frame, to_arrow
from towpath.data.interactions import Interactions
from towpath.data.layout import KINDS, File, is_data_file
from towpath.data.meaning import Positive, RowCounts
from towpath.data.readers import Asked, Raw, read_raw
from towpath.data.scan import column_names
from towpath.data.spark_engine import SparkEngine
from towpath.data.spark_scan import list_files
from towpath.data.sql import Side
from towpath.data.unpacking import plain_parquet, unpacked_member
from towpath.errors import DataError, unknown_name
from towpath.files import scratch_folder


@dataclass(frozen=True)
class Reading:
    """What was read, from where, what was guessed on the way, and what cleaning dropped."""

    interactions: Interactions
    source: str
    notes: tuple[str, ...]
    steps: tuple[Step, ...]
    counts: RowCounts  # rows of the file, before cleaning
    roles: Mapping[str, str]  # role -> the file's own name of its column
    features: tuple[FeatureReport, ...] = ()  # what became of feature files, where there are some


# From the relation `raw` to interactions, and what each step of cleaning dropped.
Encode = Callable[[Engine, Raw, Cleaning], tuple[Interactions, tuple[Step, ...]]]


def read(
    data: str | Path | DataFrame,
    *,
    data_dir: Path | None = None,
    columns: Columns = Columns(),  # noqa: B008  # frozen
    positive: Positive = Positive(),  # noqa: B008  # frozen
    cleaning: Cleaning = Cleaning(),  # noqa: B008  # frozen
    features: FeatureFiles = FeatureFiles(),  # noqa: B008  # frozen
    complete: bool = True,
    engine: str = "duckdb",
    encode: Encode = to_interactions,
) -> Reading:
    """The events of a built-in dataset (looked for in `data_dir`), path, glob, folder or data frame.

    They are cleaned and encoded. A data frame is anything that speaks Arrow: pandas, polars, pyarrow, DuckDB.
    Features come from the files that are named, else from those that come with a built-in dataset. Data that
    are not `complete`, such as a test file, may have a single user or item. The `engine` does not change what
    comes out: duckdb, spark, or the address of a Spark master. `encode` makes the interactions.
    """
    what = "the data frame" if is_frame(data) else data
    with guarded(what), scratch_folder() as scratch:
        with open_engine(engine) as connection:
            found = _found(connection, data, data_dir, scratch)
            columns = _merge(columns, found.entry.columns) if found.entry else columns
            asked = Asked(columns, positive, found.entry.missing_value if found.entry else None)
            raw = read_raw(connection, found.data, asked)
            interactions, steps = encode(connection, raw, cleaning)
        roles = {role: raw.source.column(role) for role in raw.source.indices}
        reading = Reading(interactions, found.source, (*found.notes, *raw.notes), steps, raw.counts, roles)
        sources = list(_feature_sources(features, found.entry, found.copy, scratch))
        return _checked(_with_features(reading, sources, features), complete)


@dataclass(frozen=True)
class _Found:
    """What is to be read, what to call it, and which built-in dataset it is, if it is one."""

    data: list[File] | pa.Table
    source: str
    entry: BuiltinDataset | None = None
    copy: Path | None = None
    notes: tuple[str, ...] = ()  # what is noticed about the copy


def _found(connection: Engine, data: str | Path | DataFrame, data_dir: Path | None, scratch: Path) -> _Found:
    if is_frame(data):
        return _Found(to_arrow(data), "a data frame")
    entry = BUILTIN_DATASETS.get(str(data))
    if entry is None:
        files, source, copy = _files(connection, str(data)), str(data), None
    else:
        copy = local_copy(entry, data_dir)
        files, source = [_member(entry, copy, scratch)], f"{entry.name} ({copy})"
    plain = [plain_parquet(file, scratch / str(number)) for number, file in enumerate(files)]
    notes = checked_copy(entry, copy) if entry and copy else ()
    return _Found(plain, source, entry, copy, notes)


def _files(connection: Engine, data: str) -> list[File]:
    """The files here, or at an address that only Spark knows."""
    if "://" not in data:
        return [*find_files(data)]
    if isinstance(connection, SparkEngine):
        return [*list_files(connection, data)]
    raise DataError(f"{data} is no file on this machine; addresses are read by --engine spark.")


def _checked(reading: Reading, complete: bool) -> Reading:
    if complete:
        refuse_one_sided(reading.steps)
    return reading


@dataclass(frozen=True)
class _FeatureSource:
    """The files with the features of one side."""

    side: Side
    files: list[File]
    form: FeatureForm | None  # of a built-in dataset


def _feature_sources(
    given: FeatureFiles, entry: BuiltinDataset | None, copy: Path | None, scratch: Path
) -> Iterator[_FeatureSource]:
    """The feature files that were named, or else those that a built-in dataset has with its events."""
    sides: tuple[tuple[Side, str | Path | None, FeatureForm | None], ...] = (
        ("user", given.users, entry.user_features if entry else None),
        ("item", given.items, entry.item_features if entry else None),
    )
    for side, path, form in sides:
        if path is not None:
            files = find_files(str(path))
            places = [scratch / f"{side}-{place}" for place in range(len(files))]
            yield _FeatureSource(side, list(map(plain_parquet, files, places)), None)
        elif form is not None and entry is not None and copy is not None:
            sibling = copy.with_name(Path(form.member).name)
            file = unpacked_member(copy, form.member, scratch) if copy.suffix == ".zip" else sibling
            if file is not None and file.is_file():
                yield _FeatureSource(side, [file], form)


def _with_features(reading: Reading, sources: list[_FeatureSource], given: FeatureFiles) -> Reading:
    """The same events with the features of their users and items, and what became of the files."""
    events = reading.interactions
    specs = {column: parse_feature_spec(column, kind) for column, kind in given.kinds.items()}
    reports, columns, tables = [], list[str](), dict[Side, FeatureTable]()
    for source in sources:
        mine = {
            c: parse_feature_spec(c, k) for c, k in (source.form.kinds if source.form else {}).items()
        } | specs
        ids = events.user_ids if source.side == "user" else events.item_ids
        known = GivenColumns(mine, reading.roles[source.side], source.form)
        tables[source.side], report = read_features(source.files, source.side, ids, known)
        reports.append(report)
        columns += [*report.kinds, *report.left_out]
    refuse_unknown_columns(specs, columns)
    with_features = events.with_features(tables.get("user"), tables.get("item"))
    return replace(reading, interactions=with_features, features=tuple(reports))


def columns_among(columns: Columns, data: str | Path | DataFrame) -> Columns:
    """These columns as far as the data have them; optional ones that are not there are not looked for."""
    if is_frame(data):
        names = set(to_arrow(data).column_names)
    elif str(data) in BUILTIN_DATASETS:
        return columns
    else:
        with guarded(data), open_engine("duckdb") as connection:
            names = set(column_names(connection, find_files(str(data))))
    given = {field.name: getattr(columns, field.name) for field in fields(columns)}
    optional = {role: name if name in names else "" for role, name in given.items() if role not in REQUIRED}
    return replace(columns, **optional)


def find_files(data: str) -> list[Path]:
    """The files that a path, glob or folder stands for, in the order of their names."""
    if not data.strip():
        raise DataError("The path of the data should not be empty; give a file, a glob or a folder.")
    with guarded(repr(data)):
        path = Path(data).expanduser()
        return _existing(data, path)


def _existing(data: str, path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if is_data_file(file))
        if not files:
            raise DataError(
                f"The folder {data} holds no file with a known ending ({', '.join(KINDS)}, .gz, .zst)."
            )
        return files
    if path.exists():
        if not path.is_file():
            raise DataError(
                f"{data} should be a file, but it is a pipe or a device; write the data to a file."
            )
        return [path]
    files = sorted(Path(match) for match in glob.glob(str(path), recursive=True) if Path(match).is_file())
    if files:
        return files
    if glob.has_magic(data) or path.suffix or len(path.parts) > 1:
        raise DataError(
            f"There is no file {data}; check the path, or see `towpath data list` for built-in datasets."
        )
    raise unknown_name("dataset or file", data, BUILTIN_DATASETS)


def _merge(given: Columns, usual: Columns) -> Columns:
    """The columns of a built-in dataset, but for those that the user gave."""
    return replace(usual, **{f.name: getattr(given, f.name) for f in fields(given) if getattr(given, f.name)})


def _member(entry: BuiltinDataset, copy: Path, scratch: Path) -> Path:
    """The file of events, unpacked into the scratch folder if it lies in an archive."""
    if entry.member is None or copy.suffix != ".zip":
        return copy
    file = unpacked_member(copy, entry.member, scratch)
    if file is None:
        raise DataError(f"{copy} should contain {entry.member} but does not; fetch {entry.name} again.")
    return file
