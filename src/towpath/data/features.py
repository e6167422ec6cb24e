"""What is known of users or of items besides their events: typed columns, encoded row by row of the codes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["categorical", "multivalued", "numeric"]

# Codes within a column of labels: no value, a value that training does not have, and the first of the values.
MISSING, UNSEEN, FIRST_VALUE = 0, 1, 2


@dataclass(frozen=True)
class Feature:
    """One column: what it is called, what it holds, and what its codes or numbers mean."""

    name: str
    kind: Kind
    values: tuple[str, ...] = ()  # of the codes from FIRST_VALUE on, the most frequent in training first
    mean: float = 0.0  # of a numeric column in training
    scale: float = 1.0  # its standard deviation there

    @property
    def codes(self) -> int:
        """How many codes a column of labels has."""
        return FIRST_VALUE + len(self.values)


@dataclass(frozen=True)
class SideSchema:
    """What a model must know of one side's features to be built; no values, so it stays small."""

    labels: tuple[str, ...] = ()  # names of the categorical and multi-valued columns
    codes: tuple[int, ...] = ()  # how many codes each of them has
    numbers: tuple[str, ...] = ()  # names of the numeric columns
    entries: int = 0  # labels of all rows together


@dataclass(frozen=True)
class FeatureSchema:
    """The same for both sides."""

    users: SideSchema = SideSchema()
    items: SideSchema = SideSchema()

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> "FeatureSchema":  # any JSON
        """The schema that `dataclasses.asdict` and a JSON file have made lists of."""

        def side(values: Mapping[str, Any]) -> SideSchema:
            labels, codes, numbers = (tuple(values[name]) for name in ("labels", "codes", "numbers"))
            return SideSchema(labels, codes, numbers, values["entries"])

        return FeatureSchema(side(stored["users"]), side(stored["items"]))


@dataclass(frozen=True)
class Labels:
    """One column of labels as (row, code) in the order of the rows, codes from 0 into `values`."""

    rows: NDArray[np.int64]  # (m,) a row may occur several times, or not at all
    codes: NDArray[np.int64]  # (m,)


