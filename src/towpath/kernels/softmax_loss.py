"""Cross entropy of a softmax over a catalogue, or a sample of it, without ever holding all of its logits."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from towpath.kernels.lazy_adam import SPARSE_FROM_ROWS

# What a core's cache takes: the three matrix products of a chunk of this size need not fetch it again.
_CACHED_BYTES = 2**22
# Fewer rows than this waste the matrix products, however many items there are.
_FEWEST_ROWS = 64


@dataclass(frozen=True)
class Candidates:
    """A sample of the catalogue: items (k,), ascending, and the logs of their chances to be in it (k,)."""

    items: Tensor
    log_chances: Tensor


@dataclass(frozen=True)
class Seen:
    """What states have seen, and are not compared with: the items of sequences (s, h) up to their places.

    sequences: item codes, negative where there is none. places: (b,) row * h + column of each state.
    """

    sequences: Tensor
    places: Tensor


@dataclass(frozen=True)
class Products:
    """How the matrix products are done; nothing but rounding depends on it."""

    buffer_bytes: int = 2**26  # of logits that are held at once; one row at least
    dtype: torch.dtype | None = None  # None: that of the table; exponentials and sums over items always are


def weighted_softmax_loss(
    states: Tensor,
    table: Tensor,
    targets: Tensor,
    weights: Tensor,
    candidates: Candidates | None = None,
    products: Products = Products(),  # noqa: B008 it is frozen
    seen: Seen | None = None,
) -> Tensor:
    """Weighted sum over states (b, d) of the cross entropy of targets (b,) among the rows of table (n, d).

        sum_j  w_j (log Z_j - <s_j, t_target(j)>)        Z_j = sum_i exp <s_j, t_i>

    With candidates, Z_j is estimated from them (sampled softmax with logQ correction):

        Z_j ~ exp <s_j, t_target(j)>  +  sum over candidates i other than target(j) of  exp <s_j, t_i> / c_i

    c_i is the chance of i to be a candidate, which makes the estimate of Z_j unbiased. What a state has
    `seen` is left out of its Z_j, but for its target. Gradients flow to states and table, not to the weights
    (b,). They are worked out in the forward pass, a chunk of states at a time, so that no logit is computed
    twice.
    """
    function: Any = _WeightedSoftmaxLoss  # torch gives `apply` no types
    loss: Tensor = function.apply(states, table, targets, weights, candidates, products, seen)
    return loss


class _WeightedSoftmaxLoss(torch.autograd.Function):
    """The chunks as one differentiable operation."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        table: Tensor,
        targets: Tensor,
        weights: Tensor,
        candidates: Candidates | None,
        products: Products,
        seen: Seen | None,
    ) -> Tensor:
        own, others = table[targets], _Others(table, candidates, products, len(states))
        hidden = None if seen is None else _Hidden(seen, candidates, len(table))
        to_states, to_own, total = torch.empty_like(states), torch.empty_like(states), table.new_zeros(())
        for begin in range(0, len(states), others.rows):
            chunk = slice(begin, begin + others.rows)
            state, weight, target = states[chunk], weights[chunk, None], own[chunk]
            score = (state * target).sum(1, keepdim=True)
            logits = others.logits(state, targets[chunk])
            if hidden is not None:
                logits.masked_fill_(hidden.of(chunk), -torch.inf)
            highest = torch.maximum(logits.amax(1, keepdim=True), score)
            exponentials, right = logits.sub_(highest).exp_(), torch.exp(score - highest)
            sums = exponentials.sum(1, keepdim=True) + right
            total += ((sums.log() + highest - score) * weight).sum()
            # w softmax = w e / Z; the row's factor w / Z goes to the narrow side of each product.
            factor = weight / sums
            slope = factor * right - weight  # of the loss by the target's score
            torch.addcmul(others.expected(exponentials, state, factor), slope, target, out=to_states[chunk])
            torch.mul(state, slope, out=to_own[chunk])
        ctx.save_for_backward(to_states, others.to_table(targets, to_own))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        to_states, to_table = ctx.saved_tensors
        return gradient * to_states, gradient * to_table, None, None, None, None, None


