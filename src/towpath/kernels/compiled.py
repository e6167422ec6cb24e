"""The loops that numba compiles, once, and keeps on disk.

Those over many pairs do one part of `parts` (see `kernels.threads`). Sums may be reordered (`reassoc`) to use
vector instructions; the order is fixed when compiled and is the same for any number of parts, so the same
input gives the same floats.
"""

from typing import Any

import numpy as np

from towpath.kernels.jit import njit
from towpath.kernels.prefetch import prefetch
from towpath.kernels.threads import SLOTS

_FAST = {"reassoc", "contract", "nsz", "arcp"}
# How many rows ahead a table's rows are asked for; a table of a small catalogue is at hand anyway.
_AHEAD = 4


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy")
def scores_and_lengths(
    part: int, parts: int, P: Any, Q: Any, users: Any, items: Any, bias: Any, scores: Any, lengths: Any
) -> None:
    """Fill scores (b, k) from tables P and Q whose last columns are biases, and lengths (b,).

    The length of a row is the sum of |p|^2 + |q|^2 over its pairs.
    """
    d, rows, width = P.shape[1] - 1, len(users), items.shape[1]
    for r in range(rows * part // parts, rows * (part + 1) // parts):
        if r + _AHEAD < len(users):
            prefetch(P, np.uint64(users[r + _AHEAD]))
            for c in range(items.shape[1]):
                prefetch(Q, np.uint64(items[r + _AHEAD, c]))
        p = P[np.uint64(users[r])]
        length = p.dtype.type(0)
        for j in range(d):
            length += p[j] * p[j]
        length *= width
        for c in range(width):
            q = Q[np.uint64(items[r, c])]
            product, own = q[d] + p[d] + bias, p.dtype.type(0)
            for j in range(d):
                product += p[j] * q[j]
                own += q[j] * q[j]
            scores[r, c] = product
            length += own
        lengths[r] = length


@njit(cache=True, nogil=True)
def own_range(codes: Any, part: int, parts: int) -> Any:
    """From which code on and before which one a part owns: an even share of ascending codes."""
    bounds = np.empty(parts + 1, np.int64)
    bounds[0] = 0
    for n in range(1, parts):
        bounds[n] = max(bounds[n - 1], codes[len(codes) * n // parts])
    bounds[parts] = np.iinfo(np.int64).max
    return bounds[part], bounds[part + 1]


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy")
def user_gradients(
    part: int,
    parts: int,
    P: Any,
    Q: Any,
    users: Any,
    items: Any,
    places: Any,
    by_score: Any,
    by_norm: Any,
    to_P: Any,
) -> None:
    """Add to the rows `places` (b,) of to_P what each pair sends to its user: s q + 2 n p, and s to the bias.

    A part looks through all rows for users of its own, so that nobody else writes to them.
    """
    d, width = P.shape[1] - 1, items.shape[1]
    first, end = own_range(users, part, parts)
    shrink = by_norm * (2 * width)
    for r in range(len(users)):
        if first <= users[r] and users[r] < end:
            p, to = P[np.uint64(users[r])], to_P[np.uint64(places[r])]
            for j in range(d):
                to[j] += shrink * p[j]
            for c in range(width):
                q, s = Q[np.uint64(items[r, c])], by_score[r, c]
                for j in range(d):
                    to[j] += s * q[j]
                to[d] += s


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy")
def item_gradients(
    part: int,
    parts: int,
    P: Any,
    Q: Any,
    users: Any,
    items: Any,
    places: Any,
    by_score: Any,
    by_norm: Any,
    to_Q: Any,
) -> None:
    """The same for the items, places (b, k): s p + 2 n q, and s to the bias; a part owns slots of items."""
    d, mask = P.shape[1] - 1, np.uint64(SLOTS - 1)
    first, end = np.uint64(SLOTS * part // parts), np.uint64(SLOTS * (part + 1) // parts)
    counts, codes = np.zeros(len(to_Q), np.float32), np.empty(len(to_Q), np.uint64)
    for r in range(len(users)):
        p = P[np.uint64(users[r])]
        for c in range(items.shape[1]):
            item = np.uint64(items[r, c])
            if first <= item & mask and item & mask < end:
                place = np.uint64(places[r, c])
                to, s = to_Q[place], by_score[r, c]
                for j in range(d):
                    to[j] += s * p[j]
                to[d] += s
                counts[place] += 1
                codes[place] = item
    # 2 n q is the same for all pairs of an item: added once, so many times over.
    for n in range(len(to_Q)):
        if counts[n] > 0:
            q, to, shrink = Q[codes[n]], to_Q[n], 2 * by_norm * counts[n]
            for j in range(d):
                to[j] += shrink * q[j]


@njit(cache=True, nogil=True)
def number_rows(codes: Any, rows: Any, places: Any) -> int:
    """How many different codes (n,) there are; fills `rows` with them as they first occur.

    `places` (n,) says where each code stands in `rows`. By a table of hashes: nothing grows with the codes.
    """
    size = 16
    while size < 2 * len(codes):
        size *= 2
    mask, table, found = size - 1, np.full(size, -1, np.int64), 0
    for n in range(len(codes)):
        slot = (codes[n] * 0x9E3779B1 >> 7) & mask
        while table[slot] >= 0 and rows[table[slot]] != codes[n]:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot], rows[found] = found, codes[n]
            found += 1
        places[n] = table[slot]
    return found


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy")
def adam_rows(
    part: int,
    parts: int,
    table: Any,
    means: Any,
    squares: Any,
    rows: Any,
    gradients: Any,
    rates: Any,
) -> None:
    """Move these different rows of a table, and of its moments, by one step of Adam; no others.

    rates: (1 - beta1, 1 - beta2, step size, epsilon), as torch's SparseAdam works them out.
    """
    by_mean, by_square, step, epsilon = rates
    for n in range(len(rows) * part // parts, len(rows) * (part + 1) // parts):
        if n + _AHEAD < len(rows):
            later = np.uint64(rows[n + _AHEAD])
            prefetch(table, later)
            prefetch(means, later)
            prefetch(squares, later)
        row = np.uint64(rows[n])
        p, m, v, g = table[row], means[row], squares[row], gradients[n]
        for j in range(len(p)):
            m[j] += (g[j] - m[j]) * by_mean
            v[j] += (g[j] * g[j] - v[j]) * by_square
            p[j] -= step * m[j] / (np.sqrt(v[j]) + epsilon)


@njit(cache=True, nogil=True)
def known_pairs(pairs: Any, users: Any, items: Any, found: Any) -> None:
    """Fill found (n,) with ones and zeros: whether each pair is among the `KnownPairs`."""
    # Without a branch in the loop: what is found is random, and every wrong guess would cost more than all.
    seven, three, one = np.uint64(7), np.uint64(3), np.uint8(1)
    for r in range(len(users)):
        slot = np.uint64(users[r] * pairs.n_items + items[r])
        if not pairs.exact:
            slot = (slot * pairs.spread) >> pairs.shift
        found[r] = (pairs.bits[slot >> three] >> np.uint8(slot & seven)) & one
    if not pairs.exact:
        _settle(pairs, users, items, found)


@njit(cache=True, nogil=True)
def _settle(pairs: Any, users: Any, items: Any, found: Any) -> None:
    """Turn what the filter takes for known into what is: a search among the keys of the user."""
    for r in range(len(users)):
        if found[r]:
            key = users[r] * pairs.n_items + items[r]
            low, high = pairs.starts[users[r]], pairs.starts[users[r] + 1]
            while low < high:
                middle = (low + high) >> 1
                if pairs.keys[middle] < key:
                    low = middle + 1
                else:
                    high = middle
            found[r] = low < pairs.starts[users[r] + 1] and pairs.keys[low] == key


@njit(cache=True, nogil=True)
def open_weights(pairs: Any, users: Any, items: Any, each: Any, out: Any) -> float:
    """Fill out (s, n) with each (n,), and 0 where (users[n], items[r]) is among the `KnownPairs`; its sum."""
    found, total = np.empty(len(users), np.uint8), 0.0
    same = np.empty(len(users), np.int64)
    for r in range(len(items)):
        row, part = out[r], np.float32(0)
        same[:] = items[r]
        known_pairs(pairs, users, same, found)
        for n in range(len(users)):
            row[n] = each[n] * np.float32(np.uint8(1) - found[n])
            part += row[n]
        total += float(part)
    return total


@njit(cache=True, nogil=True)
def draw_unknown(pairs: Any, users: Any, rng: Any, rounds: int, begin: int, items: Any) -> Any:
    """Fill items (b, k) from column `begin` on with draws from the catalogue, known ones redrawn.

    So many rounds in all; returns the places (row * k + column) that are still open then. The draws are
    numpy's own, in this order: all places, then those that are open, again and again.
    """
    drawn, width = items.ravel(), items.shape[1]
    places, owners = np.empty((2, len(users) * (width - begin)), np.int64)
    n = 0
    for r in range(len(users)):
        for c in range(begin, width):
            places[n], owners[n] = r * width + c, users[r]
            n += 1
    found = np.empty(len(places), np.uint8)
    for _ in range(rounds):
        fresh = rng.integers(0, pairs.n_items, len(places), dtype=np.int32)
        known_pairs(pairs, owners, fresh, found)
        left = 0
        for n in range(len(places)):
            drawn[places[n]] = fresh[n]
            places[left], owners[left] = places[n], owners[n]
            left += found[n]
        places, owners = places[:left], owners[:left]
        if left == 0:
            break
    return places


@njit(cache=True, nogil=True)
def even_out(batches: Any, missing: Any, drawn: Any) -> None:
    """Move those of the drawn rows that are in a batch with too many to the first one with too few.

    missing (batches,), how many rows each batch has still to get, is kept up.
    """
    first = 0
    for row in drawn:
        if missing[batches[row]] < 0:
            while missing[first] <= 0:
                first += 1
            missing[batches[row]] += 1
            missing[first] -= 1
            batches[row] = first


@njit(cache=True, nogil=True)
def gather_assigned(batches: Any, size: int, values: Any, assignment: Any) -> None:
    """Fill assignment (n,) with the rows' values (n,), batch after batch; all but the last have `size`."""
    ends = np.arange(0, len(batches), size)
    for row in range(len(batches)):
        batch = np.uint64(batches[row])
        assignment[ends[batch]] = values[row]
        ends[batch] += 1


@njit(cache=True, nogil=True)
def ordered(bits: Any) -> Any:
    """The bits of a float32 as a number that is larger where the float is; both zeros are the same."""
    sign = np.uint32(0x80000000)
    if bits == sign:
        return sign
    return np.uint32(bits ^ np.uint32(0xFFFFFFFF)) if bits & sign else np.uint32(bits | sign)


@njit(cache=True, nogil=True)
def sort_by_key(keys: Any, places: Any, spare_keys: Any, spare_places: Any) -> None:
    """Put keys (n,) uint32 in ascending order and their places alike; equal keys stay as they came.

    A radix sort: four passes of eight bits, there and back between the arrays and their spares.
    """
    counts = np.zeros((4, 256), np.int64)
    for key in keys:
        for digit in range(4):
            counts[digit, (key >> np.uint32(8 * digit)) & np.uint32(255)] += 1
    for digit in range(4):
        total = 0
        for value in range(256):
            total, counts[digit, value] = total + counts[digit, value], total
        for n in range(len(keys)):
            value = (keys[n] >> np.uint32(8 * digit)) & np.uint32(255)
            to = counts[digit, value]
            counts[digit, value] = to + 1
            spare_keys[to], spare_places[to] = keys[n], places[n]
        keys, places, spare_keys, spare_places = spare_keys, spare_places, keys, places


@njit(cache=True, nogil=True)
def best_of_rows(part: int, parts: int, scores: Any, values: Any, columns: Any) -> None:
    """Fill values and columns (b, k) with the k highest scores of each row (b, n), best first.

    Among equal scores the lower column comes first. A count by the leading bits says how low the k-th best
    can lie, and only what lies no lower is sorted.
    """
    width, k = scores.shape[1], values.shape[1]
    bits = scores.view(np.uint32)
    keys, places = np.empty((3, width), np.uint32), np.empty((2, width), np.int32)
    for r in range(len(scores) * part // parts, len(scores) * (part + 1) // parts):
        counts = np.zeros(4096, np.int32)
        for i in range(width):
            key = np.uint32(ordered(bits[r, i]) ^ np.uint32(0xFFFFFFFF))  # the highest score first
            keys[2, i] = key
            counts[key >> np.uint32(20)] += 1
        last, found = -1, 0
        while found < k:
            last += 1
            found += counts[last]
        left = 0
        for i in range(width):
            keys[0, left], places[0, left] = keys[2, i], i
            left += 1 if np.int64(keys[2, i] >> np.uint32(20)) <= last else 0
        sort_by_key(keys[0, :left], places[0, :left], keys[1, :left], places[1, :left])
        for n in range(k):
            columns[r, n] = places[0, n]
            values[r, n] = scores[r, places[0, n]]


@njit(cache=True, nogil=True)
def few_best_of_rows(part: int, parts: int, scores: Any, values: Any, columns: Any) -> None:
    """The same for small k: a list of the best so far, which ever fewer scores get into."""
    width, k = scores.shape[1], values.shape[1]
    for r in range(len(scores) * part // parts, len(scores) * (part + 1) // parts):
        row, best, at = scores[r], values[r], columns[r]
        for i in range(width):
            if i < k or row[i] > best[k - 1]:
                n = min(i, k - 1)
                while n > 0 and best[n - 1] < row[i]:
                    best[n], at[n] = best[n - 1], at[n - 1]
                    n -= 1
                best[n], at[n] = row[i], i


@njit(cache=True, nogil=True)
def line_potential(points: Any, masses: Any, knots: Any, values: Any, at_points: Any) -> float:
    """The Wasserstein distance between the positive and the negative masses on the line.

    Fills `knots` (n,) with the points in ascending order, `values` (n,) with the potential at each of them,
    the integral from there to infinity of sign(F_x - F_y), and `at_points` (n,) with that of each point.
    """
    n = len(points)
    bits = points.view(np.uint32)
    keys, places = np.empty((2, n), np.uint32), np.empty((2, n), np.int32)
    for i in range(n):
        keys[0, i], places[0, i] = ordered(bits[i]), i
    sort_by_key(keys[0], places[0], keys[1], places[1])
    ahead, distance = np.empty(n), 0.0
    for i in range(n):
        knots[i] = points[places[0, i]]
        ahead[i] = masses[places[0, i]] + (ahead[i - 1] if i else 0.0)  # F_x - F_y from here to the next knot
    value = 0.0
    values[n - 1] = at_points[places[0, n - 1]] = 0
    for i in range(n - 2, -1, -1):
        apart = knots[i + 1] - knots[i]
        distance += abs(ahead[i]) * apart
        # Rounding leaves crumbs where the measures agree; they must not turn into slopes of one.
        if abs(ahead[i]) > 1e-7:
            value += np.sign(ahead[i]) * apart
        values[i] = at_points[places[0, i]] = value
    return distance
