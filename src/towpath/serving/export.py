"""Vectors of users and items whose inner products are the scores, for any vector index."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from towpath.data.parquet import write_table
from towpath.data.vocabulary import Vocabulary
from towpath.errors import ConfigError
from towpath.files import Form, new_folder, write_manifest
from towpath.models.capabilities import HasFactors
from towpath.models.scorer import context_of
from towpath.ranking.scoring import inference_mode
from towpath.ranking.top_k import top_k
from towpath.serving.artifact import Artifact

EXPORT = Form("vectors", 1)
FILES = ("items.parquet", "items.npy", "users.parquet", "users.npy")
_USERS_AT_ONCE = 4096
# Neighbours of each vector in the graph of the index, and how many are looked at when it is built and asked.
_LINKS, _DEPTH = 32, 200


@dataclass(frozen=True)
class Vectors:
    """One vector for each item and each trained user; score(u, i) = <users[u], items[i]>."""

    items: NDArray[np.float32]  # (n_items, d)
    users: NDArray[np.float32]  # (n, d)
    user_codes: NDArray[np.int64]  # (n,) whose vectors they are


@dataclass(frozen=True)
class IndexReport:
    """How much of the exact lists an approximate index finds."""

    k: int
    users: int  # that were asked about
    recall: float


def vectors_of(artifact: Artifact) -> Vectors:
    """The vectors of a model that scores by inner products, biases folded in as further dimensions.

    Users of models that look at histories stand where the history in the artifact leaves them.
    """
    users = np.flatnonzero(artifact.history.trained)
    blocks, items = [], None
    for some in _runs(users):
        states, table = _factors(artifact, some)
        blocks.append(states)
        items = table if items is None else items
    if items is None:
        raise ConfigError("The model was trained on no user, so there is nothing to export.")
    return Vectors(items, np.concatenate(blocks), users)


def write_vectors(
    artifact: Artifact, folder: Path, *, index: bool = False, k: int = 10
) -> IndexReport | None:
    """The folder with the vectors as Parquet (id, vector) and NumPy, and an index of the items where asked.

    items.npy and users.npy have the rows in the order of the ids in the Parquet files.
    """
    if index:
        _faiss()  # a missing library is said before the work begins
    vectors = vectors_of(artifact)
    about: dict[str, Any] = {  # any JSON
        "model": artifact.about.get("model", type(artifact.scorer).__name__),
        "dimensions": int(vectors.items.shape[1]),
        "items": len(vectors.items),
        "users": len(vectors.users),
        "score": "inner product",
    }
    report = None
    with new_folder(folder) as partial:
        _write_side(artifact.item_ids, np.arange(len(vectors.items)), vectors.items, partial / "items")
        _write_side(artifact.user_ids, vectors.user_codes, vectors.users, partial / "users")
        files = [*FILES]
        if index:
            report = _write_index(vectors, partial / "items.faiss", k)
            files.append("items.faiss")
            about |= {"index": {"kind": "faiss HNSW, inner product", "k": k, "recall": report.recall}}
        write_manifest(partial, EXPORT, about, files)
    return report


def _runs(users: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(users), _USERS_AT_ONCE):
        yield users[start : start + _USERS_AT_ONCE]


def _factors(artifact: Artifact, users: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    scorer = artifact.scorer
    if not isinstance(scorer, HasFactors):
        raise ConfigError(
            f"{type(scorer).__name__} does not score by inner products, so it has no vectors to export; fit "
            "mf, gmf, sgns or attention for that."
        )
    with inference_mode(scorer):
        states, table = scorer.factors(context_of(scorer, users, artifact.history.histories))
    return states.cpu().numpy(), table.detach().cpu().numpy()


def _write_side(ids: Vocabulary, codes: NDArray[np.int64], vectors: NDArray[np.float32], name: Path) -> None:
    flat = pa.array(np.ascontiguousarray(vectors).ravel())
    lists = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    write_table(
        pa.table({"id": ids.values.take(pa.array(codes)), "vector": lists}), name.with_suffix(".parquet")
    )
    np.save(name.with_suffix(".npy"), vectors)


def _write_index(vectors: Vectors, path: Path, k: int) -> IndexReport:
    faiss = _faiss()
    index = faiss.IndexHNSWFlat(vectors.items.shape[1], _LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = index.hnsw.efSearch = max(_DEPTH, k)
    index.add(np.ascontiguousarray(vectors.items))
    faiss.write_index(index, str(path))
    # Every so many users, up to a thousand: the order of users has nothing to do with the question.
    asked = vectors.users[:: max(1, -(-len(vectors.users) // 1000))]
    found = index.search(np.ascontiguousarray(asked), k)[1]
    return IndexReport(k, len(asked), recall_of(found, asked, vectors.items))


def recall_of(found: NDArray[np.int64], users: NDArray[np.float32], items: NDArray[np.float32]) -> float:
    """The share of the exact best items (n, k) that are among those found (n, k)."""
    k = found.shape[1]
    hits = 0
    for start in range(0, len(users), 64):
        some = slice(start, start + 64)
        exact = top_k(torch.from_numpy(users[some] @ items.T), k)[1].numpy()
        hits += int((found[some][:, :, None] == exact[:, None, :]).any(2).sum())
    return hits / max(1, found.size)


def _faiss() -> Any:  # a module without types
    try:
        import faiss
    except ImportError:
        raise ConfigError(
            "An index needs the library faiss, which is not installed: pip install 'towpath[faiss]'."
        ) from None
    return faiss
