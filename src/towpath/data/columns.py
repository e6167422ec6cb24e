"""Which column of a file plays which part, as given or as guessed from the usual names."""

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
    time: time timestamp ts datetime date eventtime unixtime unixtimestamp dateupdated createdat created
        dateadded unixreviewtime reviewtime ratedat
    value: value rating ratings score stars overall weight count plays playcount click clicks
    propensity: propensity propensityscore pscore
    exposure: exposure exposed shown impression
"""
USUAL_NAMES = {part: names.split() for part, names in re.findall(r"(\w+): ([^:]+)(?=\s\w+:|$)", _USUAL_NAMES)}
REQUIRED = ("user", "item")
# A file without a header is read as user, item, rating, timestamp: MovieLens' order and the usual one since.
BY_POSITION = ("user", "item", "value", "time")
# A third column of this size or more is a time in seconds since 1970, not a rating.
LEAST_TIMESTAMP = 1e8


@dataclass(frozen=True)
class Columns:
    """The names of the columns, or their positions from 1 ("1" is the first); None is guessed."""

    user: str | None = None
    item: str | None = None
    time: str | None = None
    value: str | None = None
    propensity: str | None = None
    exposure: str | None = None


@dataclass(frozen=True)
class ColumnMapping:
    """Where each part was found (index of the column) and what to tell the user about it."""

    places: dict[str, int]
    notes: tuple[str, ...]


def map_columns(columns: Columns, names: Sequence[str], source: str) -> ColumnMapping:
    """The place of each part among `names`: as given, else by the usual names."""
    given = given_columns(columns, names, source)
    notes = []
    places = dict(given)
    for part in USUAL_NAMES:
        if part in given:
            continue
        candidates = [place for place in usual_places(part, names) if place not in places.values()]
        if candidates:
            places[part] = candidates[0]
            others = ", ".join(repr(names[place]) for place in candidates[1:])
            also = f"; also possible: {others}" if others else ""
            notes.append(f"{part} column: {names[candidates[0]]!r} (guessed{also})")
    _check_required(places, names, source)
    return ColumnMapping(places, tuple(notes))


def map_positions(columns: Columns, first_line: Sequence[str], source: str) -> ColumnMapping:
    """The place of each part in a file without a header: as given, else user, item, rating, timestamp."""
    given = given_columns(columns, [str(place + 1) for place in range(len(first_line))], source)
    usual = list(BY_POSITION)
    if len(first_line) == 3 and _number(first_line[2]) >= LEAST_TIMESTAMP:
        usual = ["user", "item", "time"]
    guesses = {
        part: place
        for place, part in enumerate(usual[: len(first_line)])
        if part not in given and place not in given.values()
    }
    _check_required({**guesses, **given}, [str(place + 1) for place in range(len(first_line))], source)
    order = ", ".join(f"{part} {place + 1}" for part, place in sorted(guesses.items(), key=lambda g: g[1]))
    note = "no header line" + (f"; columns by position: {order} (guessed)" if guesses else "")
    return ColumnMapping({**guesses, **given}, (note,))


def given_columns(columns: Columns, names: Sequence[str], source: str) -> dict[str, int]:
    """The places of those parts whose column was given, by name or by position."""
    given = {field.name: getattr(columns, field.name) for field in fields(columns)}
    places = {
        part: _find(part, column, names, source) for part, column in given.items() if column is not None
    }
    for part, place in places.items():
        twin = next((other for other, p in places.items() if p == place and other != part), None)
        if twin:
            raise DataError(
                f"Each role needs its own column, but {part} and {twin} were both given {given[part]!r}; "
                "name another column for one of them."
            )
    return places


def looks_like_header(line: Sequence[str]) -> bool:
    """Whether a first line names columns: it does unless every field is a number."""
    return any(field.strip() == "" or _number(field) != _number(field) for field in line)


def has_usual_name(line: Sequence[str]) -> bool:
    """Whether any field is a name that columns usually have."""
    return any(usual_places(part, line) for part in USUAL_NAMES)


def _find(part: str, column: str, names: Sequence[str], source: str) -> int:
    if column in names:
        return list(names).index(column)
    if column.isdecimal() and 1 <= int(column) <= len(names):
        return int(column) - 1
    near = get_close_matches(column.lower(), [name.lower() for name in names], n=1)
    hint = f"; did you mean {next(n for n in names if n.lower() == near[0])!r}?" if near else "."
    raise DataError(
        f"There is no column {column!r} for the {part} in {source}{hint} Columns there: {', '.join(names)}."
    )


def usual_places(part: str, names: Sequence[str]) -> list[int]:
    """Places of columns with a usual name for this part, the likeliest first."""
    plain = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in names]
    found = [place for place, name in enumerate(plain) if name in USUAL_NAMES[part]]
    return sorted(found, key=lambda place: USUAL_NAMES[part].index(plain[place]))


def _check_required(places: dict[str, int], names: Sequence[str], source: str) -> None:
    for part in REQUIRED:
        if part not in places:
            raise DataError(
                f"No column of {source} has a usual name for the {part}; columns there: {', '.join(names)}. "
                f"Say which one it is with --{part}-col (a name, or a position such as 1)."
            )


def _number(field: str) -> float:
    try:
        return float(field)
    except ValueError:
        return float("nan")
