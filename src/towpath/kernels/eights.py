"""Loops over vectors of a few floats, eight at a time, as instructions for the compiler.

Such a loop is too short for what the compiler does with loops by itself, which is made for hundreds of terms.
Arrays are flat; each is followed by the place of its first element. What is left over, where a vector is no
multiple of eight long, is for the caller.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

EIGHT = 8
_FLOAT, _INT = ir.FloatType(), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, EIGHT)
_LANES = ir.VectorType(ir.IntType(32), EIGHT)


class _Emitter:
    """Emits the instructions of one call, whose arguments are known by their numbers."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.builder, self.arguments = builder, arguments
        self._context, self._signature = context, signature

    def address(self, array: int, eight: Any) -> Any:
        """Of this eight of an array, from the place on that the argument after it names."""
        kind = self._context.make_array(self._signature.args[array])
        data = kind(self._context, self.builder, self.arguments[array]).data
        place = self.builder.add(self.arguments[array + 1], self.builder.mul(eight, _INT(EIGHT)))
        return self.builder.bitcast(self.builder.gep(data, [place]), _VECTOR.as_pointer())

    def load(self, address: Any) -> Any:
        """The eight floats that lie there."""
        return self.builder.load(address, align=4)

    def spread(self, value: Any) -> Any:
        """A float eight times."""
        unknown = ir.Constant(_VECTOR, ir.Undefined)
        one = self.builder.insert_element(unknown, value, ir.IntType(32)(0))
        return self.builder.shuffle_vector(one, unknown, ir.Constant(_LANES, [0] * EIGHT))

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """The sum a b + c, by one instruction where the processor has it."""
        return self._call(f"llvm.fmuladd.v{EIGHT}f32", _VECTOR, [a, b, c])

    def total(self, vector: Any) -> Any:
        """The sum of eight floats, in any order."""
        return self._call(f"llvm.vector.reduce.fadd.v{EIGHT}f32", _FLOAT, [_FLOAT(0.0), vector], ("reassoc",))

    def _call(self, name: str, result: Any, arguments: list[Any], fastmath: tuple[str, ...] = ()) -> Any:
        known = self.builder.module.globals
        kind = ir.FunctionType(result, [one.type for one in arguments])
        function = known[name] if name in known else ir.Function(self.builder.module, kind, name)
        return self.builder.call(function, arguments, fastmath=fastmath)


def _inner_product(typing: Any, a: Any, a_at: Any, b: Any, b_at: Any, eights: Any) -> Any:
    """The sum of a[a_at + j] b[b_at + j] over so many eights."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)
        zeros = ir.Constant(_VECTOR, [0.0] * EIGHT)
        sums = cgutils.alloca_once_value(builder, zeros)  # type: ignore[no-untyped-call]  # numba has no types
        with cgutils.for_range(builder, arguments[4]) as loop:
            x, y = (emit.load(emit.address(array, loop.index)) for array in (0, 2))
            builder.store(emit.multiply_add(x, y, builder.load(sums)), sums)
        return emit.total(builder.load(sums))

    n = types.uint64
    return types.float32(a, n, b, n, n), generate


def _add_scaled(
    typing: Any, to: Any, to_at: Any, x: Any, x_at: Any, y: Any, y_at: Any, s: Any, t: Any, eights: Any
) -> Any:
    """Add s x[x_at + j] + t y[y_at + j] to to[to_at + j], for so many eights."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)
        by_x, by_y = emit.spread(arguments[6]), emit.spread(arguments[7])
        with cgutils.for_range(builder, arguments[8]) as loop:
            place, x, y = (emit.address(array, loop.index) for array in (0, 2, 4))
            added = emit.multiply_add(by_y, emit.load(y), emit.load(place))
            builder.store(emit.multiply_add(by_x, emit.load(x), added), place, align=4)
        return context.get_dummy_value()

    n, f = types.uint64, types.float32
    return types.void(to, n, x, n, y, n, f, f, n), generate


inner_product: Any = intrinsic(_inner_product)
add_scaled: Any = intrinsic(_add_scaled)
