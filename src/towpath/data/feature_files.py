"""Feature files, in any format of the readers, to encoded tables joined to the events by id."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from towpath.boundary import reading
from towpath.data.columns import usual_indices
from towpath.data.engine import engine, quote_identifier, quote_literal
from towpath.data.feature_kinds import (
    LISTED,
    SEPARATOR,
    FeatureForm,
    FeatureSpec,
    GivenColumns,
    Profile,
    infer,
)
from towpath.data.features import MISSING, Feature, FeatureTable, Labels, pack
from towpath.data.layout import File
from towpath.data.scan import Source, file_errors, location_of, open_table
from towpath.data.sql import Side
from towpath.data.vocabulary import Vocabulary
from towpath.errors import DataError

# Types of Parquet columns that no rule makes a feature of.
_NO_FEATURE = ("STRUCT", "MAP", "UNION", "BLOB")


@dataclass(frozen=True)
class FeatureReport:
    """What became of one side's feature file."""

    side: Side
    source: str
    rows: int  # of the file
    unknown: int  # rows whose id has no events: ignored
    ids: int  # users or items of the events
    without_row: int  # of these, those that the file does not have: all their values are missing
    kinds: dict[str, str]
    missing: dict[str, int]  # users or items without a value, by feature
    left_out: dict[str, str]  # columns that are no feature, and why

    def sentences(self) -> list[str]:
        """The same in words, one sentence for each thing to know."""
        kinds = ", ".join(f"{column} {kind}" for column, kind in self.kinds.items())
        said = [f"{self.side} features from {self.source}: {kinds}"]
        if self.unknown:
            said.append(f"{self.unknown:,} of {self.rows:,} rows are of {self.side}s without events: ignored")
        if self.without_row:
            said.append(f"{self.without_row:,} of {self.ids:,} {self.side}s have no row: all values missing")
        said += [
            f"{self.side} feature {column}: missing for {count:,} of {self.ids:,}"
            for column, count in self.missing.items()
            if count
        ]
        return said + [f"column {column!r} left out: it {why}" for column, why in self.left_out.items()]


def read_features(
    files: Sequence[File], side: Side, ids: Vocabulary, told: GivenColumns
) -> tuple[FeatureTable, FeatureReport]:
    """The features of these ids, and what became of the file.

    An id without a row has all values missing; a row whose id is not among `ids` is ignored.
    """
    with reading(files[0]), engine() as connection:
        form = told.form
        source = open_table(connection, files, *((form.names, form.delimiter) if form else ()))
        with file_errors(source):
            return _Reading(connection, source, side).read(ids, told)


