"""Compiled loops of a perceptron on pairs, block by block: the activations of a block stay in a core's cache.

Activations lie pair after pair, padded to whole tiles. `Stack` says how the layers lie: one flat array each.
"""

from typing import Any, NamedTuple

import numpy as np

from towpath.kernels.jit import njit
from towpath.kernels.threads import SLOTS
from towpath.kernels.tile_products import (
    LANES,
    PAIR_ROWS,
    UNIT_ROWS,
    WIDE,
    narrow_across,
    narrow_downward,
    narrow_upward,
    wide_across,
    wide_downward,
    wide_upward,
)

# Pairs of a block: whole tiles whose first activations are some 50 kB at usual widths.
PAIRS = 16 * PAIR_ROWS
# Widths are padded to multiples of it.
PADDED_TO = LANES
# Blocks whose gradients of the layers are added up as one, and then to those of the others, in order.
BLOCKS = 8
# Floats between the activations of two pairs that no one uses: a stride of a power of two crowds the cache.
STEP_ASIDE = 16


class Stack(NamedTuple):
    """How the layers below the output layer lie in flat arrays, and that one; padded with zeros to tiles.

    Layer l has `widths[l]` inputs and `widths[l + 1]` outputs. Its weights begin at `weights[l]` in panels
    and in gradients, its biases at `units[l]`, and the activations above it at `above[l]` times the pairs.
    """

    widths: Any  # (layers + 1,) as they are
    padded: Any  # (layers + 1,) multiples of PADDED_TO
    strides: Any  # (layers + 1,) from the activations of a pair to those of the next
    weights: Any  # (layers + 1,), the last one is where all end, as in the next two
    units: Any
    above: Any
    up: Any  # panels of WIDE outputs, the last may have LANES: for each input the weights to them
    down: Any  # panels of WIDE inputs, the last may have LANES: for each output the weights from them
    biases: Any
    output: Any  # (widths[-1],)
    output_bias: Any  # a number


@njit(cache=True, nogil=True, error_model="numpy")
def _place(row: int, column: int, rows: int, columns: int) -> int:
    """Where an element of a matrix lies in its panels."""
    before = column // WIDE * WIDE
    return before * rows + row * min(WIDE, columns - before) + column - before


@njit(cache=True, nogil=True, error_model="numpy")
def pack(weight: Any, bias: Any, layer: int, to: Any) -> None:
    """Put a layer (n, m) and its biases (n,) into a stack that is all zeros."""
    up, down = to.up[to.weights[layer] :], to.down[to.weights[layer] :]
    inputs, outputs = to.padded[layer], to.padded[layer + 1]
    for i in range(weight.shape[0]):
        to.biases[to.units[layer] + i] = bias[i]
        for j in range(weight.shape[1]):
            up[_place(j, i, inputs, outputs)] = weight[i, j]
            down[_place(i, j, outputs, inputs)] = weight[i, j]


@njit(cache=True, nogil=True, error_model="numpy")
def _add(u: Any, i: Any, to: Any) -> None:
    """The first activations of a pair: relu(u + i)."""
    zero = to.dtype.type(0)
    for j in range(len(u)):
        x = u[j] + i[j]
        to[j] = x if x > zero else zero


@njit(cache=True, nogil=True, error_model="numpy")
def _begin(block: int, user: Any, item: Any, who: Any, places: Any, first: Any, stride: int) -> int:
    """Fill the first activations of a block of pairs; how many there are."""
    width, start = places.shape[1], block * PAIRS
    count = min(PAIRS, places.size - start)
    for p in range(count):
        r, c = divmod(start + p, width)
        _add(user[np.uint64(who[r])], item[np.uint64(places[r, c])], first[p * stride :])
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _upwards(first: Any, above: Any, at: int, pairs: int, stack: Any) -> None:
    """From the first activations of a block to those above them, which lie at `at`."""
    source, below = first, 0
    for layer in range(len(stack.widths) - 1):
        m, n, start = stack.strides[layer], stack.strides[layer + 1], at + PAIRS * stack.above[layer]
        terms, wide = stack.widths[layer], stack.padded[layer + 1] // WIDE * WIDE
        for j in range(0, stack.padded[layer + 1], WIDE):
            panel, bias = stack.weights[layer] + j * stack.padded[layer], stack.units[layer] + j
            # fmt: off
            for p in range(0, pairs, PAIR_ROWS):
                row, to = below + p * m, start + p * n + j
                if j < wide:
                    wide_upward(source, row, m, stack.up, panel, stack.biases, bias, above, to, n, terms)
                else:
                    narrow_upward(source, row, m, stack.up, panel, stack.biases, bias, above, to, n, terms)
            # fmt: on
        source, below = above, start