class _Others:
    """What targets are compared with: the catalogue or its candidates (k, d), and their gradient so far."""

    def __init__(self, table: Tensor, candidates: Candidates | None, products: Products, states: int) -> None:
        self._table, self._candidates = table, candidates
        vectors = table if candidates is None else table[candidates.items]
        row_bytes = table.element_size() * len(vectors)
        cached = max(_FEWEST_ROWS, _CACHED_BYTES // row_bytes)
        self.rows = max(1, min(products.buffer_bytes // row_bytes, cached))  # of states in a chunk
        self._vectors = vectors.to(products.dtype or table.dtype)
        # Held from chunk to chunk: fresh memory of this size costs as much as the products.
        self._logits = table.new_empty(min(self.rows, states), len(vectors))
        self._products = self._logits
        if self._vectors.dtype != table.dtype:
            self._products = torch.empty_like(self._logits, dtype=self._vectors.dtype)
        self._gradient = torch.zeros_like(vectors)

    def logits(self, state: Tensor, targets: Tensor) -> Tensor:
        """<s, t> - log c of states (c, d), minus infinity for the targets (c,) themselves: (c, k)."""
        logits, products = self._logits[: len(state)], self._products[: len(state)]
        torch.mm(state.to(products.dtype), self._vectors.T, out=products)
        if self._candidates is None:
            return logits.copy_(products).scatter_(1, targets[:, None], -torch.inf)
        torch.sub(products, self._candidates.log_chances, out=logits)
        columns = _columns(self._candidates.items, targets)
        rows = torch.nonzero(columns < len(self._vectors))[:, 0]
        logits[rows, columns[rows]] = -torch.inf
        return logits

    def expected(self, exponentials: Tensor, state: Tensor, factor: Tensor) -> Tensor:
        """The sums over k of factor e_k t_k, e (c, k): (c, d); adds factor e_k s to the gradient of t_k."""
        products = self._products[: len(state)].copy_(exponentials)
        narrowed = (state * factor).to(products.dtype)
        if products.dtype == state.dtype:
            self._gradient.addmm_(products.T, narrowed)
        else:
            self._gradient += torch.mm(products.T, narrowed)
        return torch.mm(products, self._vectors) * factor

    def to_table(self, targets: Tensor, to_own: Tensor) -> Tensor:
        """The gradient of the whole table (n, d), with that of the targets; sparse if the table is large."""
        if self._candidates is None:
            return self._gradient.index_add_(0, targets, to_own)
        items, table = self._candidates.items, self._table
        if len(table) <= SPARSE_FROM_ROWS:
            return torch.zeros_like(table).index_add_(0, items, self._gradient).index_add_(0, targets, to_own)
        rows, values = torch.cat([items, targets])[None], torch.cat([self._gradient, to_own])
        return torch.sparse_coo_tensor(rows, values, table.shape, check_invariants=False)


class _Hidden:
    """Which of k items, the catalogue or its candidates, states have seen."""

    def __init__(self, seen: Seen, candidates: Candidates | None, items: int) -> None:
        self._k, width = items if candidates is None else len(candidates.items), seen.sequences.shape[1]
        self._rows, self._columns = seen.places // width, (seen.places % width).int()
        if candidates is None:
            self._sequences = seen.sequences.where(seen.sequences >= 0, self._k)
        else:
            self._sequences = _columns(candidates.items, seen.sequences)

    def of(self, chunk: slice) -> Tensor:
        """True for what these states (c) have seen: (c, k)."""
        sequences, owners = torch.unique(self._rows[chunk], return_inverse=True)
        columns = self._sequences[sequences]
        width = columns.shape[1]
        # The step at which a sequence has an item first, or a later one than any: (sequences, k + 1).
        first = torch.full((len(columns), self._k + 1), width, dtype=torch.int32, device=columns.device)
        steps = torch.arange(width, dtype=torch.int32, device=columns.device).expand_as(columns)
        first.scatter_reduce_(1, columns, steps, "amin")
        return first[:, : self._k][owners] <= self._columns[chunk, None]


def _columns(candidates: Tensor, items: Tensor) -> Tensor:
    """Where each of these items, any shape, is among the candidates (k,), ascending; k: nowhere."""
    columns = torch.searchsorted(candidates, items)
    found = candidates[columns.clamp(max=len(candidates) - 1)] == items
    return columns.where(found, len(candidates))
