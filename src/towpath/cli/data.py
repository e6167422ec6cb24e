"""towpath data: built-in datasets, what is in a file, and splits of what is large."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from towpath.cli.groups import spread
from towpath.cli.options import Data, DataOptions, Memory, Preparation
from towpath.cli.output import Listing, Output
from towpath.cli.prepare import read_data, record_of
from towpath.errors import ConfigError
from towpath.memory import limit_memory

DataDir = Annotated[
    Path,
    typer.Option(
        envvar="TOWPATH_DATA", help="Where local copies of built-in datasets lie.", show_default=False
    ),
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A built-in dataset; towpath data list shows them.")
]
Out = Annotated[Path, typer.Option(metavar="SPLIT", help="The folder to make.", show_default=False)]
Source = Annotated[
    Path | None, typer.Option("--from", help="A copy you have already, instead of a download.")
]


def list_sets(output: Output) -> None:
    """List the built-in datasets, with where they come from and their licence."""
    from towpath.data.builtin_datasets import BUILTIN_DATASETS

    sets = [asdict(one) for one in BUILTIN_DATASETS.values()]
    rows = [(one["name"], f"{one['title']}\n{one['address']}\n{one['licence']}") for one in sets]
    output.show(
        {"sets": sets}, Listing("Built-in datasets", ("name", "what it is, publisher, licence"), rows)
    )


def fetch(name: Name, data_dir: DataDir, output: Output, source: Source = None) -> None:
    """Download a built-in dataset and check it; an interrupted download goes on where it stopped."""
    from towpath.data.fetch import fetch

    with output.transfer(name) as progress:
        path = fetch(name, data_dir, source=source, progress=progress)
    output.show({"name": name, "path": str(path)}, Listing(name, ("file",), [(str(path),)]))


def prepare(data: Data, out: Out, options: Preparation, output: Output, memory: Memory = None) -> None:
    """Clean, encode and split data that may be larger than memory; fit takes the folder as DATA."""
    from towpath.data.prepared import SplitPlan, prepare
    from towpath.data.split import PARTS
    from towpath.files import refuse_unwritable
    from towpath.rng import Rng

    limit_memory(memory)
    refuse_unwritable(out)
    if out.exists():
        raise ConfigError(f"{out} already exists; choose another --out.")
    plan = SplitPlan(options.split, options.validation_share, options.test_share, Rng(options.split_seed))
    reading, split = prepare(
        out,
        plan,
        lambda encode: read_data(data, options, output, encode=encode),
        lambda reading: record_of(reading, options),
    )
    counts = {part: len(getattr(split, part).rows) for part in PARTS}
    result = {
        "out": str(out),
        "source": reading.source,
        "users": split.train.n_users,
        "items": split.train.n_items,
        **counts,
        "description": split.description,
        "fingerprint": split.fingerprint,
    }
    output.show(result, Listing("Split", ("", ""), list(result.items())))


def inspect(data: Data, options: DataOptions, output: Output, memory: Memory = None) -> None:
    """Say what is in the data, and what is wrong with them."""
    from towpath.data.inspect import inspect

    limit_memory(memory)
    found = inspect(read_data(data, options, output))
    result = asdict(found)
    lists = ("warnings", "features")
    facts = [(name.replace("_", " "), _fact(value)) for name, value in result.items() if name not in lists]
    facts += [("features", sentence) for report in found.features for sentence in report.sentences()]
    warnings = [("warning", text) for text in found.warnings]
    output.show(result, Listing(f"What is in {data}", ("", ""), [*facts, *warnings]))


def _fact(value: object) -> object:
    """A value for one cell of a table: quantiles and shares side by side."""
    if isinstance(value, dict):
        return ", ".join(
            f"{name}: {part if isinstance(part, str) else format(part, '.4g')}"
            for name, part in value.items()
        )
    return value


data_app = typer.Typer(help="Built-in datasets, what is in a file, and splits of what is large.")
data_app.command("list")(spread(list_sets))
data_app.command("fetch")(spread(fetch))
data_app.command("inspect")(spread(inspect))
data_app.command("prepare")(spread(prepare))