class _Reading:
    """One feature file on its way to a table."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, source: Source, side: Side) -> None:
        self._connection, self._source, self._side = connection, source, side
        self._kinds = {row[0]: row[1] for row in connection.execute("DESCRIBE source").fetchall()}
        self._listed: set[str] = set()

    def read(self, ids: Vocabulary, told: GivenColumns) -> tuple[FeatureTable, FeatureReport]:
        """The table and the report."""
        left_out: dict[str, str] = {}
        self._create_texts(self._key(told.key), told.form, left_out)
        self._refuse_bad_ids()
        chosen = self._choose(told.specs, left_out)
        rows, table = self._joined(ids, list(chosen))
        features = _encode(chosen, len(ids), rows, table)
        report = FeatureReport(
            side=self._side,
            source=told.form.member if told.form else self._source.label,
            rows=self._count("SELECT COUNT(*) FROM texts"),
            unknown=self._count("SELECT COUNT(*) FROM texts") - len(rows),
            ids=len(ids),
            without_row=len(ids) - len(rows),
            kinds={feature.name: _described(feature) for feature in features.features},
            missing=features.count(MISSING),
            left_out=left_out,
        )
        return features, report

    def _key(self, of_events: str | None) -> str:
        """The column of ids: as the events call it, else the first with a usual name for it, or `id`."""
        names = self._source.names
        if of_events in names:
            return of_events
        called_id = [place for place, column in enumerate(names) if column.lower() == "id"]
        places = sorted([*usual_indices(self._side, names), *called_id])
        if not places:
            raise DataError(
                f"Features need a column of {self._side} ids, but the columns of {self._source.label} are "
                f"{', '.join(names)}; call one of them {self._side}, in a header line."
            )
        return names[places[0]]

    def _create_texts(self, key: str, form: FeatureForm | None, left_out: dict[str, str]) -> None:
        """The table `texts`: id, file_row and every candidate as trimmed text, NULL where none is given."""
        expressions = dict(form.columns) if form else {}
        for column in () if form else self._source.names:
            if column == key:
                continue
            if self._kinds[column].startswith(_NO_FEATURE):
                left_out[column] = f"holds {self._kinds[column]}"
            else:
                expressions[column] = self._text(column)
        if len(expressions) == 0:
            raise DataError(
                f"{self._source.label} should have columns next to its {self._side} ids, but has none to use."
            )
        chosen = "".join(
            f", NULLIF(TRIM({sql}), '') AS {quote_identifier(column)}" for column, sql in expressions.items()
        )
        self._connection.execute(
            f"CREATE TABLE texts AS SELECT TRIM({self._text(key)}) AS {quote_identifier(_ID)}, "
            f"file_row AS {quote_identifier(_ROW)}"
            f"{chosen} FROM source"
        )
        self._columns = list(expressions)

    def _text(self, column: str) -> str:
        """SQL for a column as text; the values of a list are joined by LISTED."""
        kind, quoted = self._kinds[column], quote_identifier(column)
        if kind.endswith("]"):
            self._listed.add(column)
            return f"array_to_string(CAST({quoted} AS VARCHAR[]), {quote_literal(LISTED)})"
        if kind != "JSON":
            return f"CAST({quoted} AS VARCHAR)"
        if self._count(f"SELECT COUNT(*) FROM source WHERE json_type({quoted}) = 'ARRAY'"):
            self._listed.add(column)
        items = f"array_to_string(json_extract_string({quoted}, '$[*]'), {quote_literal(LISTED)})"
        return f"CASE json_type({quoted}) WHEN 'ARRAY' THEN {items} ELSE {quoted} ->> '$' END"

    def _refuse_bad_ids(self) -> None:
        """Raise for rows without an id and for ids that have several rows."""
        key, row = quote_identifier(_ID), quote_identifier(_ROW)
        bare = self._one(f"SELECT COUNT(*), MIN({row}) FROM texts WHERE {key} IS NULL OR {key} = ''")
        if bare[0]:
            raise DataError(
                f"Every row of {self._source.label} needs a {self._side} id; {bare[0]:,} have none (first: "
                f"{self._place(bare[1])}). Fill them in or remove those rows."
            )
        found = self._one(
            f"SELECT COUNT(*), MIN(again) FROM (SELECT MIN({row}) AS again FROM texts GROUP BY {key} "
            "HAVING COUNT(*) > 1)"
        )
        if found[0]:
            twice = self._one(f"SELECT {key} FROM texts WHERE {row} = {found[1]}")[0]
            first, second = self._connection.execute(
                f"SELECT {row} FROM texts WHERE {key} = ? ORDER BY 1 LIMIT 2", [twice]
            ).fetchall()
            raise DataError(
                f"Each {self._side} should have one row of features, but {found[0]:,} "
                f"{'has' if found[0] == 1 else 'have'} several (first: {twice!r} in {self._place(first[0])} "
                f"and {self._place(second[0])}). Keep one row of each."
            )

    def _choose(self, specs: Mapping[str, FeatureSpec], left_out: dict[str, str]) -> dict[str, FeatureSpec]:
        """How each column is read; those that are not go to `left_out`."""
        chosen = {}
        for column in self._columns:
            spec = specs.get(column) or infer(self._profile(column))
            if isinstance(spec, str):
                left_out[column] = spec
            elif spec.kind != "skip":
                listed = column in self._listed and spec.kind == "multivalued"
                chosen[column] = FeatureSpec("multivalued", LISTED) if listed else spec
            if column in chosen and chosen[column].kind == "numeric":
                self._refuse_words(column)
        if not chosen:
            why = "; ".join(f"{column!r} {reason}" for column, reason in left_out.items())
            raise DataError(
                f"No column of {self._source.label} can serve as a feature ({why or 'all were skipped'}); "
                "say what a column is with --feature NAME=KIND."
            )
        return chosen

    def _profile(self, column: str) -> Profile:
        quoted = quote_identifier(column)
        number = f"TRY_CAST({quoted} AS DOUBLE)"
        finite = f"{number} IS NOT NULL AND isfinite({number})"
        given, distinct, numbers, whole, separated = self._one(
            f"SELECT COUNT({quoted}), COUNT(DISTINCT {quoted}), COUNT(*) FILTER ({finite}), "
            f"COUNT(*) FILTER ({finite} AND {number} = floor({number})), "
            f"COUNT(*) FILTER (contains({quoted}, {quote_literal(SEPARATOR)})) FROM texts"
        )
        return Profile(given, distinct, numbers, whole, separated, column in self._listed)

    def _refuse_words(self, column: str) -> None:
        """Raise if a numeric column holds something else; NaN counts as missing."""
        quoted, row = quote_identifier(column), quote_identifier(_ROW)
        number = f"TRY_CAST({quoted} AS DOUBLE)"
        bad = self._one(
            f"SELECT COUNT(*), MIN({row}) FROM texts WHERE {quoted} IS NOT NULL AND "
            f"({number} IS NULL OR isinf({number}))"
        )
        if bad[0]:
            example = self._one(f"SELECT {quoted} FROM texts WHERE {row} = {bad[1]}")[0]
            raise DataError(
                f"The numeric feature {column!r} should hold numbers; {bad[0]:,} of its values "
                f"{'is' if bad[0] == 1 else 'are'} none (first: {example!r} in {self._place(bad[1])}). Mend "
                f"them, or read it as categories with --feature {column}=categorical."
            )

    def _joined(self, ids: Vocabulary, columns: Sequence[str]) -> tuple[np.ndarray, pa.Table]:
        """The codes of the ids that have a row, ascending, and the texts of these rows."""
        codes = np.arange(len(ids), dtype=np.int64)
        self._connection.register("known", pa.table({"id": ids.values, "code": codes}))
        chosen = "".join(f", texts.{quote_identifier(column)}" for column in columns)
        table: pa.Table = self._connection.sql(
            f"SELECT known.code AS {quote_identifier(_ROW)}{chosen} FROM known JOIN texts "
            f"ON CAST(known.id AS VARCHAR) = texts.{quote_identifier(_ID)} ORDER BY known.code"
        ).to_arrow_table()
        return table.column(0).to_numpy(), table.drop_columns([_ROW])

    def _count(self, statement: str) -> int:
        return int(self._one(statement)[0])

    def _one(self, statement: str) -> tuple:  # type: ignore[type-arg]  # whatever the statement selects
        return self._connection.execute(statement).fetchall()[0]

    def _place(self, file_row: int) -> str:
        return location_of(self._connection, self._source, file_row)


# Names that no column of a file has.
_ID, _ROW = "\x1fid", "\x1frow"


def _encode(specs: Mapping[str, FeatureSpec], n_rows: int, rows: np.ndarray, table: pa.Table) -> FeatureTable:
    """The columns of texts, those of the i-th row belonging to code rows[i], as a table of all codes."""
    features, labels, numbers = [], [], []
    for column, spec in specs.items():
        texts = table.column(column).combine_chunks()
        if spec.kind == "numeric":
            filled = np.full(n_rows, np.nan)
            filled[rows] = pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False)
            features.append(Feature(column, "numeric"))
            numbers.append(filled)
        else:
            values, encoded = _labels(texts, spec, rows)
            features.append(
                Feature(column, "categorical" if spec.kind == "categorical" else "multivalued", values)
            )
            labels.append(encoded)
    return pack(features, n_rows, labels, numbers).fitted(np.ones(n_rows, dtype=np.bool_))


def _labels(texts: pa.Array, spec: FeatureSpec, rows: np.ndarray) -> tuple[tuple[str, ...], Labels]:
    """The different values of a column, and where each occurs; a value counts once in a row."""
    given = texts.is_valid().to_numpy(zero_copy_only=False)
    values, owners = texts.drop_null(), rows[given]
    if spec.kind == "multivalued":
        split = pc.split_pattern(values, spec.separator)
        owners = owners[pc.list_parent_indices(split).to_numpy(zero_copy_only=False)]
        values = pc.utf8_trim_whitespace(pc.list_flatten(split))
        real = pc.not_equal(values, "").to_numpy(zero_copy_only=False)
        values, owners = values.filter(pa.array(real)), owners[real]
    coded = pc.dictionary_encode(values)
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = np.unique(owners * max(1, len(coded.dictionary)) + codes)
    size = max(1, len(coded.dictionary))
    return tuple(coded.dictionary.to_pylist()), Labels(pairs // size, pairs % size)


def _described(feature: Feature) -> str:
    return "numeric" if feature.kind == "numeric" else f"{feature.kind} ({len(feature.values):,} values)"
