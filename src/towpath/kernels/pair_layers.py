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
# The penalty shrinks the weights of a unit that is never active for ever, down to numbers (below 1e-38) with
# which processors multiply ten times slower. What is below this counts as zero: no score can tell.
_NOTHING = 1e-20


class Layer(NamedTuple):
    """W (out, in) and c (out,); the last one of several is the output layer, with one output."""

    weight: Tensor
    bias: Tensor


class Parts(NamedTuple):
    """What the first layer adds for each pair of a batch: x = user + bias + item."""

    user: Tensor  # (m, h)
    item: Tensor  # (n, h)
    bias: Tensor | None  # (h,)
    who: Tensor  # (b,) rows of `user`
    places: Tensor  # (b, k) rows of `item`
    user_shares: Tensor | None = None  # (m,) how much each row's squared length counts in the norm
    item_shares: Tensor | None = None  # (n,)


def pair_scores(parts: Parts, layers: Sequence[Layer]) -> tuple[Tensor, Tensor]:
    """Scores (b, k), and the sum of the squared lengths of both sides' parts, each times its share.

    Where there are no shares, that sum is zero.
    """
    parts = Parts._make(None if t is None else t.contiguous() for t in parts)
    flat = [tensor for layer in layers for tensor in layer]
    if not torch.is_grad_enabled():
        return _forward(parts, flat)[:2]
    scores, norm = _PairScores.apply(*parts, *flat)  # type: ignore[no-untyped-call]
    return scores, norm


def catalogue_scores(user: Tensor, item: Tensor, layers: Sequence[Layer]) -> Tensor:
    """Scores (b, n) of users' parts (b, h) with all of the items' parts (n, h); no gradients, any device."""
    scores, layers = user.new_empty(len(user), len(item)), [_cleared(layer) for layer in layers]
    if not usable(user, item):
        _fill_in_torch(user, item, layers, scores)
        return scores
    user, item, stack = user.contiguous(), item.contiguous(), _stack(layers)
    steps = scores.numel() * _steps(stack)
    run(_compiled().score_catalogue, steps, *arrays(user, item), stack, scores.numpy())
    return scores


def _cleared(layer: Layer) -> Layer:
    """The layer with zeros for weights that are as good as zero."""
    return layer._replace(weight=layer.weight.where(layer.weight.abs() > _NOTHING, 0))


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
    def forward(ctx: Any, *tensors: Tensor | None) -> tuple[Tensor, Tensor]:
        parts, flat = Parts(*tensors[: len(Parts._fields)]), tensors[len(Parts._fields) :]  # type: ignore[arg-type] # by position
        scores, norm, *ctx.state = _forward(parts, [t for t in flat if t is not None], keep=True)
        ctx.save_for_backward(*tensors)
        return scores, norm

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_score: Tensor, by_norm: Tensor) -> Any:
        parts, flat = Parts(*ctx.saved_tensors[: len(Parts._fields)]), ctx.saved_tensors[len(Parts._fields) :]
        loops, (shifted, stack, kept), pairs = _compiled(), ctx.state, parts.places.numel()
        blocks = -(-pairs // loops.PAIRS)
        to_first = np.empty(blocks * loops.PAIRS * int(stack.strides[0]), np.float32)
        found = np.zeros((-(-blocks // loops.BLOCKS), _gradient_length(stack)), np.float32)
        sides, slopes = arrays(shifted, *parts[1:2], *parts[3:5]), by_score.contiguous().view(-1).numpy()
        run(loops.slope_pairs, 2 * pairs * _steps(stack), *sides, stack, slopes, kept, to_first, found)
        to_user, to_item = torch.zeros_like(parts.user), _by_norm(parts.item, parts.item_shares, by_norm)
        rows = to_first, stack.strides[0], *arrays(parts.who, parts.places, to_user, to_item)
        run(loops.add_to_rows, 2 * pairs * shifted.shape[1], *rows)
        to_bias = None if parts.bias is None else to_user.sum(0)
        if parts.user_shares is not None:
            to_user.addcmul_(parts.user, parts.user_shares[:, None], value=2 * by_norm.item())
        layers = _unpacked(found.sum(0), stack, flat)
        return to_user, to_item, to_bias, None, None, None, None, *layers


def _by_norm(table: Tensor, shares: Tensor | None, by_norm: Tensor) -> Tensor:
    """What reaches a table (n, h) through the norm."""
    return torch.zeros_like(table) if shares is None else table * (2 * by_norm * shares)[:, None]


def _forward(
    parts: Parts, flat: Sequence[Tensor], *, keep: bool = False
) -> tuple[Tensor, Tensor, Tensor, Any, Any]:
    """Scores and norm; users' parts with the bias, the layers as the loops take them, and what is kept."""
    layers = [_cleared(Layer(*pair)) for pair in zip(flat[::2], flat[1::2], strict=True)]
    loops, stack = _compiled(), _stack(layers)
    shifted = parts.user if parts.bias is None else parts.user + parts.bias
    scores, pairs = torch.empty(parts.places.shape), parts.places.numel()
    blocks = -(-pairs // loops.PAIRS)
    kept = np.empty(blocks * loops.PAIRS * int(stack.above[-1]) if keep else 0, np.float32)
    sides = arrays(shifted, parts.item, parts.who, parts.places)
    run(loops.score_pairs, pairs * _steps(stack), *sides, stack, scores.view(-1).numpy(), kept)
    both = (parts.user, parts.user_shares), (parts.item, parts.item_shares)
    norm = sum(loops.weighted_squares(*arrays(table, s)) for table, s in both if s is not None)
    return scores, torch.tensor(norm, dtype=torch.float32), shifted, stack, kept


def _stack(layers: Sequence[Layer]) -> Any:
    """The layers as the loops take them."""
    loops, (*hidden, output) = _compiled(), layers
    widths = np.array([layers[0].weight.shape[1], *(len(layer.weight) for layer in hidden)])
    padded = -(-widths // loops.PADDED_TO) * loops.PADDED_TO
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
