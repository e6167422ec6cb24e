"""Logs of a policy with its propensities: what was shown where, with which chance, and what it earned."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from towpath.boundary import reading
from towpath.data.engine import engine, quote_identifier
from towpath.data.numbers import refuse_where
from towpath.data.scan import Source, file_errors, open_table
from towpath.data.sources import find_files
from towpath.data.vocabulary import UNKNOWN, Vocabulary
from towpath.errors import DataError

Codes = NDArray[np.int64]
Values = NDArray[np.float64]

# Compared in lower case; the first that a file has is taken where no column was named.
_USUAL = {
    "item": ("item_id", "item", "action", "movie_id", "video_id", "product_id"),
    "label": ("click", "clicked", "is_click", "label", "reward"),
    "position": ("position", "slot", "rank"),
    "propensity": ("propensity_score", "propensity", "pscore", "action_prob"),
    "user": ("user_id", "user", "userid"),
}
_OPTIONS = {"item": "--item-col", "label": "--label-col"}
# One below this is no chance that anything was logged with, and fourth powers of its weight overflow.
_LEAST_PROPENSITY = 1e-60
ONE_POSITION = ("",)  # of a log that knows no positions


@dataclass(frozen=True)
class LogColumns:
    """The names of the columns; None is looked for under the usual names."""

    item: str | None = None
    label: str | None = None
    position: str | None = None
    propensity: str | None = None
    user: str | None = None
    features: tuple[str, ...] = ()  # columns that estimated propensities may depend on
    request: str | None = None  # rows of one request were shown together


@dataclass(frozen=True)
class BanditLog:
    """One row for every time that something was shown, in the order of the file; all columns (n,)."""

    actions: Codes  # into item_ids
    positions: Codes  # into position_ids
    rewards: Values  # within [0, 1]
    item_ids: Vocabulary  # the actions that were possible
    position_ids: tuple[str, ...] = ONE_POSITION
    propensities: Values | None = None  # of what was shown, above 0 and at most 1; None where not logged
    contexts: Codes | None = None  # of users, into context_ids; None where nobody is known
    context_ids: Vocabulary | None = None
    requests: Codes | None = None  # which rows were shown together, from 0; None where it was not asked for
    features: Codes | None = None  # (n, f) codes of the columns that propensities may depend on
    notes: tuple[str, ...] = field(default=())
    warnings: tuple[str, ...] = field(default=())  # what makes any estimate from these rows doubtful

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def n_actions(self) -> int:
        """How many actions were possible; not all of them were taken."""
        return len(self.item_ids)

    @property
    def n_positions(self) -> int:
        """How many positions there are."""
        return len(self.position_ids)

    def counts(self) -> NDArray[np.float64]:
        """How often each action was taken at each position: (positions, actions)."""
        flat = np.bincount(self.positions * self.n_actions + self.actions, minlength=self._cells)
        return flat.reshape(self.n_positions, self.n_actions).astype(np.float64)

    def over(self, items: Vocabulary) -> "BanditLog":
        """The same rows with actions as codes into `items`, which must hold all that were taken."""
        codes = items.codes(self.item_ids.ids(np.arange(self.n_actions)))
        return replace(self, actions=codes[self.actions], item_ids=items)

    def with_propensities(self, propensities: Values, note: str) -> "BanditLog":
        """The same rows with these propensities, and how they came about."""
        return replace(self, propensities=propensities, notes=(*self.notes, note))

    @property
    def _cells(self) -> int:
        return self.n_positions * self.n_actions


def read_items(path: str | Path, item_column: str | None = None) -> Vocabulary:
    """The action space: the ids of an item file, in its order."""
    with reading(path), engine() as connection:
        source = open_table(connection, find_files(str(path)))
        with file_errors(source):
            column = _column("item", item_column, source)
            ids = _texts(connection, source, column, f"Every row of an item file needs an id ({column!r})")
    double = len(ids.codes) - len(ids.labels)
    if double:
        raise DataError(
            f"Each item should stand once in {source.label}, but {double:,} of {len(ids.codes):,} rows "
            "repeat an id; remove the repeats."
        )
    return Vocabulary(pa.array([ids.labels[code] for code in ids.codes], pa.string()))


def read_bandit_log(
    path: str | Path,
    columns: LogColumns | None = None,
    items: Vocabulary | None = None,
    *,
    skip: Collection[str] = (),
) -> BanditLog:
    """The log in these files, with every row that is there; `items` is the action space, else what was shown.

    Ids are compared as text, so that 7 and "7" of different files are one item. Parts to `skip`
    (label, propensity) are not looked at.
    """
    with reading(path), engine() as connection:
        source = open_table(connection, find_files(str(path)))
        with file_errors(source):
            return _Reading(connection, source, columns or LogColumns()).read(items, skip)


class _Reading:
    """One log on its way into memory."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, source: Source, columns: LogColumns) -> None:
        self._connection, self._source, self._told = connection, source, columns
        self._notes: list[str] = []

    def read(self, items: Vocabulary | None, skip: Collection[str]) -> BanditLog:
        """The log."""
        if not self._count("true"):
            raise DataError(f"{self._source.label} should hold logged rows but has none.")
        shown = self._ids("item")
        vocabulary = items or Vocabulary(pa.array(sorted(shown.labels, key=_order), pa.string()))
        positions, position_ids = self._positions()
        users = self._optional("user")
        user_ids = None if users is None else Vocabulary(pa.array(users.labels, pa.string()))
        return BanditLog(
            actions=self._actions(shown, vocabulary),
            positions=positions,
            rewards=np.zeros(len(shown.codes)) if "label" in skip else self._rewards(),
            item_ids=vocabulary,
            position_ids=position_ids,
            propensities=None if "propensity" in skip else self._propensities(),
            contexts=None if users is None else users.codes,
            context_ids=user_ids,
            requests=self._requests(),
            features=self._features(),
            notes=tuple(self._notes),
        )

    def _actions(self, shown: "_Texts", items: Vocabulary) -> Codes:
        codes = items.codes(shown.labels)
        bad = np.flatnonzero(codes == UNKNOWN)
        if len(bad):
            rows = int(np.isin(shown.codes, bad).sum())
            raise DataError(
                f"Everything shown should be among the {len(items):,} items of the item file, but {rows:,} "
                f"of {len(shown.codes):,} rows of {self._source.label} show {len(bad):,} that are not "
                f"(first: {shown.labels[bad[0]]!r}); give an item file with all of them."
            )
        return codes[shown.codes]

    def _positions(self) -> tuple[Codes, tuple[str, ...]]:
        found = self._optional("position")
        if found is None:
            return np.zeros(self._count("true"), dtype=np.int64), ONE_POSITION
        ordered = _ranked(found, _order)
        return ordered.codes, tuple(ordered.labels)

    def _rewards(self) -> Values:
        column = self._required("label")
        return self._numbers(
            column,
            "BETWEEN 0 AND 1",
            f"A reward (column {column!r}) should be a number within 0 and 1",
            "Scale the rewards to 0 to 1, or name another column with --label-col.",
        )

    def _propensities(self) -> Values | None:
        column = self._found("propensity")
        if column is None:
            return None
        return self._numbers(
            column,
            f"BETWEEN {_LEAST_PROPENSITY} AND 1",
            f"A propensity (column {column!r}) should be above 0 and at most 1 in every row",
            "Log the chance of what was shown, or leave the column out with --estimate-propensities.",
        )

    def _requests(self) -> Codes | None:
        if self._told.request is None:
            return None
        column = _column("request", self._told.request, self._source)
        problem = f"Every row needs the request ({column!r})"
        return _texts(self._connection, self._source, column, problem).codes

    def _features(self) -> Codes | None:
        if not self._told.features:
            return None
        columns = [_column("feature", column, self._source) for column in self._told.features]
        texts = [_texts(self._connection, self._source, column, None) for column in columns]
        return np.stack([text.codes for text in texts], axis=1)

    def _numbers(self, column: str, holds: str, problem: str, advice: str) -> Values:
        number = _number(self._source, column)
        # NULL would make a condition NULL, which counts as false: ask for what holds, then negate.
        self._refuse(f"NOT coalesce({number} {holds}, false)", column, problem, advice)
        query = f"SELECT {number} FROM source ORDER BY file_row"
        return np.asarray(self._connection.execute(query).fetchnumpy().popitem()[1], dtype=np.float64)

    def _ids(self, part: str) -> "_Texts":
        column = self._required(part)
        return _texts(self._connection, self._source, column, f"Every row needs the {part} ({column!r})")

    def _optional(self, part: str) -> "_Texts | None":
        column = self._found(part)
        problem = f"Every row needs the {part} ({column!r})"
        return None if column is None else _texts(self._connection, self._source, column, problem)

    def _required(self, part: str) -> str:
        column = self._found(part)
        if column is None:
            names = ", ".join(self._source.names)
            raise DataError(
                f"No column of {self._source.label} has a usual name for the {part}; columns there: {names}. "
                f"Say which one it is with {_OPTIONS[part]}."
            )
        return column

    def _found(self, part: str) -> str | None:
        told = getattr(self._told, part)
        if told is not None:
            return _column(part, told, self._source)
        lower = {column.lower(): column for column in self._source.names}
        found = next((lower[usual] for usual in _USUAL[part] if usual in lower), None)
        note = f"{part} column: {found!r} (guessed)"
        if found is not None and note not in self._notes:
            self._notes.append(note)
        return found

    def _count(self, condition: str) -> int:
        [(count,)] = self._connection.execute(f"SELECT COUNT(*) FROM source WHERE {condition}").fetchall()
        return int(count)

    def _refuse(self, condition: str, column: str, problem: str, advice: str) -> None:
        example = f"'VARCHAR', {_text(self._source, column)}"
        refuse_where(self._connection, self._source, condition, example, problem, advice)


