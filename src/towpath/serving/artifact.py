"""A trained model as a folder of plain files: loads without the training data, and without pickle.

model.safetensors     the scorer's parameters and buffers
history.safetensors   each user's items (packed), who was trained on, and how often each item occurred
users.parquet         the users' own ids, in the order of their codes
items.parquet         the items' own ids, in the order of their codes
players.safetensors   what others than the scorer learned, where a method has them; never scored with
manifest.json         what it is, and a checksum of every file
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor

from towpath.boundary import stored
from towpath.checksums import Manifest
from towpath.data.interactions import Histories, Interactions
from towpath.data.joining import join
from towpath.data.parquet import read_ids, write_ids
from towpath.data.split import Split
from towpath.data.vocabulary import Vocabulary
from towpath.data.whole import whole_split
from towpath.errors import ArtifactError, ConfigError
from towpath.files import (
    ARTIFACT,
    PROOFS,
    new_folder,
    read_manifest,
    write_manifest,
)
from towpath.files import ARTIFACT_FILES as FILES
from towpath.models.model_setting import with_classes
from towpath.models.registry import model_name, model_type
from towpath.models.scorer import Scorer, Sizes
from towpath.models.tensors import write_tensors
from towpath.plugins import class_among, class_path
from towpath.training.fit import Fit

PLAYERS = "players.safetensors"


@dataclass(frozen=True)
class ServingHistory:
    """What the log says about users and items, as far as serving needs it."""

    histories: Histories  # everything in the log: hidden from lists, and what history models score from
    trained: NDArray[np.bool_]  # (users,) whether the scorer learned from this user
    item_counts: NDArray[np.int64]  # (items,) training events per item: the fallback's order
    shown: Histories | None = None  # everything that users were shown; kept where asked for


@dataclass(frozen=True)
class Artifact:
    """All that serving needs, and where it came from."""

    scorer: Scorer
    user_ids: Vocabulary
    item_ids: Vocabulary
    history: ServingHistory
    about: dict[str, Any]  # recipe, data fingerprint, metrics, why training stopped: anything JSON can hold
    auxiliary_state: Mapping[str, Tensor] = field(
        default_factory=dict
    )  # what w and g learned: for analysis alone


def artifact_of(fit: Fit, split: Split, *, keep_shown: bool = False, **origin: Any) -> Artifact:
    """What serving this fit needs; `origin` (recipe, data: anything JSON can hold) goes into the manifest.

    With `keep_shown` it knows what users were shown, too, so that serving can leave it out.
    """
    split = whole_split(split) if fit.on_everything else split
    best = fit.history[fit.best_epoch - 1] if fit.history else {}
    about = {
        "data": {"fingerprint": split.fingerprint},
        **({"trained_on": "everything"} if fit.on_everything else {}),
        **origin,
        # Validation only: the test part is read by an evaluation, once. Clocks differ between equal runs.
        "metrics": {name: value for name, value in best.items() if "seconds" not in name},
        "best_epoch": fit.best_epoch,
        "stopped_because": fit.stopped_because,
    }
    ids = split.train.user_ids, split.train.item_ids
    return Artifact(
        fit.scorer, *ids, serving_history_of(split, keep_shown=keep_shown), about, fit.auxiliary_state
    )


def serving_history_of(split: Split, *, keep_shown: bool = False) -> ServingHistory:
    """The past as it stands when the model goes out: the whole log, though only `train` was learned from.

    A test part that came from a file is no part of the log: it may be events of another kind.
    """
    shown = shown_histories_of(split) if keep_shown else None
    return ServingHistory(
        _histories_of(_known(split)), split.train.histories.lengths > 0, split.train.item_counts, shown
    )


def shown_histories_of(split: Split) -> Histories:
    """What each user was shown in any part, clicked or not; their positives where the log says no more."""
    parts = _known(split)
    labelled = all(part.impressions is not None for part in parts)
    return _histories_of([part.rows for part in parts] if labelled else parts)


def log_of(split: Split) -> Interactions:
    """Every row of the users' past with all its columns, in the order of users and times."""
    return reduce(join, _known(split)).rows


def _known(split: Split) -> list[Interactions]:
    """The parts that are the users' past; a test part that came from a file is not."""
    return [split.train, split.validation, *([] if "test" in split.outside else [split.test])]


