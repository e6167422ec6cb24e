"""Scores of pairs by a perceptron whose first layer is a sum of a part of the user and a part of the item.

    s = <h, a_n> + b,   a_1 = relu(x_user + y_item),   a_l = relu(W_l a_(l-1) + c_l)

As one differentiable operation, block by block: the activations of a block stay in cache, the widest of them
are never held for all pairs, and every matrix product writes into memory that is there already. Numba does
what surrounds the products; `usable` says whether it can. Tests hold it against autograd.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from towpath.kernels.inner_products import arrays, usable

# Pairs that pass through the layers at once.
_PAIRS_AT_ONCE = 2048
# First activations of a tile of the catalogue: two megabytes, which a core's cache nearly holds.
_TILE = 2**19
# Fewer outputs than this lie unit after unit in such a tile.
_FEW = 16
# From this width on activations lie pair after pair; narrower ones unit after unit, which products prefer.
_WIDE = 32


class Layer(NamedTuple):
    """W (out, in) and c (out,); the last one of several is the output layer, with one output."""

    weight: Tensor
    bias: Tensor


def pair_scores(user: Tensor, item: Tensor, places: Tensor, layers: Sequence[Layer]) -> Tensor:
    """Scores (b, k) of users' parts (b, h) and of the items' parts (n, h) that stand at places (b, k)."""
    user, item, places = (t.contiguous() for t in (user, item, places))
    if not torch.is_grad_enabled():
        return _forward(user, item, places, layers, None)
    flat = [tensor for layer in layers for tensor in layer]
    scores: Tensor = _PairScores.apply(user, item, places, *flat)  # type: ignore[no-untyped-call]
    return scores


def catalogue_scores(user: Tensor, item: Tensor, layers: Sequence[Layer]) -> Tensor:
    """Scores (b, n) of users' parts (b, h) with all of the items' parts (n, h); no gradients, any device."""
    scores = user.new_empty(len(user), len(item))
    fill = _fill_compiled if len(layers) > 1 and usable(user, item) else _fill_in_torch
    fill(user, item, layers, scores)
    return scores


def _fill_in_torch(user: Tensor, item: Tensor, layers: Sequence[Layer], scores: Tensor) -> None:
    for rows, columns in _tiles(scores, _PAIRS_AT_ONCE):
        first = (user[rows, None] + item[columns]).relu_()
        *_, last = _upwards(first.view(-1, first.shape[2]), layers)
        scores[rows, columns] = last.view(first.shape[:2])


def _fill_compiled(user: Tensor, item: Tensor, layers: Sequence[Layer], scores: Tensor) -> None:
    """The same with nothing but products in torch: biases and relus go with the loops that read them next.

    All tiles use the same memory. Few outputs lie unit after unit, which products prefer.
    """
    loops, (*hidden, before, (output, last_bias)) = _compiled(), layers
    user, item, found = user.contiguous(), item.contiguous(), torch.empty(max(1, _TILE // user.shape[1]))
    room = [torch.empty(w * len(found)) for w in (item.shape[1], *(len(w) for w, _ in layers[:-1]))]
    few = len(before.weight) < _FEW
    finish = loops.outputs_by_unit if few else loops.outputs_by_pair
    last = *arrays(before.bias, output[0]), np.float32(last_bias.item())
    for rows, columns in _tiles(scores, len(found)):
        tile = scores[rows, columns]
        pairs = tile.numel()
        values, *spare = (memory[: len(memory) // len(found) * pairs].view(pairs, -1) for memory in room)
        loops.first_of_catalogue(*arrays(user[rows], item[columns], values))
        for to, (weight, bias) in zip(spare, hidden, strict=False):
            values = torch.mm(values, weight.T, out=to)
            loops.relu_after_bias(*arrays(values, bias))
        if few:
            values = torch.mm(before.weight, values.T, out=spare[-1].view(-1, pairs))
        else:
            values = torch.mm(values, before.weight.T, out=spare[-1])
        finish(values.numpy(), *last, found[:pairs].numpy())
        tile.copy_(found[:pairs].view(tile.shape))


def _tiles(scores: Tensor, pairs: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the scores in tiles of about so many: whole rows if several fit."""
    rows, columns = scores.shape
    at_once = max(1, pairs // max(1, columns))
    for start in range(0, rows, at_once):
        for column in range(0, columns, pairs):
            yield slice(start, start + at_once), slice(column, column + pairs)


class _PairScores(torch.autograd.Function):
    """`pair_scores` with its gradients."""

    @staticmethod
    def forward(ctx: Any, user: Tensor, item: Tensor, places: Tensor, *flat: Tensor) -> Tensor:
        kept: list[Tensor] = []
        scores = _forward(user, item, places, _layers(flat), kept)
        ctx.save_for_backward(user, item, places, *flat)
        ctx.kept = kept  # made here and seen by nobody else
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_score: Tensor) -> Any:
        user, item, places, *flat = ctx.saved_tensors
        layers = _layers(flat)
        to_user, to_item, *to_flat = (torch.zeros_like(t) for t in (user, item, *flat))
        found, kept, slopes = _layers(to_flat), iter(ctx.kept), by_score.contiguous()
        for some in _blocks(places):
            first = _first(user[some], item, places[some])
            activations = [first, *(next(kept) for _ in layers[1:])]
            slope = _downwards(slopes[some].reshape(-1, 1), activations, layers, found)
            _compiled().add_to_rows(*arrays(first, slope, places[some], to_user[some], to_item))
        return to_user, to_item, None, *to_flat


