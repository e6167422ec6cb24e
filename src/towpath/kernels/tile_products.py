"""Tiles of matrix products as instructions for the compiler, with what comes before and after them.

A tile is a few rows by one or two vectors of columns: narrow or wide. Its sums stay in registers from the
first term to the last:

    c[r, j] = finish(start[r, j] + sum over t of a[r, t] b[t, j])

Loops written in Python do not keep their sums in registers, and are many times slower. With torch's matrix
products in place of these tiles an epoch of NeuMF on MovieLens 1M takes 1.4 times as long and its evaluation
1.8 times, those of WideDeep 1.2 and 3.4 times: layers as RecBole has them, one thread, vectors of 16 floats.
`python -m benchmarks.kernels` compares the two on a batch.

Loops call the tiles on memory that is padded to whole tiles, so that no tile has an edge. Arrays are flat;
each is followed by the place of the tile's first element. The order of the terms is that of the formula, so
that floats depend neither on the length of a vector nor on the rows of a tile.
"""

from collections.abc import Callable
from itertools import chain
from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.extending import intrinsic

LANES = 16 if get_host_cpu_features().get("avx512f") else 8  # floats of a vector
WIDE = 2 * LANES  # columns of a wide tile, a narrow one has LANES
PAIR_ROWS, UNIT_ROWS = 6, 4  # rows of a tile: as many as there are registers for; UNIT_ROWS divides LANES

_FLOAT, _INT, _FLAG = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_UNKNOWN = ir.Constant(_VECTOR, ir.Undefined)
_ZERO = ir.Constant(_VECTOR, [0.0] * LANES)
Rows = list[list[Any]]  # for each row of a tile its vectors, as values or as addresses of the compiler