@dataclass(frozen=True)
class FeatureTable:
    """The features of every user (or every item), by code.

    Columns of labels are packed: the codes of row r in the j-th of c such columns are
    `codes[starts[r * c + j] : starts[r * c + j + 1]]`, at least one of them. Numbers are as in the file.
    """

    features: tuple[Feature, ...]
    starts: NDArray[np.int64]  # (rows * c + 1,)
    codes: NDArray[np.int32]  # (entries,)
    numbers: NDArray[np.float32]  # (rows, numeric columns), NaN where missing

    @cached_property
    def labels(self) -> tuple[Feature, ...]:
        """The categorical and multi-valued columns."""
        return tuple(feature for feature in self.features if feature.kind != "numeric")

    @cached_property
    def numeric(self) -> tuple[Feature, ...]:
        """The numeric columns."""
        return tuple(feature for feature in self.features if feature.kind == "numeric")

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def schema(self) -> SideSchema:
        """What a model must know to be built."""
        return SideSchema(
            labels=tuple(label.name for label in self.labels),
            codes=tuple(label.codes for label in self.labels),
            numbers=tuple(number.name for number in self.numeric),
            entries=len(self.codes),
        )

    @cached_property
    def bags(self) -> NDArray[np.int64]:
        """The bag, row * c + column, of each entry: (entries,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def columns(self) -> NDArray[np.int64]:
        """The column of labels of each entry: (entries,)."""
        return self.bags % max(1, len(self.labels))

    def stacked_codes(self) -> NDArray[np.int64]:
        """The codes as if all columns of labels were one, each behind those before it: (entries,)."""
        ends = np.cumsum([0, *(label.codes for label in self.labels)])
        return self.codes + ends[self.columns]

    def standardised(self) -> NDArray[np.float32]:
        """Numbers with training mean 0 and deviation 1, 0 where missing, then whether each is missing.

        (rows, 2 * numeric columns)
        """
        means, scales = (np.array([getattr(n, f) for n in self.numeric]) for f in ("mean", "scale"))
        missing = np.isnan(self.numbers)
        values = np.where(missing, 0, (self.numbers - means) / scales)
        return np.concatenate([values, missing], axis=1).astype(np.float32)

    def count(self, code: int) -> dict[str, int]:
        """In how many rows each column has this code; MISSING counts in numeric columns too."""
        bags = np.unique(self.bags[self.codes == code])
        found = np.bincount(bags % max(1, len(self.labels)), minlength=len(self.labels))
        counts = {label.name: int(n) for label, n in zip(self.labels, found, strict=False)}
        if code == MISSING:
            gaps = np.isnan(self.numbers).sum(0)
            counts |= {number.name: int(n) for number, n in zip(self.numeric, gaps, strict=True)}
        return counts

    def fitted(self, training: NDArray[np.bool_]) -> "FeatureTable":
        """The same table as one who has seen only the `training` rows (rows,) would encode it.

        A value that no training row has becomes UNSEEN; mean and scale are those of the training rows.
        """
        rows = self.bags // max(1, len(self.labels))
        codes, features = self.codes.copy(), {}
        for place, label in enumerate(self.labels):
            mine = self.columns == place
            counts = np.bincount(self.codes[mine & training[rows]], minlength=label.codes)
            values, recoded = _by_frequency(label, counts)
            codes[mine] = recoded[self.codes[mine]]
            features[label.name] = replace(label, values=values)
        for place, number in enumerate(self.numeric):
            column = self.numbers[training, place]
            features[number.name] = _standardising(number, column[~np.isnan(column)])
        return replace(self, features=tuple(features[f.name] for f in self.features), codes=codes)


def pack(features: Iterable[Feature], rows: int, labels: list[Labels], numbers: list[Any]) -> FeatureTable:
    """A table of columns one by one: `labels` and `numbers` (each (rows,)) in the order of their features."""
    columns = max(1, len(labels))
    bags = [label.rows * columns + place for place, label in enumerate(labels)]
    given = np.concatenate([np.empty(0, np.int64), *bags])
    codes = np.concatenate([np.empty(0, np.int64), *(label.codes + FIRST_VALUE for label in labels)])
    empty = np.setdiff1d(np.arange(rows * len(labels)), given)
    given, codes = np.concatenate([given, empty]), np.concatenate([codes, np.full(len(empty), MISSING)])
    order = np.argsort(given, kind="stable")
    starts = np.zeros(rows * len(labels) + 1, dtype=np.int64)
    np.cumsum(np.bincount(given, minlength=rows * len(labels)), out=starts[1:])
    table = np.column_stack(numbers) if numbers else np.empty((rows, 0))
    return FeatureTable(tuple(features), starts, codes[order].astype(np.int32), table.astype(np.float32))


def unseen_values(users: FeatureTable | None, items: FeatureTable | None) -> list[str]:
    """A sentence for each feature some of whose values occur outside training only."""
    return [
        f"{side} feature {column}: {count:,} {side}s have a value that training lacks; it counts as unseen"
        for side, table in (("user", users), ("item", items))
        for column, count in (table.count(UNSEEN) if table is not None else {}).items()
        if count
    ]


def _by_frequency(label: Feature, counts: NDArray[np.int64]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The values that occur, most frequent first and then by name, and the new code of every old code."""
    kept = [place for place in range(len(label.values)) if counts[FIRST_VALUE + place]]
    kept.sort(key=lambda place: (-counts[FIRST_VALUE + place], label.values[place]))
    recoded = np.full(label.codes, UNSEEN, dtype=np.int32)
    recoded[MISSING] = MISSING
    recoded[FIRST_VALUE + np.array(kept, dtype=np.int64)] = FIRST_VALUE + np.arange(len(kept))
    return tuple(label.values[place] for place in kept), recoded


def _standardising(number: Feature, given: NDArray[np.float32]) -> Feature:
    """The column with the mean and scale of these numbers; a constant is left as wide as it is."""
    if len(given) == 0:
        return replace(number, mean=0.0, scale=1.0)
    spread = float(given.std(dtype=np.float64))
    return replace(number, mean=float(given.mean(dtype=np.float64)), scale=spread if spread > 0 else 1.0)
