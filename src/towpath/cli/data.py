"""towpath data: named public sets, and what is in a file."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from towpath.cli.groups import spread
from towpath.cli.options import Data, DataOptions
from towpath.cli.output import Listing, Output
from towpath.cli.prepare import read_data

DataDir = Annotated[
    Path,
    typer.Option(envvar="TOWPATH_DATA", help="Where local copies of named sets lie.", show_default=False),
]


def list_sets(output: Output) -> None:
    """List the named sets, with where they come from and their licence."""
    from towpath.data.catalogue import CATALOGUE

    sets = [asdict(one) for one in CATALOGUE.values()]
    rows = [(one["name"], one["address"], one["licence"]) for one in sets]
    output.show({"sets": sets}, Listing("Named sets", ("name", "address", "licence"), rows))


def fetch(name: str, data_dir: DataDir, output: Output) -> None:
    """Download a named set, checked and ready for use; an interrupted download goes on where it stopped."""


def inspect(data: Data, options: DataOptions, output: Output) -> None:
    """Say what is in the data, and what is wrong with them."""
    from towpath.data.inspect import inspect

    found = inspect(read_data(data, options, output))
    result = asdict(found)
    output.show(result, Listing(data, ("", "value"), result.items()))


data_app = typer.Typer(help="Named public sets, and what is in a file.")
for name, verb in {"list": list_sets, "fetch": fetch, "inspect": inspect}.items():
    data_app.command(name)(spread(verb))
