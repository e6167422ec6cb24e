"""The truth of a world's folder, in the codes of whatever was read from its events."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from towpath.boundary import stored
from towpath.data.interactions import Interactions
from towpath.data.parquet import read_ids
from towpath.data.vocabulary import UNKNOWN, Vocabulary
from towpath.errors import DataError
from towpath.files import read_manifest
from towpath.worlds.store import ITEMS, STORED_AS, TRUTH, USERS


def truth_next_to(data: str | Path) -> Path | None:
    """The folder of the world whose events these are: the path itself or its parent; None otherwise."""
    path = Path(data)
    return next((place for place in (path, path.parent) if (place / TRUTH).is_file()), None)


def relevance_for(rows: Interactions, folder: Path) -> NDArray[np.float32]:
    """The chance that each user clicks each item once it is shown, by the codes of `rows`: (users, items)."""
    read_manifest(folder, STORED_AS)  # every byte is as it was written
    with stored(folder):
        with safe_open(folder / TRUTH, framework="numpy") as file:
            relevance: NDArray[np.float32] = file.get_tensor("relevance")
        users = _places(read_ids(folder / USERS), rows.user_ids, "user")
        items = _places(read_ids(folder / ITEMS), rows.item_ids, "item")
        return relevance[np.ix_(users, items)]


def _places(own: Vocabulary, wanted: Vocabulary, side: str) -> NDArray[np.int64]:
    """Where the wanted ids are among the world's own."""
    places = own.codes(wanted.ids(np.arange(len(wanted))))
    missing = np.flatnonzero(places == UNKNOWN)
    if len(missing):
        raise DataError(
            f"The truth of a world covers its own {len(own):,} {side}s, but {len(missing):,} of "
            f"{len(wanted):,} in the data are not among them (first: {wanted.ids(missing[:1])[0]!r}); "
            "evaluate the events that belong to this world, without renaming anything."
        )
    return places