class _Tile:
    """Emits the instructions of one call, whose arguments are known by their numbers."""

    def __init__(self, vectors: int, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.vectors, self.builder, self.arguments = vectors, builder, arguments
        self._context, self._signature = context, signature

    def address(self, array: int) -> Any:
        """Of the element of an array that the argument after it names."""
        kind = self._context.make_array(self._signature.args[array])
        data = kind(self._context, self.builder, self.arguments[array]).data
        return self.builder.gep(data, [self.arguments[array + 1]])

    def rows(self, first: Any, stride: Any, count: int) -> Rows:
        """The addresses of a tile in a table of this stride."""
        found = []
        for _ in range(count):
            found.append([self.builder.gep(first, [_INT(LANES * v)]) for v in range(self.vectors)])
            first = self.builder.gep(first, [stride])
        return found

    def zeros(self, count: int) -> Rows:
        """So many rows of zeros."""
        return [[_ZERO] * self.vectors] * count

    def load(self, rows: Rows) -> Rows:
        """The vectors that lie there."""
        return [
            [self.builder.load(self.builder.bitcast(at, _VECTOR.as_pointer()), align=4) for at in row]
            for row in rows
        ]

    def store(self, values: Rows, rows: Rows) -> None:
        """Put vectors there."""
        for value, at in zip(chain(*values), chain(*rows), strict=True):
            self.builder.store(value, self.builder.bitcast(at, _VECTOR.as_pointer()), align=4)

    def where_positive(self, values: Rows, conditions: Rows) -> Rows:
        """The values where the conditions are above zero, elsewhere zero."""
        select, above = self.builder.select, self.builder.fcmp_ordered
        return [
            [select(above(">", c, _ZERO), v, _ZERO) for v, c in zip(*both, strict=True)]
            for both in zip(values, conditions, strict=True)
        ]

    def add_products(self, sums: Rows, a: tuple[Any, Any, Any], b: tuple[Any, Any], terms: Any) -> Rows:
        """The sums with all terms added, at least one.

        a: its address, the way to the next row and to the next term; b: its address and the way to the next.
        """
        builder, before = self.builder, self.builder.block
        loop, done = (builder.append_basic_block(name) for name in ("terms", "done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        begun = [_INT(0), a[0], b[0], *chain(*sums)]
        number, left, right, *held = phis = [builder.phi(value.type) for value in begun]
        rows = [held[at : at + self.vectors] for at in range(0, len(held), self.vectors)]
        added = self._add_term(rows, left, a[1], right)
        number = builder.add(number, _INT(1))
        following = [number, builder.gep(left, [a[2]]), builder.gep(right, [b[1]]), *chain(*added)]
        for phi, first, later in zip(phis, begun, following, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(later, loop)
        builder.cbranch(builder.icmp_unsigned("<", number, terms), loop, done)
        builder.position_at_end(done)
        return added

    def _add_term(self, sums: Rows, left: Any, stride: Any, right: Any) -> Rows:
        """The sums with one term: a number of each row of a, the same vectors of b."""
        (vectors,) = self.load(self.rows(right, _INT(0), 1))
        added = []
        for row in sums:
            value = self._in_all_lanes(self.builder.load(left))
            added.append([self._multiply_add(value, v, s) for v, s in zip(vectors, row, strict=True)])
            left = self.builder.gep(left, [stride])
        return added

    def _in_all_lanes(self, value: Any) -> Any:
        one = self.builder.insert_element(_UNKNOWN, value, _FLAG(0))
        lanes = ir.Constant(ir.VectorType(_FLAG, LANES), [0] * LANES)
        return self.builder.shuffle_vector(one, _UNKNOWN, lanes)

    def _multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """The sum a b + c, by one instruction where the processor has it."""
        name, known = f"llvm.fmuladd.v{LANES}f32", self.builder.module.globals
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        function = known[name] if name in known else ir.Function(self.builder.module, kind, name)
        return self.builder.call(function, [a, b, c])


def _of(vectors: int, emit: Callable[[_Tile], None]) -> Callable[..., Any]:
    """How numba asks for the instructions."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit(_Tile(vectors, context, builder, signature, arguments))
        return context.get_dummy_value()

    return generate


def _upward(vectors: int) -> Any:
    """Tile c = relu(bias + a b), b by panels as wide as the tile."""

    def emit(tile: _Tile) -> None:
        start = tile.load(tile.rows(tile.address(5), _INT(0), PAIR_ROWS))
        a, b = (tile.address(0), tile.arguments[2], _INT(1)), (tile.address(3), _INT(LANES * vectors))
        sums = tile.add_products(start, a, b, tile.arguments[10])
        to = tile.rows(tile.address(7), tile.arguments[9], PAIR_ROWS)
        tile.store(tile.where_positive(sums, sums), to)

    @intrinsic
    def upward(
        typing: Any,
        a: Any,
        a_at: Any,
        a_row: Any,
        b: Any,
        b_at: Any,
        bias: Any,
        bias_at: Any,
        c: Any,
        c_at: Any,
        c_row: Any,
        terms: Any,
    ) -> Any:
        n = types.int64
        return types.void(a, n, n, b, n, bias, n, c, n, n, n), _of(vectors, emit)

    return upward


def _downward(vectors: int) -> Any:
    """Tile c = a b where `on`, which lies as c does, is positive, else 0; b by panels as wide as the tile."""

    def emit(tile: _Tile) -> None:
        a, b = (tile.address(0), tile.arguments[2], _INT(1)), (tile.address(3), _INT(LANES * vectors))
        sums = tile.add_products(tile.zeros(PAIR_ROWS), a, b, tile.arguments[10])
        on = tile.load(tile.rows(tile.address(5), tile.arguments[9], PAIR_ROWS))
        tile.store(tile.where_positive(sums, on), tile.rows(tile.address(7), tile.arguments[9], PAIR_ROWS))

    @intrinsic
    def downward(
        typing: Any,
        a: Any,
        a_at: Any,
        a_row: Any,
        b: Any,
        b_at: Any,
        on: Any,
        on_at: Any,
        c: Any,
        c_at: Any,
        c_row: Any,
        terms: Any,
    ) -> Any:
        n = types.int64
        return types.void(a, n, n, b, n, on, n, c, n, n, n), _of(vectors, emit)

    return downward


def _across(vectors: int) -> Any:
    """Tile c += a' b, the sum over pairs: both lie pair after pair."""

    def emit(tile: _Tile) -> None:
        to = tile.rows(tile.address(6), tile.arguments[8], UNIT_ROWS)
        a, b = (tile.address(0), _INT(1), tile.arguments[2]), (tile.address(3), tile.arguments[5])
        tile.store(tile.add_products(tile.load(to), a, b, tile.arguments[9]), to)

    @intrinsic
    def across(
        typing: Any,
        a: Any,
        a_at: Any,
        a_row: Any,
        b: Any,
        b_at: Any,
        b_row: Any,
        c: Any,
        c_at: Any,
        c_row: Any,
        terms: Any,
    ) -> Any:
        n = types.int64
        return types.void(a, n, n, b, n, n, c, n, n, n), _of(vectors, emit)

    return across


# One vector wide, and two.
narrow_upward, wide_upward = (_upward(n) for n in (1, 2))
narrow_downward, wide_downward = (_downward(n) for n in (1, 2))
narrow_across, wide_across = (_across(n) for n in (1, 2))