def _histories_of(parts: Sequence[Interactions]) -> Histories:
    """The histories of all parts together, of earlier parts first where times are equal or missing."""
    timed = all(part.times is not None for part in parts)
    alone = [
        Interactions(part.users, part.items, part.user_ids, part.item_ids, part.times if timed else None)
        for part in parts
    ]
    return reduce(join, alone).histories


def library_versions() -> dict[str, str]:
    """The versions of everything that can move a number."""
    return {"python": python_version()} | {name: version(name) for name in ("towpath", "torch", "numpy")}


def save_artifact(artifact: Artifact, folder: Path) -> None:
    """The folder with everything in it, replaced as a whole; a failure leaves what was there before."""
    contents: Manifest = {
        "model": model_name(type(artifact.scorer)),
        "model_class": class_path(type(artifact.scorer)),
        "settings": artifact.scorer.settings.model_dump(mode="json"),
        "sizes": artifact.scorer.sizes.to_json(),
        **artifact.about,
        "versions": library_versions(),
    }
    with new_folder(folder) as partial:
        write_tensors(artifact.scorer.state_dict(), partial / FILES[0])
        write_tensors(_tensors_of(artifact.history), partial / FILES[1])
        write_ids(artifact.user_ids, partial / FILES[2])
        write_ids(artifact.item_ids, partial / FILES[3])
        if artifact.auxiliary_state:
            write_tensors(artifact.auxiliary_state, partial / PLAYERS)
        write_manifest(partial, ARTIFACT, contents, [*FILES, PLAYERS] if artifact.auxiliary_state else FILES)


def load_artifact(folder: Path, models: Sequence[type[Scorer]] = ()) -> Artifact:
    """The artifact in this folder, once every byte has been checked.

    Its class must be registered, or be one of `models`; nothing is imported because the folder names it.
    """
    manifest = read_manifest(folder, ARTIFACT)
    # Checksums hold, so the files are as written: another version of a model wrote them.
    with stored(folder, "fit again"):
        return Artifact(
            scorer=_read_scorer(manifest, folder / FILES[0], models),
            user_ids=read_ids(folder / FILES[2]),
            item_ids=read_ids(folder / FILES[3]),
            history=_read_history(folder / FILES[1]),
            about={key: value for key, value in manifest.items() if key not in PROOFS},
            auxiliary_state=load_file(folder / PLAYERS) if PLAYERS in manifest["files"] else {},
        )


def _read_scorer(manifest: Manifest, path: Path, models: Sequence[type[Scorer]]) -> Scorer:
    kind = _class_of(manifest, models)
    settings = kind.settings_type(**with_classes(manifest["settings"], models))
    with _asking_for_a_class():
        scorer = kind(settings, Sizes.from_json(manifest["sizes"]))
    scorer.load_state_dict(load_file(path))
    return scorer.eval()


def _class_of(manifest: Manifest, models: Sequence[type[Scorer]]) -> type[Scorer]:
    """The class handed in that the manifest names, or the registered one; the file itself imports nothing."""
    wanted = str(manifest.get("model_class", ""))  # artifacts of early versions name a registered model only
    given = class_among(wanted, models)
    if given is not None:
        return model_type(given)
    with _asking_for_a_class():
        return model_type(str(manifest["model"]))


@contextmanager
def _asking_for_a_class() -> Iterator[None]:
    """A block in which an unknown model says how its class can be given."""
    try:
        yield
    except ConfigError as error:
        raise ArtifactError(
            f"{error} The artifact asks for it: install the package that registers it, or hand its class to "
            "towpath.load(folder, models=[...])."
        ) from error


def _tensors_of(history: ServingHistory) -> dict[str, Tensor]:
    arrays = {
        "starts": history.histories.starts,
        "items": history.histories.items,
        "trained": history.trained,
        "item_counts": history.item_counts,
    }
    if history.shown is not None:
        arrays |= {"shown_starts": history.shown.starts, "shown_items": history.shown.items}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _read_history(path: Path) -> ServingHistory:
    arrays = {name: tensor.numpy() for name, tensor in load_file(path).items()}
    histories = Histories(arrays["starts"], arrays["items"])
    shown = Histories(arrays["shown_starts"], arrays["shown_items"]) if "shown_items" in arrays else None
    return ServingHistory(histories, arrays["trained"], arrays["item_counts"], shown)