@njit(cache=True, fastmath={"reassoc", "contract"}, nogil=True, error_model="numpy")
def _outputs(first: Any, above: Any, at: int, scores: Any, stack: Any) -> None:
    """Scores (m,) of as many pairs by their last activations."""
    layers, width, stride = len(stack.widths) - 1, stack.widths[-1], stack.strides[-1]
    last = above[at + PAIRS * stack.above[layers - 1] :] if layers else first
    for p in range(len(scores)):
        row, score = last[p * stride : p * stride + width], stack.output_bias
        for j in range(width):
            score += stack.output[j] * row[j]
        scores[p] = score


@njit(cache=True, nogil=True, error_model="numpy")
def score_catalogue(part: int, parts: int, user: Any, item: Any, stack: Any, scores: Any) -> None:
    """Fill scores (b, n) of users' parts (b, h) with all of the items' parts (n, h); a part has users."""
    stride = stack.strides[0]
    first, above = np.zeros(PAIRS * stride, np.float32), np.zeros(PAIRS * stack.above[-1], np.float32)
    for r in range(len(user) * part // parts, len(user) * (part + 1) // parts):
        for start in range(0, len(item), PAIRS):
            some = item[start : start + PAIRS]
            for p in range(len(some)):
                _add(user[r], some[p], first[p * stride :])
            _upwards(first, above, 0, len(some), stack)
            _outputs(first, above, 0, scores[r, start : start + len(some)], stack)


@njit(cache=True, nogil=True, error_model="numpy")
def score_pairs(
    part: int, parts: int, user: Any, item: Any, who: Any, places: Any, stack: Any, scores: Any, kept: Any
) -> None:
    """Fill scores (b k,) of users' parts (n, h) at who (b,) and items' parts (m, h) at places (b, k).

    kept: the activations above the first, block after block, or an empty array.
    """
    stride, size, blocks = stack.strides[0], PAIRS * stack.above[-1], -(-places.size // PAIRS)
    first, above = np.zeros(PAIRS * stride, np.float32), kept if len(kept) else np.zeros(size, np.float32)
    for block in range(blocks * part // parts, blocks * (part + 1) // parts):
        at = block * size if len(kept) else 0
        count = _begin(block, user, item, who, places, first, stride)
        _upwards(first, above, at, count, stack)
        _outputs(first, above, at, scores[block * PAIRS : block * PAIRS + count], stack)


@njit(cache=True, nogil=True, error_model="numpy")
def _from_outputs(last: Any, slopes: Any, to: Any, stack: Any, found: Any) -> None:
    """What reaches the last activations before their relu, from what reaches the scores (m,)."""
    width, stride, zero = stack.widths[-1], stack.strides[-1], last.dtype.type(0)
    sums = found[stack.weights[-1] + stack.units[-1] :]
    for p in range(len(slopes)):
        s, on, row = slopes[p], last[p * stride : p * stride + width], to[p * stride : p * stride + width]
        for j in range(width):
            row[j] = s * stack.output[j] if on[j] > zero else zero
            sums[j] += s * on[j]
        sums[width] += s


@njit(cache=True, nogil=True, error_model="numpy")
def _downwards(
    layer: int, count: int, source: Any, below: int, slopes: Any, to: Any, at: int, stack: Any, found: Any
) -> None:
    """Through one layer: gradients of its weights and biases, and what reaches the activations below it."""
    m, n, start = stack.strides[layer], stack.strides[layer + 1], PAIRS * stack.above[layer]
    inputs, outputs, weights = stack.padded[layer], stack.padded[layer + 1], stack.weights[layer]
    biases = found[stack.weights[-1] + stack.units[layer] :]
    for p in range(count):
        row = slopes[start + p * n : start + p * n + outputs]
        for i in range(outputs):
            biases[i] += row[i]
    terms, wide = stack.widths[layer + 1], inputs // WIDE * WIDE
    # fmt: off
    for j in range(0, inputs, WIDE):
        panel = weights + j * outputs
        for i in range(0, outputs, UNIT_ROWS):
            row, sums = start + i, weights + i * inputs + j
            if j < wide:
                wide_across(slopes, row, n, source, below + j, m, found, sums, inputs, count)
            else:
                narrow_across(slopes, row, n, source, below + j, m, found, sums, inputs, count)
        for p in range(0, count, PAIR_ROWS):
            row, on, place = start + p * n, below + p * m + j, at + p * m + j
            if j < wide:
                wide_downward(slopes, row, n, stack.down, panel, source, on, to, place, m, terms)
            else:
                narrow_downward(slopes, row, n, stack.down, panel, source, on, to, place, m, terms)
    # fmt: on


@njit(cache=True, nogil=True, error_model="numpy")
def slope_pairs(
    part: int,
    parts: int,
    user: Any,
    item: Any,
    who: Any,
    places: Any,
    stack: Any,
    slopes: Any,
    kept: Any,
    to_first: Any,
    found: Any,
) -> None:
    """Backwards through `score_pairs`, from what reaches the scores (b k,).

    Fills to_first with what reaches the sums of both parts, block after block, and adds the gradients of the
    layers to found: a row for each BLOCKS of blocks, of which a part has some.
    """
    stride, size, blocks = stack.strides[0], PAIRS * stack.above[-1], -(-places.size // PAIRS)
    first, down, layers = (
        np.zeros(PAIRS * stride, np.float32),
        np.zeros(size, np.float32),
        len(stack.widths) - 1,
    )
    for group in range(len(found) * part // parts, len(found) * (part + 1) // parts):
        for block in range(group * BLOCKS, min(blocks, (group + 1) * BLOCKS)):
            count, at = _begin(block, user, item, who, places, first, stride), block * PAIRS * stride
            some = slopes[block * PAIRS : block * PAIRS + count]
            if not layers:
                _from_outputs(first, some, to_first[at:], stack, found[group])
                continue
            above = kept[block * size : (block + 1) * size]
            last = PAIRS * stack.above[layers - 1]
            _from_outputs(above[last:], some, down[last:], stack, found[group])
            for layer in range(layers - 1, 0, -1):
                below = PAIRS * stack.above[layer - 1]
                _downwards(layer, count, above, below, down, down, below, stack, found[group])
            _downwards(0, count, first, 0, down, to_first, at, stack, found[group])


@njit(cache=True, nogil=True, error_model="numpy")
def add_to_rows(
    part: int, parts: int, slopes: Any, stride: int, who: Any, places: Any, to_user: Any, to_item: Any
) -> None:
    """Add the slopes of the first sums to the rows of both sides' parts; a part owns slots of rows."""
    width, h, mask = places.shape[1], to_user.shape[1], np.uint64(SLOTS - 1)
    begin, end = np.uint64(SLOTS * part // parts), np.uint64(SLOTS * (part + 1) // parts)
    for r in range(len(who)):
        u = np.uint64(who[r])
        mine, to = begin <= u & mask and u & mask < end, to_user[u]
        for c in range(width):
            at = (r * width + c) * stride
            row, i = slopes[at : at + h], np.uint64(places[r, c])
            if mine:
                for j in range(h):
                    to[j] += row[j]
            if begin <= i & mask and i & mask < end:
                other = to_item[i]
                for j in range(h):
                    other[j] += row[j]


@njit(cache=True, fastmath={"reassoc", "contract"}, nogil=True, error_model="numpy")
def weighted_squares(table: Any, shares: Any) -> Any:
    """The sum of the squared lengths of the rows (n, h), each times its share (n,)."""
    total = 0.0
    for n in range(len(table)):
        row, square = table[n], table.dtype.type(0)
        for j in range(len(row)):
            square += row[j] * row[j]
        total += shares[n] * square
    return total
