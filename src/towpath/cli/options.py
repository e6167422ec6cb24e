"""The options that several verbs share, in groups; each text is written once, here."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from towpath import SPLIT_STRATEGIES
from towpath.errors import ConfigError, unknown_name

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="A built-in dataset (towpath data list), a file, a glob or a folder."
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder that towpath fit --out wrote.")]
Jobs = Annotated[int, typer.Option(min=1, help="Fits at the same time, each on one thread.")]
Device = Annotated[
    str, typer.Option(help="Where it is computed: cpu, cuda (cuda:1 is the second one) or mps.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="A limit such as 2GB that reading, training and scoring keep to; what cannot be done within it "
        "is refused.",
    ),
]
HowMany = Annotated[int, typer.Option("--k", "-k", help="Length of the lists.")]

_COLUMNS, _CLEANING, _SPLIT = "Columns of your own files", "Cleaning", "Split"
_FEATURES, _POSITIVES = "Side features", "What counts as a positive"


@dataclass(frozen=True)
class DataOptions:
    """Where the data lie, which columns to use, and how they are cleaned."""

    data_dir: Annotated[
        Path | None, typer.Option(envvar="TOWPATH_DATA", help="Where local copies of built-in datasets lie.")
    ] = None
    engine: Annotated[
        str,
        typer.Option(
            metavar="duckdb|spark|spark://…",
            help="What reads, cleans and splits: DuckDB, Spark on this machine, or a Spark master.",
        ),
    ] = "duckdb"
    user_col: Annotated[str | None, typer.Option(help="Column of user ids.", rich_help_panel=_COLUMNS)] = None
    item_col: Annotated[str | None, typer.Option(help="Column of item ids.", rich_help_panel=_COLUMNS)] = None
    time_col: Annotated[str | None, typer.Option(help="Column of times.", rich_help_panel=_COLUMNS)] = None
    value_col: Annotated[
        str | None, typer.Option(help="Column of ratings, counts …", rich_help_panel=_COLUMNS)
    ] = None
    label_col: Annotated[
        str | None,
        typer.Option(help="Column of labels: 1 clicked, 0 shown but not clicked.", rich_help_panel=_COLUMNS),
    ] = None
    exposure_col: Annotated[
        str | None, typer.Option(help="Column that says whether it was shown.", rich_help_panel=_COLUMNS)
    ] = None
    position_col: Annotated[
        str | None, typer.Option(help="Column of slots of the slate, from 1.", rich_help_panel=_COLUMNS)
    ] = None
    propensity_col: Annotated[
        str | None,
        typer.Option(help="Column of the chances of having been shown.", rich_help_panel=_COLUMNS),
    ] = None
    request_col: Annotated[
        str | None, typer.Option(help="Column of requests (slates).", rich_help_panel=_COLUMNS)
    ] = None
    event_col: Annotated[
        str | None, typer.Option(help="Column of kinds of events.", rich_help_panel=_COLUMNS)
    ] = None
    policy_col: Annotated[
        str | None,
        typer.Option(help="Column of the recommender that showed it.", rich_help_panel=_COLUMNS),
    ] = None
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="RULE", help="Which values are positives, such as '>=4'.", rich_help_panel=_POSITIVES
        ),
    ] = None
    positive_events: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME", help="Which kinds of events are positives.", rich_help_panel=_POSITIVES
        ),
    ] = None
    event_weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=WEIGHT",
            help="The value of a kind of event, 1 unless given; repeat for more.",
            rich_help_panel=_POSITIVES,
        ),
    ] = None
    user_features: Annotated[
        str | None, typer.Option(metavar="FILE", help="What is known of users.", rich_help_panel=_FEATURES)
    ] = None
    item_features: Annotated[
        str | None, typer.Option(metavar="FILE", help="What is known of items.", rich_help_panel=_FEATURES)
    ] = None
    feature: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KIND",
            help="What a column of these is: categorical, multivalued (multivalued:; with another separator "
            "than a bar), numeric or skip; repeat for more.",
            rich_help_panel=_FEATURES,
        ),
    ] = None
    missing: Annotated[
        str, typer.Option(help="Rows without a user or an item: refuse or drop.", rich_help_panel=_CLEANING)
    ] = "refuse"
    min_rating: Annotated[
        float | None, typer.Option(help="Drop rows with a lower value.", rich_help_panel=_CLEANING)
    ] = None
    repeats: Annotated[
        str,
        typer.Option(
            help="Repeated pairs: keep the first or the last, a click if there is one; or allow.",
            rich_help_panel=_CLEANING,
        ),
    ] = "first"
    min_per_item: Annotated[
        int, typer.Option(help="Drop items with fewer interactions.", rich_help_panel=_CLEANING)
    ] = 1
    min_per_user: Annotated[
        int, typer.Option(help="Drop users with fewer interactions.", rich_help_panel=_CLEANING)
    ] = 1
    max_per_user: Annotated[
        int | None, typer.Option(help="Drop users with more interactions.", rich_help_panel=_CLEANING)
    ] = None
    filter: Annotated[
        str, typer.Option(help="How the minima are applied: one-pass or k-core.", rich_help_panel=_CLEANING)
    ] = "one-pass"


@dataclass(frozen=True)
class Preparation(DataOptions):
    """The data, and how they are split into training, validation and test parts."""

    split: Annotated[str, typer.Option(help="leave-last-two, time or random.", rich_help_panel=_SPLIT)] = (
        "leave-last-two"
    )
    validation_share: Annotated[
        float, typer.Option(help="Share of the events (time, random).", rich_help_panel=_SPLIT)
    ] = 0.1
    test_share: Annotated[
        float, typer.Option(help="Share of the events (time, random).", rich_help_panel=_SPLIT)
    ] = 0.1
    split_seed: Annotated[int, typer.Option(help="Seed of a random split.", rich_help_panel=_SPLIT)] = 0

    def __post_init__(self) -> None:
        """Say a wrong name now, not after the data have been read."""
        if self.split not in SPLIT_STRATEGIES:
            raise unknown_name("split", self.split, SPLIT_STRATEGIES)


@dataclass(frozen=True)
class Training:
    """What is set about the model and its training, and where it runs."""

    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the model or method; repeat for more."),
    ] = None
    threads: Annotated[
        int,
        typer.Option(
            min=1, max=1024, help="Threads; with one, the same seed gives the same floats everywhere."
        ),
    ] = 1
    memory: Memory = None
    device: Device = "cpu"


def parse_settings(pairs: Sequence[str] | None) -> dict[str, Any]:
    """{"epochs": 5} of ["epochs=5"]: JSON where it can be, text otherwise; the recipe checks the values.

    >>> parse_settings(["epochs=5", "learning_rate=1e-3", "loss=bce"])
    {'epochs': 5, 'learning_rate': 0.001, 'loss': 'bce'}
    """
    settings: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not (key and equals):
            raise ConfigError(f"--set takes KEY=VALUE, such as --set epochs=5, and {pair!r} was given.")
        settings[key.strip()] = _value(text)
    return settings


def parse_grid(pairs: Sequence[str] | None) -> dict[str, list[Any]]:
    """{"l2": [0, 0.1]} of ["l2=0,0.1"], each value read as --set would.

    >>> parse_grid(["l2=0,0.1", "domain=exact,ranking"])
    {'l2': [0, 0.1], 'domain': ['exact', 'ranking']}
    """
    grid: dict[str, list[Any]] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        values = _values(text)
        if not (key and equals and values) or key.strip() in grid:
            raise ConfigError(
                f"--grid takes KEY=VALUE,VALUE, each key once, such as l2=0,0.1, and {pair!r} was given."
            )
        grid[key.strip()] = values
    return grid


def _values(text: str) -> list[Any]:
    """The values between commas, none if one is missing; those of a list in brackets belong together."""
    whole = _value(f"[{text}]")
    if isinstance(whole, list):
        return whole
    parts = [part.strip() for part in text.split(",")]
    return [_value(part) for part in parts] if all(parts) else []


def set_words(settings: Mapping[str, Any]) -> str:
    """The settings as options for a shell, which `parse_settings` reads back.

    >>> set_words({"l2": 0.01, "domain": "exact"})
    '--set l2=0.01 --set domain=exact'
    """
    return " ".join(f"--set {shlex.quote(f'{key}={_text(value)}')}" for key, value in settings.items())


def _value(text: str) -> Any:  # JSON where it can be, text otherwise
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _text(value: Any) -> str:  # what _value reads back
    return value if isinstance(value, str) and _value(value) == value else json.dumps(value)


def names_in(text: str, option: str) -> list[str]:
    """["mf", "ease"] of "mf,ease", without repetitions."""
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) != len(names):
        raise ConfigError(f"{option} takes different names with commas between them, and {text!r} was given.")
    return names


def lengths_in(text: str) -> list[int]:
    """The lengths of lists meant by "10" or by "5,10".

    >>> lengths_in("5,10")
    [5, 10]
    """
    try:
        lengths = [int(part) for part in text.split(",")]
    except ValueError:
        lengths = []
    if not lengths or len(set(lengths)) != len(lengths):
        raise ConfigError(f"-k takes a whole number, or several such as 5,10, and {text!r} was given.")
    return lengths


def seeds_in(text: str) -> list[int]:
    """The seeds meant by "3" (0, 1 and 2) or by "100,101" (those two).

    >>> seeds_in("3"), seeds_in("100,101")
    ([0, 1, 2], [100, 101])
    """
    try:
        given = [int(part) for part in text.split(",")]
    except ValueError:
        given = []
    seeds = list(range(given[0])) if len(given) == 1 else given
    if not seeds or min(seeds) < 0 or len(set(seeds)) != len(seeds):
        raise ConfigError(f"--seeds takes how many (3) or which (100,101,102), and {text!r} was given.")
    return seeds
