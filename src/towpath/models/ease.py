"""EASE (Steck 2019): an item-to-item regression in closed form; what a user would pick instead."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from towpath.data.interactions import Histories, Interactions
from towpath.errors import ConfigError
from towpath.memory import refuse_beyond
from towpath.models.fold_in import distinct_pairs
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.rng import Rng

if TYPE_CHECKING:  # scipy takes its time and memory, and only closed forms need it
    from scipy import sparse

# The item-to-item matrix is dense: 30,000 items take 3.6 GB of it, and twice that while it is solved.
_MOST_ITEMS = 30_000


class EaseSettings(Settings):
    """Settings of EASE."""

    ridge: float = Field(800.0, gt=0, description="Ridge penalty of the regression; larger means smoother.")


class Ease(Scorer):
    """score(u, i) = sum of B[j, i] over the items j that u has interacted with.

        B = argmin |X - X B|^2 + ridge |B|^2  with diag(B) = 0
          = I - P / diag(P),  P = (X'X + ridge I)^-1

    X is the binary training matrix, which the model keeps: as in a factorisation, a user is what training
    knew of them. Memory is quadratic in the number of items.
    """

    settings_type = EaseSettings
    settings: EaseSettings
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {"ridge": (50, 100, 200, 500, 800, 1000, 2000, 5000)}
    weights: Tensor  # (items, items)
    starts: Tensor  # (users + 1,) where each user's run begins in `interacted`
    interacted: Tensor  # (n,) training items of all users, end to end

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        refuse_large_catalogue(sizes.items)
        self.register_buffer("weights", torch.zeros(sizes.items, sizes.items))
        self.register_buffer("starts", torch.zeros(sizes.users + 1, dtype=torch.long))
        self.register_buffer("interacted", torch.zeros(0, dtype=torch.int32))
        self.register_load_state_dict_pre_hook(_make_room)  # type: ignore[no-untyped-call]  # untyped in torch

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Solve the regression."""
        interacted = interaction_matrix(train)
        self.weights.copy_(torch.from_numpy(solve_ease(interacted, self.settings.ridge)))
        self.starts.copy_(torch.from_numpy(interacted.indptr))
        self.interacted = torch.from_numpy(interacted.indices)

    def score(self, context: Context, items: Tensor) -> Tensor:
        """Sum of the weights from each interacted item to each scored one."""
        begin = self.starts[context.users]
        lengths = self.starts[context.users + 1] - begin
        offsets = lengths.cumsum(0) - lengths
        # Index of each item: that of the user's run, moved from where the run lies among these users'.
        places = (begin - offsets).repeat_interleave(lengths)
        runs = self.interacted[places + torch.arange(len(places), device=places.device)].long()
        every = torch.nn.functional.embedding_bag(runs, self.weights, offsets, mode="sum")  # (b, n_items)
        return every.gather(1, items.expand(len(every), -1))

    def fold_in(self, histories: Histories) -> Scorer:
        """The same regression for users who have interacted with these items."""
        rows, own = distinct_pairs(histories, self.sizes.items)
        with torch.device("meta"):  # the matrix may fill the memory once, not twice
            folded = Ease(self.settings, replace(self.sizes, users=len(histories.lengths)))
        counts = torch.bincount(rows, minlength=folded.sizes.users)
        folded.weights, folded.interacted = self.weights, own.to(self.weights.device)
        folded.starts = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(self.weights.device)
        return folded.eval()

    def item_similarity(self, items: Tensor) -> Tensor:
        """The weight with which each item speaks for every other."""
        return self.weights[items]


def refuse_large_catalogue(items: int) -> None:
    """Nothing, unless there are more items than the regression can hold."""
    if items > _MOST_ITEMS:
        raise ConfigError(
            f"EASE keeps a dense item-by-item matrix and takes at most {_MOST_ITEMS:,} items; "
            f"these data have {items:,}. Raise --min-per-item, or fit mf from a random start."
        )
    # The matrix itself, and the two that it is solved from.
    refuse_beyond(12 * items**2, f"EASE of {items:,} items", "raise --min-per-item")


def interaction_matrix(train: Interactions) -> "sparse.csr_matrix":
    """X: one where the user (row) has interacted with the item (column)."""
    from scipy import sparse

    ones = np.ones(len(train), dtype=np.float32)
    interacted = sparse.csr_matrix((ones, (train.users, train.items)), shape=(train.n_users, train.n_items))
    interacted.data[:] = 1  # a repeated pair counts once
    return interacted


def solve_ease(interacted: "sparse.csr_matrix", ridge: float) -> NDArray[np.float32]:
    """B = I - P / diag(P) with P = (X'X + ridge I)^-1: (items, items)."""
    from scipy import linalg

    gram = (interacted.T @ interacted).toarray()
    gram[np.diag_indices_from(gram)] += ridge
    # Symmetric and positive definite, so Cholesky halves the work of a general inverse.
    identity = np.eye(len(gram), dtype=np.float32)
    inverse = linalg.cho_solve(linalg.cho_factor(gram, overwrite_a=True), identity)
    weights: NDArray[np.float32] = (inverse / -np.diag(inverse)[None, :]).astype(np.float32, copy=False)
    np.fill_diagonal(weights, 0)
    return weights


def _make_room(module: Ease, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Give `interacted`, whose length depends on the data, the length of the state that is loaded."""
    if prefix + "interacted" in state:
        module.interacted = torch.empty_like(state[prefix + "interacted"])
