"""A world as a folder: a data set that every verb reads, and the truth next to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from pydantic import BaseModel
from safetensors.numpy import load_file

from towpath.boundary import stored
from towpath.data.interactions import Interactions
from towpath.data.parquet import read_ids, read_table, write_ids, write_table
from towpath.data.sql import NO_POLICY, RANDOM_POLICY
from towpath.data.vocabulary import Vocabulary
from towpath.files import Form, new_folder, read_manifest, write_manifest
from towpath.models.tensors import write_tensors
from towpath.worlds.world import World

EVENTS = "events.parquet"
# Files that begin with an underscore are not read as events.
SHOWN, USERS, ITEMS, TRUTH = "_exposures.parquet", "_users.parquet", "_items.parquet", "truth.safetensors"


class _Contents(BaseModel):
    """What the manifest of a world says."""

    about: dict[str, Any]  # any JSON that tells how it was made


STORED_AS = Form("world", 1, (EVENTS, SHOWN, USERS, ITEMS, TRUTH), _Contents)


def save_world(world: World, folder: Path, about: Mapping[str, Any]) -> None:
    """The folder, written as a whole or not at all; `about` is whatever JSON should say how it was made."""
    truth = {"relevance": world.relevance}
    if world.propensity is not None:
        truth["propensity"] = world.propensity
    with new_folder(folder) as partial:
        write_table(_table(world.exposures), partial / EVENTS)
        write_table(_with_codes(world.exposures), partial / SHOWN)
        write_ids(world.exposures.user_ids, partial / USERS)
        write_ids(world.exposures.item_ids, partial / ITEMS)
        write_tensors({name: torch.from_numpy(matrix) for name, matrix in truth.items()}, partial / TRUTH)
        write_manifest(partial, STORED_AS, {"about": dict(about)}, (EVENTS, SHOWN, USERS, ITEMS, TRUTH))


def load_world(folder: Path) -> tuple[World, dict[str, Any]]:
    """The world in this folder and how it was made, once every byte has been checked."""
    about = read_manifest(folder, STORED_AS)["about"]
    with stored(folder):
        users, items = read_ids(folder / USERS), read_ids(folder / ITEMS)
        truth = load_file(folder / TRUTH)
        exposures = _interactions(read_table(folder / SHOWN), users, items)
        world = World(truth["relevance"], truth.get("propensity"), exposures, exposures.positives)
        refuse_parts_of_others(world, len(users), len(items))
        return world, about


def refuse_parts_of_others(world: World, users: int, items: int) -> None:
    """Nothing, unless ids, truth and rows do not belong together, or a chance is none."""
    for name, chances in (("relevance", world.relevance), ("propensity", world.propensity)):
        if chances is None:
            continue
        if chances.shape != (users, items):
            raise ValueError(f"{name} of {chances.shape} pairs for {users} users and {items} items")
        if not ((chances >= 0) & (chances <= 1)).all():  # which is false of what is no number
            raise ValueError(f"{name} that is no chance")
    for codes, most in ((world.exposures.users, users), (world.exposures.items, items)):
        if len(codes) and not 0 <= codes.min() <= codes.max() < most:
            raise ValueError("rows of other users or items")


def _table(rows: Interactions) -> pa.Table:
    """The rows with the ids of users and items."""
    columns: dict[str, Any] = {
        "user": rows.user_ids.values.take(pa.array(rows.users)),
        "item": rows.item_ids.values.take(pa.array(rows.items)),
        "time": rows.times,
        "exposure": rows.exposures,
        "click": None if rows.values is None else rows.values.astype(np.int8),
        "propensity": rows.propensities,
        "policy": None if rows.policies is None else pa.array(_policy_names(rows.policies)),
    }
    return pa.table({name: column for name, column in columns.items() if column is not None})


def _policy_names(codes: NDArray[np.int32]) -> NDArray[np.str_]:
    """Nothing for rows of the earlier recommender, `random` for those that were shown by chance."""
    return np.where(codes == RANDOM_POLICY, "random", "")


def _with_codes(rows: Interactions) -> pa.Table:
    """The same with codes, so that nobody has to look up millions of ids to have the world back."""
    table = _table(rows)
    for name, codes in (("user_code", rows.users), ("item_code", rows.items)):
        table = table.append_column(name, pa.array(codes))
    return table


def _interactions(table: pa.Table, users: Vocabulary, items: Vocabulary) -> Interactions:
    """The rows of the table, which are in the order of Interactions already."""

    def column(name: str, kind: type[np.generic]) -> Any:  # an array, or None where there is no such column
        return table.column(name).to_numpy().astype(kind) if name in table.column_names else None

    policies = None
    if "policy" in table.column_names:
        names = table.column("policy").to_numpy()
        policies = np.where(names == "random", RANDOM_POLICY, NO_POLICY).astype(np.int32)
    return Interactions(
        users=column("user_code", np.int32),
        items=column("item_code", np.int32),
        user_ids=users,
        item_ids=items,
        times=column("time", np.int64),
        values=column("click", np.float32),
        propensities=column("propensity", np.float32),
        exposures=column("exposure", np.bool_),
        labels=column("click", np.bool_),
        policies=policies,
    )