def _forward(
    user: Tensor, item: Tensor, places: Tensor, layers: Sequence[Layer], kept: list[Tensor] | None
) -> Tensor:
    """The scores; activations above the first layer are added to `kept`, block after block."""
    scores = torch.empty(places.shape)
    for some in _blocks(places):
        *above, last = _upwards(_first(user[some], item, places[some]), layers)
        scores[some] = last.view(scores[some].shape)
        if kept is not None:
            kept.extend(above)
    return scores


def _blocks(places: Tensor) -> Iterator[slice]:
    at_once = max(1, _PAIRS_AT_ONCE // max(1, places.shape[1]))
    return (slice(start, start + at_once) for start in range(0, len(places), at_once))


def _first(user: Tensor, item: Tensor, places: Tensor) -> Tensor:
    first = torch.empty(places.numel(), user.shape[1])
    _compiled().first_activations(*arrays(user, item, places, first))
    return first


def _upwards(first: Tensor, layers: Sequence[Layer]) -> Iterator[Tensor]:
    """The activations above the first (m, h), and at last the scores (m, 1)."""
    for depth, (weight, bias) in enumerate(layers, start=1):
        first = torch.addmm(bias, first, weight.T, out=_room(first, len(weight)))
        yield first if depth == len(layers) else first.relu_()


def _downwards(
    slope: Tensor, activations: Sequence[Tensor], layers: Sequence[Layer], found: Sequence[Layer]
) -> Tensor:
    """What reaches the first activations (m, h), before their relu, from what reaches the scores (m, 1).

    The gradients of the layers are added to `found`.
    """
    for depth in reversed(range(len(layers))):
        below, to = activations[depth], found[depth]
        to.weight.addmm_(slope.T, below)
        to.bias.add_(slope.sum(0))
        # As the activations lie; those of the first layer pair after pair.
        slope = torch.mm(slope, layers[depth].weight, out=torch.empty_like(below))
        if depth:
            slope = torch.ops.aten.threshold_backward(slope, below, 0)
    return slope


def _room(below: Tensor, width: int) -> Tensor:
    """Memory for as many activations of this width as there are below."""
    rows = len(below)
    return below.new_empty(rows, width) if width >= _WIDE else below.new_empty(width, rows).T


def _layers(flat: Sequence[Tensor]) -> list[Layer]:
    return [Layer(*pair) for pair in zip(flat[::2], flat[1::2], strict=True)]


def _compiled() -> Any:
    from towpath.kernels import compiled_layers

    return compiled_layers