def _column(part: str, told: str | None, source: Source) -> str:
    """The column of this name, or the first with a usual one."""
    lower = {column.lower(): column for column in source.names}
    usual = next((lower[name] for name in _USUAL.get(part, ()) if name in lower), None)
    found = (told if told in source.names else None) if told is not None else usual
    if found is None:
        wanted = repr(told) if told is not None else "with a usual name"
        raise DataError(
            f"There is no column {wanted} for the {part} in {source.label}; columns there: "
            f"{', '.join(source.names)}."
        )
    return found


def _text(source: Source, column: str) -> str:
    """SQL for a column as text, NULL where nothing is given."""
    quoted = quote_identifier(column)
    plain = f"({quoted} ->> '$')" if source.layout.kind == "json" else f"CAST({quoted} AS VARCHAR)"
    return f"NULLIF(TRIM({plain}), '')"


def _number(source: Source, column: str) -> str:
    """SQL for a column as a number, also of true and false; NULL where it is none."""
    text = _text(source, column)
    truth = f"CASE lower({text}) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
    return f"coalesce(TRY_CAST({text} AS DOUBLE), {truth})"


@dataclass(frozen=True)
class _Texts:
    """A column of texts as codes (n,) into its distinct texts, which stand in order.

    An array of all texts would have room in each row for the longest of them.
    """

    labels: list[str]
    codes: Codes


