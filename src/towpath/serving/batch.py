"""Lists of very many users, written to a file block by block."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from towpath.data.table_files import table_file
from towpath.data.vocabulary import UNKNOWN, Id, Vocabulary
from towpath.ranking.blocks import NOTHING
from towpath.serving.catalogue import ListRules
from towpath.serving.recommender import Recommender

# Rows of the file that are held at once; a row takes some tens of bytes on its way.
_ROWS_AT_ONCE = 2**20


@dataclass(frozen=True)
class Audience:
    """For whom lists are made: codes, UNKNOWN for a stranger, and the ids to write for them."""

    codes: NDArray[np.int64]  # (n,)
    ids: pa.Array | None = None  # (n,) None: the vocabulary's own


@dataclass(frozen=True)
class Written:
    """What a file of lists holds."""

    users: int
    rows: int
    fallback_users: int  # got the most popular items


def everyone(recommender: Recommender) -> Audience:
    """All users of the model."""
    return Audience(np.arange(len(recommender.artifact.user_ids)))


def audience_of(recommender: Recommender, users: Sequence[Id]) -> Audience:
    """These users; their ids are written in the vocabulary's type if all can be, else as text."""
    vocabulary = recommender.artifact.user_ids
    codes = vocabulary.codes(users)
    if (codes != UNKNOWN).all():
        return Audience(codes)
    try:
        return Audience(codes, pa.array(users, vocabulary.values.type))
    except (pa.ArrowException, OverflowError):
        return Audience(codes, pa.array([str(user) for user in users]))


def write_lists(
    recommender: Recommender,
    audience: Audience,
    rules: ListRules,
    out: Path,
    progress: Callable[[int], None] = lambda users: None,
    *,
    find: "Find | None" = None,
) -> Written:
    """The file with columns user, item, rank (from 1) and score, users in the order of the audience.

    Only one block of lists is held at a time. `progress` is told how many users are done. Lists are made here
    unless `find` has it done elsewhere.
    """
    rows = fallback = 0
    with table_file(out, _schema(recommender, audience)) as writer:
        for some, lists, others in (find or _find)(recommender, audience.codes, rules):
            table = _table(recommender, audience, some, lists)
            writer.write_table(table)
            rows += table.num_rows
            fallback += others
            progress(some.stop)
    return Written(len(audience.codes), rows, fallback)


@dataclass(frozen=True)
class TopRows:
    """A block of lists (b, k); NOTHING where a list has ended."""

    items: NDArray[np.int64]
    scores: NDArray[np.float32]


# Runs of users with their lists, and how many of them got the fallback.
Found = tuple[slice, TopRows, int]
Find = Callable[[Recommender, NDArray[np.int64], ListRules], Iterator[Found]]


def _find(recommender: Recommender, codes: NDArray[np.int64], rules: ListRules) -> Iterator[Found]:
    for some in runs_of(len(codes), rules.k):
        yield some, *lists_of(recommender, codes[some], rules)


def lists_of(recommender: Recommender, codes: NDArray[np.int64], rules: ListRules) -> tuple[TopRows, int]:
    """The lists of these users, and how many of them got the fallback."""
    items, scores, how = recommender.lists(codes, rules)
    return TopRows(items, scores), int(np.count_nonzero(how != "model"))


def runs_of(users: int, k: int) -> Iterator[slice]:
    """All users in runs, so short that their lists can be held."""
    step = max(1, _ROWS_AT_ONCE // k)
    for start in range(0, users, step):
        yield slice(start, min(start + step, users))


def _schema(recommender: Recommender, audience: Audience) -> pa.Schema:
    users = recommender.artifact.user_ids.values.type if audience.ids is None else audience.ids.type
    items = recommender.artifact.item_ids.values.type
    return pa.schema([("user", users), ("item", items), ("rank", pa.int32()), ("score", pa.float32())])


def _table(recommender: Recommender, audience: Audience, some: slice, lists: TopRows) -> pa.Table:
    """One row for each place of the lists that is filled."""
    there = lists.items != NOTHING
    rows, places = np.nonzero(there)
    if audience.ids is None:
        users = _ids_of(recommender.artifact.user_ids, audience.codes[some][rows])
    else:
        users = audience.ids.take(pa.array(rows + some.start))
    columns: list[Any] = [  # arrays of several types
        users,
        _ids_of(recommender.artifact.item_ids, lists.items[there]),
        pa.array((places + 1).astype(np.int32)),
        pa.array(lists.scores[there]),
    ]
    return pa.table(columns, schema=_schema(recommender, audience))


def _ids_of(vocabulary: Vocabulary, codes: NDArray[np.int64]) -> pa.Array:
    return vocabulary.values.take(pa.array(codes))
