"""Lists for a few users of a stored model without torch, which takes a second to start.

Scores are those of the model but for rounding. Where rounding could decide an order, and for whatever else is
not done here, the answer is None, and `Recommender` has to be asked.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from towpath.checksums import Manifest, proved_manifest
from towpath.data.parquet import read_ids
from towpath.data.vocabulary import UNKNOWN, Id, Vocabulary
from towpath.serving.answers import FALLBACK, How, Recommendation

Scores = NDArray[np.float32]
Stored = Any  # an open safetensors file, which has no type of its own

# Scores that are nearer to each other than this, relative to the best, may be in another order in the model.
NEAR = 2e-5
# Those of `towpath.files.ARTIFACT`, whose checks load pydantic.
FILES = ("model.safetensors", "history.safetensors", "users.parquet", "items.parquet")
_USUAL: dict[str, type] = {"kind": str, "model": str, "settings": dict, "sizes": dict}
_OPTIONAL: dict[str, type] = {"data": dict, "recipe": dict, "best_epoch": int, "stopped_because": str}


def lean_lists(
    folder: Path, users: Sequence[Id], k: int, *, filter_seen: bool = True
) -> list[Recommendation] | None:
    """The k best items for each of these users of a run or an artifact, or None."""
    place = folder / "artifact" if (folder / "run.json").is_file() else folder
    if not place.is_dir():
        return None
    manifest = proved_manifest(place, FILES)
    if manifest is None or not _is_usual(manifest):
        return None
    score = _SCORES.get(str(manifest.get("model_class")))
    if score is None:
        return None
    user_ids, item_ids = (read_ids(place / f"{side}.parquet") for side in ("users", "items"))
    if not 0 < k <= len(item_ids):
        return None
    answers = []
    with _opened(place / "model.safetensors") as model, _opened(place / "history.safetensors") as past:
        for user in users:
            code = user_ids.code(user)
            known = code != UNKNOWN and bool(past.get_slice("trained")[code : code + 1][0])
            scores = score(model, code) if known else past.get_tensor("item_counts").astype(np.float32)
            if filter_seen and code != UNKNOWN:
                scores[_run_of(past, code)] = -np.inf
            best = _best(scores, k + 1)
            if known and _in_doubt(scores[best]):
                return None
            answers.append(_answer(user, scores, best[:k], item_ids, "model" if known else FALLBACK))
    return answers


def _is_usual(manifest: Manifest) -> bool:
    """Whether this is the manifest of an artifact; one that is odd in any way is left to `Recommender`."""
    usual = all(isinstance(manifest.get(key), kind) for key, kind in _USUAL.items())
    optional = all(isinstance(manifest.get(key, kind()), kind) for key, kind in _OPTIONAL.items())
    metrics = manifest.get("metrics", {})
    numbers = isinstance(metrics, dict) and all(isinstance(value, float | int) for value in metrics.values())
    return usual and optional and numbers and (manifest["kind"], manifest.get("format")) == ("artifact", 1)


def _opened(path: Path) -> Stored:
    return safe_open(path, framework="numpy")


def _run_of(stored: Stored, code: int, items: str = "items") -> NDArray[np.integer]:
    """The user's own part of the items that lie end to end."""
    start, end = stored.get_slice("starts")[code : code + 2].tolist()
    run: NDArray[np.integer] = stored.get_slice(items)[start:end]
    return run


def _factorization(model: Stored, code: int) -> Scores:
    user, items = model.get_slice("users.weight")[code : code + 1][0], model.get_tensor("items.weight")
    scores: Scores = items[:, :-1] @ user[:-1] + user[-1] + (items[:, -1] + model.get_tensor("bias"))
    return scores


def _ease(model: Stored, code: int) -> Scores:
    scores: Scores = model.get_tensor("weights")[_run_of(model, code, "interacted")].sum(axis=0)
    return scores


# By the class that a manifest names; a class of somebody else's under the same name is another class.
_SCORES: dict[str, Callable[[Stored, int], Scores]] = {
    "towpath.models.factorization:Factorization": _factorization,
    "towpath.models.ease:Ease": _ease,
}


def _best(scores: Scores, k: int) -> NDArray[np.int64]:
    """The places of the k highest scores, best first; among equal ones the lower place first."""
    k = min(k, len(scores))
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    few = np.flatnonzero(~(scores < least))  # all that tie with the last one, and what is no number
    return few[np.argsort(-scores[few], kind="stable")][:k]


def _in_doubt(best: Scores) -> bool:
    """Whether two neighbours are so close that the order of additions decides, or one is no number."""
    shown = best[~np.isneginf(best)]
    if not np.isfinite(shown).all():
        return True
    return len(shown) > 1 and bool((-np.diff(shown) <= NEAR * max(1.0, abs(float(shown[0])))).any())


def _answer(
    user: Id, scores: Scores, best: NDArray[np.int64], item_ids: Vocabulary, how: How
) -> Recommendation:
    shown = best[~np.isneginf(scores[best])]
    items, values = tuple(map(item_ids.id, shown.tolist())), tuple(scores[shown].tolist())
    return Recommendation(user, items, values, how == FALLBACK, how)
