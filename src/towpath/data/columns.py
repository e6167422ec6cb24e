"""Which column of a file has which role, as given or as guessed from the usual names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches

from towpath.errors import DataError

# Compared in lower case without punctuation: userId, USER_ID and user-id are one. Earlier is likelier.
_USUAL_NAMES = """
    user: user userid uid useridx username customer customerid visitor visitorid member memberid
        reviewer reviewerid account accountid client clientid
    item: item itemid iid itemidx movie movieid book bookid artist artistid product productid asin parentasin
        sku song songid track trackid article articleid business businessid game gameid
        video videoid film filmid
    time: time timestamp ts timems timestampms datetime eventtime unixtime unixtimestamp dateupdated createdat
        created dateadded unixreviewtime reviewtime ratedat date day
    label: label isclick clicked click isclicked converted isconverted conversion
    value: value rating ratings score stars overall weight count plays playcount clicks
    propensity: propensity propensityscore pscore
    exposure: exposure exposed shown isshown impression
    position: position pos rank slot
    request: request requestid slate slateid impressionid listid
    event: event eventtype eventname action actiontype behavior behaviour behaviortype
    policy: policy policyname arm variant
"""
USUAL_NAMES = {role: names.split() for role, names in re.findall(r"(\w+): ([^:]+)(?=\s\w+:|$)", _USUAL_NAMES)}
REQUIRED = ("user", "item")
# A file without a header is read as user, item, rating, timestamp: MovieLens' order and the usual one since.
BY_POSITION = ("user", "item", "value", "time")
# A third column of this size or more is a time in seconds since 1970, not a rating.
LEAST_TIMESTAMP = 1e8


@dataclass(frozen=True)
class Columns:
    """The names of the columns, or their positions from 1 ("1" is the first); None is guessed.

    An empty text means that there is no such column, whatever the names look like.
    """

    user: str | None = None
    item: str | None = None
    time: str | None = None
    label: str | None = None  # clicked or not, converted or not: 0 or 1
    value: str | None = None  # rating, count ...
    exposure: str | None = None  # whether the item was shown
    position: str | None = None  # slot of the slate, from 1
    propensity: str | None = None  # chance of having been shown
    request: str | None = None  # which slate the row was role of
    event: str | None = None  # kind of event: view, cart, purchase ...
    policy: str | None = None  # which recommender (arm) showed it


@dataclass(frozen=True)
class ColumnMapping:
    """Where each role was found (index of the column) and what to tell the user about it."""

    indices: dict[str, int]
    notes: tuple[str, ...]


def map_columns(columns: Columns, names: Sequence[str], source: str) -> ColumnMapping:
    """The index of each role among `names`: as given, else by the usual names."""
    given = given_columns(columns, names, source)
    notes = []
    indices = dict(given)
    for role in USUAL_NAMES:
        if role in given or getattr(columns, role) == "":
            continue
        candidates = [index for index in usual_indices(role, names) if index not in indices.values()]
        if candidates:
            indices[role] = candidates[0]
            others = ", ".join(repr(names[index]) for index in candidates[1:])
            also = f"; also possible: {others}" if others else ""
            notes.append(f"{role} column: {names[candidates[0]]!r} (guessed{also})")
    _check_required(indices, names, source)
    return ColumnMapping(indices, tuple(notes))


def map_positions(columns: Columns, first_line: Sequence[str], source: str) -> ColumnMapping:
    """The index of each role in a file without a header: as given, else user, item, rating, timestamp."""
    given = given_columns(columns, [str(index + 1) for index in range(len(first_line))], source)
    usual = list(BY_POSITION)
    if len(first_line) == 3 and _number(first_line[2]) >= LEAST_TIMESTAMP:
        usual = ["user", "item", "time"]
    guesses = {
        role: index
        for index, role in enumerate(usual[: len(first_line)])
        if role not in given and index not in given.values()
    }
    _check_required({**guesses, **given}, [str(index + 1) for index in range(len(first_line))], source)
    order = ", ".join(f"{role} {index + 1}" for role, index in sorted(guesses.items(), key=lambda g: g[1]))
    note = "no header line" + (f"; columns by position: {order} (guessed)" if guesses else "")
    return ColumnMapping({**guesses, **given}, (note,))


def given_columns(columns: Columns, names: Sequence[str], source: str) -> dict[str, int]:
    """The indices of those roles whose column was given, by name or by position."""
    given = {field.name: getattr(columns, field.name) for field in fields(columns)}
    indices = {role: _find(role, column, names, source) for role, column in given.items() if column}
    for role, index in indices.items():
        twin = next((other for other, p in indices.items() if p == index and other != role), None)
        if twin:
            raise DataError(
                f"Each role needs its own column, but {role} and {twin} were both given {given[role]!r}; "
                "name another column for one of them."
            )
    return indices


def looks_like_header(line: Sequence[str]) -> bool:
    """Whether a first line names columns: it does unless every field is a number."""
    return any(field.strip() == "" or _number(field) != _number(field) for field in line)


def has_usual_name(line: Sequence[str]) -> bool:
    """Whether any field is a name that columns usually have."""
    return any(usual_indices(role, line) for role in USUAL_NAMES)


def _find(role: str, column: str, names: Sequence[str], source: str) -> int:
    if column in names:
        return list(names).index(column)
    if column.isdecimal() and 1 <= int(column) <= len(names):
        return int(column) - 1
    near = get_close_matches(column.lower(), [name.lower() for name in names], n=1)
    hint = f"; did you mean {next(n for n in names if n.lower() == near[0])!r}?" if near else "."
    raise DataError(
        f"There is no column {column!r} for the {role} in {source}{hint} Columns there: {', '.join(names)}."
    )


def usual_indices(role: str, names: Sequence[str]) -> list[int]:
    """Places of columns with a usual name for this role, the likeliest first."""
    plain = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in names]
    found = [index for index, name in enumerate(plain) if name in USUAL_NAMES[role]]
    return sorted(found, key=lambda index: USUAL_NAMES[role].index(plain[index]))


def _check_required(indices: dict[str, int], names: Sequence[str], source: str) -> None:
    for role in REQUIRED:
        if role not in indices:
            raise DataError(
                f"No column of {source} has a usual name for the {role}; columns there: {', '.join(names)}. "
                f"Say which one it is with --{role}-col (a name, or a position such as 1)."
            )


def _number(field: str) -> float:
    try:
        return float(field)
    except ValueError:
        return float("nan")
