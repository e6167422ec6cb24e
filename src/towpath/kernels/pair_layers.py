"""Scores of pairs by a perceptron whose first layer is a sum of a part of the user and a part of the item.

    s = <h, a_n> + b,   a_1 = relu(x_user + y_item),   a_l = relu(W_l a_(l-1) + c_l)

As one differentiable operation, in compiled loops: the activations of a block of pairs stay in cache, and the
widest of them are never held for all pairs. `usable` says whether the loops can be had; the catalogue is
scored without them too. Same floats on any number of threads. Tests hold all of it against autograd.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from towpath.kernels.inner_products import arrays, usable
from towpath.kernels.threads import run

# Pairs that pass through the layers at once where torch multiplies.
_PAIRS_AT_ONCE = 2048


class Layer(NamedTuple):
    """W (out, in) and c (out,); the last one of several is the output layer, with one output."""

    weight: Tensor
    bias: Tensor


def pair_scores(
    user: Tensor, item: Tensor, places: Tensor, layers: Sequence[Layer], who: Tensor | None = None
) -> Tensor:
    """Scores (b, k) of users' parts and of the items' parts (n, h) that stand at places (b, k).

    The users' parts are (b, h), or any (m, h) of which those at who (b,) are meant.
    """
    who = torch.arange(len(places)) if who is None else who
    user, item, who, places = (t.contiguous() for t in (user, item, who, places))
    flat = [tensor for layer in layers for tensor in layer]
    if not torch.is_grad_enabled():
        return _forward(user, item, who, places, flat)[0]
    scores: Tensor = _PairScores.apply(user, item, who, places, *flat)  # type: ignore[no-untyped-call]
    return scores


def catalogue_scores(user: Tensor, item: Tensor, layers: Sequence[Layer]) -> Tensor:
    """Scores (b, n) of users' parts (b, h) with all of the items' parts (n, h); no gradients, any device."""
    scores = user.new_empty(len(user), len(item))
    if not usable(user, item):
        _fill_in_torch(user, item, layers, scores)
        return scores
    user, item, stack = user.contiguous(), item.contiguous(), _stack(layers)
    steps = scores.numel() * _steps(stack)
    run(_compiled().score_catalogue, steps, *arrays(user, item), stack, scores.numpy())
    return scores


def _fill_in_torch(user: Tensor, item: Tensor, layers: Sequence[Layer], scores: Tensor) -> None:
    for rows, columns in _tiles(scores, _PAIRS_AT_ONCE):
        values = (user[rows, None] + item[columns]).relu_()
        values = values.view(-1, values.shape[2])
        for weight, bias in layers[:-1]:
            values = torch.addmm(bias, values, weight.T).relu_()
        last = torch.addmm(layers[-1].bias, values, layers[-1].weight.T)
        scores[rows, columns] = last.view(scores[rows, columns].shape)


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
    def forward(ctx: Any, user: Tensor, item: Tensor, who: Tensor, places: Tensor, *flat: Tensor) -> Tensor:
        scores, ctx.stack, ctx.kept = _forward(user, item, who, places, flat, keep=True)
        ctx.save_for_backward(user, item, who, places, *flat)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_score: Tensor) -> Any:
        user, item, who, places, *flat = ctx.saved_tensors
        loops, stack, pairs = _compiled(), ctx.stack, places.numel()
        blocks = -(-pairs // loops.PAIRS)
        to_first = np.empty(blocks * loops.PAIRS * int(stack.strides[0]), np.float32)
        found = np.zeros((-(-blocks // loops.BLOCKS), _gradient_length(stack)), np.float32)
        sides, slopes = arrays(user, item, who, places), by_score.contiguous().view(-1).numpy()
        run(loops.slope_pairs, 2 * pairs * _steps(stack), *sides, stack, slopes, ctx.kept, to_first, found)
        to_user, to_item = torch.zeros_like(user), torch.zeros_like(item)
        steps = 2 * pairs * user.shape[1]
        run(loops.add_to_rows, steps, to_first, stack.strides[0], *arrays(who, places, to_user, to_item))
        return to_user, to_item, None, None, *_unpacked(found.sum(0), stack, flat)


def _forward(
    user: Tensor, item: Tensor, who: Tensor, places: Tensor, flat: Sequence[Tensor], *, keep: bool = False
) -> tuple[Tensor, Any, Any]:
    """The scores, the layers as the loops take them, and the activations above the first if they are kept."""
    loops, stack = _compiled(), _stack([Layer(*pair) for pair in zip(flat[::2], flat[1::2], strict=True)])
    scores, pairs = torch.empty(places.shape), places.numel()
    blocks = -(-pairs // loops.PAIRS)
    kept = np.empty(blocks * loops.PAIRS * int(stack.above[-1]) if keep else 0, np.float32)
    sides = arrays(user, item, who, places)
    run(loops.score_pairs, pairs * _steps(stack), *sides, stack, scores.view(-1).numpy(), kept)
    return scores, stack, kept


def _stack(layers: Sequence[Layer]) -> Any:
    """The layers as the loops take them."""
    loops, (*hidden, output) = _compiled(), layers
    widths = np.array([layers[0].weight.shape[1], *(len(layer.weight) for layer in hidden)])
    padded = -(-widths // loops.COLUMNS) * loops.COLUMNS
    strides = padded + loops.STEP_ASIDE
    ends = [np.cumsum([0, *sizes]) for sizes in (padded[:-1] * padded[1:], padded[1:], strides[1:])]
    panels = (np.zeros(ends[0][-1], np.float32) for _ in range(2))
    last = arrays(output.weight)[0][0], np.float32(output.bias.item())
    stack = loops.Stack(widths, padded, strides, *ends, *panels, np.zeros(ends[1][-1], np.float32), *last)
    for number, layer in enumerate(hidden):
        loops.pack(*arrays(*layer), number, stack)
    return stack


def _steps(stack: Any) -> int:
    """Multiplications for one pair."""
    return int(stack.weights[-1] + stack.widths[0] + stack.widths[-1])


def _gradient_length(stack: Any) -> int:
    """Numbers in the gradients of the layers: weights, biases, the output layer's weights and its bias."""
    return int(stack.weights[-1] + stack.units[-1] + stack.widths[-1]) + 1


def _unpacked(found: Any, stack: Any, flat: Sequence[Tensor]) -> Iterator[Tensor]:
    """The gradients of the layers, weight and bias in turn."""
    biases, output = stack.weights[-1], stack.weights[-1] + stack.units[-1]
    for layer in range(len(stack.widths) - 1):
        m, n = stack.padded[layer], stack.padded[layer + 1]
        table = found[stack.weights[layer] :][: m * n].reshape(n, m)
        yield torch.from_numpy(table[: stack.widths[layer + 1], : stack.widths[layer]].copy())
        start = biases + stack.units[layer]
        yield torch.from_numpy(found[start : start + stack.widths[layer + 1]].copy())
    yield torch.from_numpy(found[output:-1].reshape(flat[-2].shape).copy())
    yield torch.from_numpy(found[-1:].copy())


def _compiled() -> Any:
    from towpath.kernels import compiled_layers

    return compiled_layers
