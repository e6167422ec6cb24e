"""Where a model's item vectors start: drawn, learned by skip-gram, or read from a table made before."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from pydantic import Field
from safetensors import safe_open
from torch import Tensor

from towpath.boundary import stored
from towpath.data.interactions import Interactions
from towpath.data.parquet import read_ids, read_table
from towpath.data.vocabulary import UNKNOWN, Vocabulary
from towpath.errors import ConfigError
from towpath.files import ARTIFACT, read_manifest
from towpath.models.skip_gram import SkipGram, learn_item_vectors
from towpath.rng import Rng

ItemStart = Annotated[
    str,
    Field(
        description="Where item vectors start: `random`, `sgns` (skip-gram on the training histories), or a "
        "path: a run or artifact folder of the model sgns, or a Parquet file with an id column and columns "
        "of numbers. Scaled to the size of a random start; items that the table lacks start at random."
    ),
]
ItemRate = Annotated[
    float,
    Field(
        ge=0,
        description="Learning rate of the item vectors as a factor of learning_rate; below one a "
        "learned start changes slowly, zero freezes it.",
    ),
]


@dataclass(frozen=True)
class StartVectors:
    """Where item vectors start (n_items, width), and what there is to say about them."""

    vectors: Tensor
    remarks: tuple[str, ...] = ()


def start_vectors(train: Interactions, rng: Rng, width: int, source: str, std: float = 0.1) -> StartVectors:
    """A first vector for every item of the catalogue, in the order of the codes.

    source: `random`, `sgns`, or the path of a table (see ItemStart). Vectors that were learned are scaled by
    one factor such that their entries have the root mean square `std`, that of a random start; items that a
    table does not have are drawn.
    """
    drawn = torch.empty(train.n_items, width).normal_(0, std, generator=rng.torch("initialise", "item start"))
    if source == "random":
        return StartVectors(drawn)
    if source == "sgns":
        return StartVectors(_scaled(learn_item_vectors(train, SkipGram(width=width), rng).vectors, std))
    table = read_item_table(Path(source), width)
    codes = table.ids.codes(train.item_ids.values.to_pylist())
    known = codes != UNKNOWN
    if not known.any():
        raise ConfigError(
            f"None of the {train.n_items:,} items of the data is in the table {source} "
            f"(first: {train.item_ids.ids(np.array([0]))[0]!r}); give a table made from the same ids."
        )
    drawn[torch.from_numpy(known)] = _scaled(torch.from_numpy(table.vectors[codes[known]]), std)
    return StartVectors(drawn, _missing(train, known, source))


def _scaled(vectors: Tensor, std: float) -> Tensor:
    return vectors * (std / vectors.square().mean().sqrt().clamp(min=1e-12))


def _missing(train: Interactions, known: NDArray[np.bool_], source: str) -> tuple[str, ...]:
    """A sentence about the items that start at random although there is a table; none if there are none."""
    absent = np.flatnonzero(~known)
    if len(absent) == 0:
        return ()
    return (
        f"{len(absent):,} of {train.n_items:,} items are not in the table {source} and start at random "
        f"(first: {train.item_ids.ids(absent[:1])[0]!r}).",
    )


@dataclass(frozen=True)
class ItemTable:
    """Vectors (n, width) of items that are known by their own ids."""

    ids: Vocabulary
    vectors: NDArray[np.float32]


def read_item_table(path: Path, width: int) -> ItemTable:
    """The table at `path`: a run or artifact folder of the model sgns, or a Parquet file."""
    if not path.exists():
        raise ConfigError(
            f"item_start is `random`, `sgns` or the path of a table, and there is nothing at {str(path)!r}."
        )
    table = _from_artifact(path) if path.is_dir() else _from_parquet(path)
    found = table.vectors.shape[1]
    if found != width:
        raise ConfigError(
            f"The vectors in {path} have {found:,} numbers each and the model's have {width:,}; "
            f"set embedding_dim={found}, or make a table of width {width:,}."
        )
    broken = np.flatnonzero(~np.isfinite(table.vectors).all(1))
    if len(broken):
        raise ConfigError(
            f"{len(broken):,} of the {len(table.ids):,} vectors in {path} hold something missing or infinite "
            f"(first: item {table.ids.ids(broken[:1])[0]!r}); drop them from the table."
        )
    return table


def _from_artifact(folder: Path) -> ItemTable:
    folder = folder / "artifact" if (folder / "run.json").is_file() else folder
    manifest = read_manifest(folder, ARTIFACT)
    if manifest["model"] != "sgns":
        raise ConfigError(
            f"item_start takes item vectors from the model sgns, and {folder} holds {manifest['model']}; "
            "fit sgns, or write the vectors to a Parquet file."
        )
    with stored(folder), safe_open(folder / "model.safetensors", framework="np") as file:
        return ItemTable(read_ids(folder / "items.parquet"), file.get_tensor("vectors"))


def _from_parquet(path: Path) -> ItemTable:
    """Ids from the column `id`, or else the first; vectors from the others, or from one column of lists."""
    table = read_table(path)
    name = "id" if "id" in table.column_names else table.column_names[0]
    ids = table.column(name).combine_chunks()
    repeated = len(ids) - len(ids.unique())
    if repeated:
        raise ConfigError(
            f"{path} has {repeated:,} rows whose {name!r} occurs before; keep one row for each."
        )
    columns = [c for c in table.column_names if c != name]
    try:
        vectors = np.column_stack([_numbers(table.column(c)) for c in columns])
    except (TypeError, ValueError):
        raise ConfigError(
            f"{path} should hold an id and vectors: columns of numbers, or one of lists of the same length; "
            f"its other columns are {', '.join(map(repr, columns)) or 'none'}."
        ) from None
    return ItemTable(Vocabulary(ids), vectors)


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float32]:
    """A column of numbers as (n,), one of lists as (n, width); missing numbers are not a number."""
    if pa.types.is_nested(column.type):
        return np.array(column.to_pylist(), dtype=np.float32)
    return column.to_numpy().astype(np.float32)
