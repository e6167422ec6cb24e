"""What is told of feature files, and what a column of one holds: as told, else by rules about its values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from towpath.errors import ConfigError, unknown_name

KINDS = ("categorical", "multivalued", "numeric", "skip")
SEPARATOR = "|"
# Joins the values of a list; a control character made for this, which no text contains.
LISTED = "\x1f"
# Whole numbers with at most so many different values are codes or levels, not amounts.
FEW_NUMBERS = 20
# Text with more different values than this is no category.
MOST_VALUES = 10_000
# One value in so many with a separator in it makes a column multi-valued.
SEPARATED_FROM = 10


@dataclass(frozen=True)
class FeatureSpec:
    """How a column is to be read."""

    kind: Literal["categorical", "multivalued", "numeric", "skip"]
    separator: str = SEPARATOR


@dataclass(frozen=True)
class FeatureForm:
    """How to read the features of a built-in dataset, whose file cannot say it by itself."""

    member: str  # the file inside the archive
    names: tuple[str, ...]  # of its columns; it has no header
    delimiter: str
    columns: Mapping[str, str]  # the features, each as SQL over the names
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FeatureFiles:
    """Where features lie (a file, a glob or a folder for each side), and what was told of their columns.

    kinds: categorical, multivalued, multivalued:SEPARATOR, numeric or skip, by the name of the column.
    """

    users: str | Path | None = None
    items: str | Path | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class GivenColumns:
    """What is known of one side's feature file before it is opened."""

    specs: Mapping[str, FeatureSpec] = field(default_factory=dict)
    key: str | None = None  # what the events call the column of ids
    form: FeatureForm | None = None


@dataclass(frozen=True)
class Profile:
    """Counts of a column's values; of those that are given, how many are numbers, whole, have a separator."""

    given: int
    distinct: int
    numbers: int
    whole: int
    separated: int
    listed: bool  # the file itself says that it holds lists


def parse_feature_spec(column: str, told: str) -> FeatureSpec:
    """What "numeric", "multivalued:;" and the like ask for.

    >>> parse_feature_spec("tags", "multivalued:;")
    FeatureSpec(kind='multivalued', separator=';')
    """
    kind, colon, separator = told.partition(":")
    if kind not in KINDS:
        raise unknown_name(f"kind of feature (asked for {column!r})", kind, KINDS)
    if colon and (kind != "multivalued" or not separator):
        raise ConfigError(
            f"Only a multi-valued feature has a separator, written as multivalued:; for one, and {column!r} "
            f"was given {told!r}."
        )
    return FeatureSpec(kind, separator or SEPARATOR)  # type: ignore[arg-type]  # checked to be one of KINDS


def refuse_unknown_columns(specs: Mapping[str, FeatureSpec], columns: Sequence[str]) -> None:
    """Nothing, unless a kind was asked for of a column that no feature file has."""
    for column in specs:
        if column not in columns:
            raise unknown_name("feature", column, columns)


def infer(found: Profile) -> FeatureSpec | str:
    """How a column is read that nothing was told of; a sentence's end where it is left out.

    Lists are multi-valued; few whole numbers are categories and other numbers numeric; text is multi-valued
    if a tenth of it has a bar in it, and else categorical unless nearly every row has a value of its own.
    """
    if found.given == 0:
        return "has no values"
    if found.listed:
        return FeatureSpec("multivalued", LISTED)
    if found.numbers == found.given:
        few = found.whole == found.given and found.distinct <= FEW_NUMBERS
        return FeatureSpec("categorical" if few else "numeric")
    if found.separated * SEPARATED_FROM >= found.given:
        return FeatureSpec("multivalued")
    if found.distinct > MOST_VALUES or found.distinct > max(FEW_NUMBERS, found.given // 2):
        return f"has {found.distinct:,} different values in {found.given:,} rows, too many for a category"
    return FeatureSpec("categorical")
