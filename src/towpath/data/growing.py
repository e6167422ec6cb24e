"""New events behind those that a model has learned from: vocabularies grow, old codes stay."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from towpath.data.features import FIRST_VALUE, Feature, FeatureTable, Labels, pack
from towpath.data.interactions import COLUMNS, Interactions
from towpath.data.vocabulary import UNKNOWN, Vocabulary
from towpath.data.whole import joined
from towpath.errors import DataError

_UNSEEN = -1  # among the values of a feature; one place before the first


@dataclass(frozen=True)
class Added:
    """What new events brought."""

    rows: int
    users: int  # that had no code before
    items: int
    repeated: int  # rows left out, since their pair was there already

    def sentence(self) -> str:
        """The same for people."""
        repeated = f" ({self.repeated:,} more repeat a pair and are left out)" if self.repeated else ""
        return f"{self.rows:,} new rows{repeated}, with {self.users:,} new users and {self.items:,} new items"


def grow(old: Interactions, new: Interactions, *, keep_repeats: bool) -> tuple[Interactions, Added]:
    """The events of both; users and items of `new` that `old` does not know get codes behind the others.

    Unless repeats are kept, a new row whose pair is there already is left out; where a pair had only been
    shown and is clicked now, the old row is left out instead.
    """
    users, items = (
        _extended(old.user_ids, new.user_ids, "user"),
        _extended(old.item_ids, new.item_ids, "item"),
    )
    first = _recoded(old, users.ids, items.ids, np.arange(old.n_users), np.arange(old.n_items))
    second = _recoded(_later_requests(new, old), users.ids, items.ids, users.codes, items.codes)
    before = len(second.rows)
    if not keep_repeats:
        first, second = _without_repeats(first, second)
    rows = len(second.rows)
    if not rows:
        raise DataError(
            f"Each of the {before:,} new rows repeats a pair that is there already: nothing to learn."
        )
    added = Added(rows, len(users.ids) - old.n_users, len(items.ids) - old.n_items, before - rows)
    features = (
        _grown_features(old.user_features, new.user_features, len(users.ids), users.codes),
        _grown_features(old.item_features, new.item_features, len(items.ids), items.codes),
    )
    return joined([first, second]).with_features(*features), added


@dataclass(frozen=True)
class _Extended:
    ids: Vocabulary
    codes: NDArray[np.int64]  # of the new list's ids in the longer one


def _extended(old: Vocabulary, new: Vocabulary, side: str) -> _Extended:
    codes = old.match(new)
    fresh = np.flatnonzero(codes == UNKNOWN)
    values = new.values.take(pa.array(fresh))
    try:
        values = values if values.type == old.values.type else values.cast(old.values.type)
    except pa.ArrowException:
        raise DataError(
            f"New {side} ids should be written like the old ones, which are {old.values.type}, but "
            f"{new.ids(fresh[:1])[0]!r} is not; check the column of the {side}."
        ) from None
    codes[fresh] = len(old) + np.arange(len(fresh))
    return _Extended(Vocabulary(pa.concat_arrays([old.values, values])), codes)


def _recoded(
    part: Interactions,
    user_ids: Vocabulary,
    item_ids: Vocabulary,
    users: NDArray[np.int64],
    items: NDArray[np.int64],
) -> Interactions:
    """All rows of the part under longer vocabularies, in the order (user, time)."""
    rows = part.rows
    rows = replace(
        rows,
        users=users[rows.users].astype(np.int32),
        items=items[rows.items].astype(np.int32),
        user_ids=user_ids,
        item_ids=item_ids,
        user_features=None,
        item_features=None,
    )
    return _in_order(rows, np.argsort(rows.users, kind="stable")).positives


def _later_requests(new: Interactions, old: Interactions) -> Interactions:
    """All rows of `new`, its slates numbered behind those of `old`."""
    rows, before = new.rows, old.rows.requests
    if rows.requests is None or before is None or not len(before):
        return rows
    return replace(rows, requests=rows.requests + before.max() + 1)


def _in_order(rows: Interactions, order: NDArray[np.int64]) -> Interactions:
    present = {name: getattr(rows, name) for name in COLUMNS}
    return replace(rows, **{name: column[order] for name, column in present.items() if column is not None})


def _without_repeats(first: Interactions, second: Interactions) -> tuple[Interactions, Interactions]:
    """Both without rows whose pair the other has, a positive one before one that was only shown."""
    mine, theirs = first.rows.pair_keys(), second.rows.pair_keys()
    known, now = first.pair_keys(), second.pair_keys()
    # A pair that was shown before and is clicked now goes over to the new rows.
    moved = np.setdiff1d(now, known)
    kept = first.rows.where(~np.isin(mine, moved)).positives
    labels = (
        np.isin(theirs, moved) if second.rows.labels is None else second.rows.labels & np.isin(theirs, moved)
    )
    return kept, second.rows.where(labels | ~np.isin(theirs, mine)).positives


def _grown_features(
    old: FeatureTable | None, new: FeatureTable | None, rows: int, codes: NDArray[np.int64]
) -> FeatureTable | None:
    """The old table with a row for every new code: from the new table where it has the column, else missing.

    Values keep their codes; one that training has not seen counts as unseen.
    """
    if old is None:
        return None
    fresh = np.flatnonzero(codes >= len(old))  # rows of the new table that the old one lacks
    columns = {feature.name: feature for feature in (new.features if new is not None else ())}
    known = {f.name for f in old.features if f.name in columns and columns[f.name].kind == f.kind}
    labels = [
        _joined_labels(
            _labels_of(old, feature, np.arange(len(old)), feature),
            None
            if feature.name not in known or new is None
            else _labels_of(new, columns[feature.name], codes, feature),
            len(old),
        )
        for feature in old.labels
    ]
    numbers = []
    for place, feature in enumerate(old.numeric):
        column = np.full(rows, np.nan, dtype=np.float32)
        column[: len(old)] = old.numbers[:, place]
        if feature.name in known and new is not None:
            names = [number.name for number in new.numeric]
            column[codes[fresh]] = new.numbers[fresh, names.index(feature.name)]
        numbers.append(column)
    grown = pack([*old.labels, *old.numeric], rows, labels, numbers)
    return replace(grown, features=old.features)


def _labels_of(table: FeatureTable, own: Feature, codes: NDArray[np.int64], coded_as: Feature) -> Labels:
    """One column of labels of a table, its rows and values under other codes."""
    place = [label.name for label in table.labels].index(own.name)
    mine = table.columns == place
    rows = codes[table.bags[mine] // len(table.labels)]
    values = table.codes[mine].astype(np.int64) - FIRST_VALUE
    if own is coded_as:
        return Labels(rows, values)
    places = {value: code for code, value in enumerate(coded_as.values)}
    recoded = np.array([places.get(value, _UNSEEN) for value in own.values] or [_UNSEEN], dtype=np.int64)
    return Labels(rows, np.where(values < 0, values, recoded[np.maximum(values, 0)]))


def _joined_labels(old: Labels, new: Labels | None, known: int) -> Labels:
    """The labels of the old rows, then those of rows from `known` on."""
    if new is None:
        return old
    fresh = new.rows >= known
    return Labels(np.concatenate([old.rows, new.rows[fresh]]), np.concatenate([old.codes, new.codes[fresh]]))