def _ranked(texts: _Texts, key: Callable[[str], Any] | None = None) -> _Texts:
    """The same with its distinct texts sorted by this key; whatever a key may give."""
    labels = texts.labels
    order = sorted(range(len(labels)), key=lambda place: key(labels[place]) if key else labels[place])
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(labels))
    return _Texts([labels[place] for place in order], rank[texts.codes])


def _texts(connection: duckdb.DuckDBPyConnection, source: Source, column: str, problem: str | None) -> _Texts:
    """A column as text, in the order of the file; a missing one is refused where there is a `problem`."""
    text = _text(source, column)
    if problem is not None:
        refuse_where(connection, source, f"{text} IS NULL", f"'VARCHAR', {text}", problem, "Fill them in.")
    query = f"SELECT coalesce({text}, '') AS t FROM source ORDER BY file_row"
    found = connection.sql(query).to_arrow_table().column("t").combine_chunks().dictionary_encode()
    codes = found.indices.to_numpy().astype(np.int64)
    return _ranked(_Texts(found.dictionary.to_pylist(), codes))


def _order(text: str) -> tuple[int, float, str]:
    """Numbers by size, then texts."""
    try:
        return (0, float(text), text)
    except ValueError:
        return (1, 0.0, text)


def union(first: Vocabulary, ids: Sequence[str]) -> Vocabulary:
    """The ids of a vocabulary, followed by those of `ids` that it does not have."""
    new = [one for one, code in zip(ids, first.codes(ids), strict=True) if code == UNKNOWN]
    return Vocabulary(pa.array([*first.ids(np.arange(len(first))), *new], pa.string())) if new else first


def item_shares(log: BanditLog, positions: Sequence[str]) -> Values:
    """How often each action was taken at each of these positions, as shares: (positions, actions).

    Unsmoothed: an action that was never taken has share zero.
    """
    counts = log.counts()
    missing = [p for p in positions if p not in log.position_ids]
    if missing:
        raise DataError(
            f"The target's shares should be known at all {len(positions)} positions of the log, but its file "
            f"has no row at position {missing[0]!r}; give a file that covers every position."
        )
    table = counts[[log.position_ids.index(p) for p in positions]]
    return table / table.sum(axis=1, keepdims=True)
