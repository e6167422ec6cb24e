"""Asking for a row of a table some time before it is read, so that nobody has to wait for the memory."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_LINE = 64  # bytes that come at once
_LINES = 3  # of a row: enough for vectors of usual lengths, and more would crowd others out


def _prefetch(typing: Any, table: Any, row: Any) -> Any:
    """Let the first lines of table[row] come, row an unsigned number; a hint, nothing else."""
    byte, number, flag = ir.IntType(8).as_pointer(), ir.IntType(64), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(array.strides, 0)
        start = builder.add(builder.ptrtoint(array.data, number), builder.mul(arguments[1], stride))
        known, name = builder.module.globals, "llvm.prefetch"
        hint = known[name] if name in known else ir.Function(builder.module, kind, name)
        for line in range(_LINES):
            place = builder.inttoptr(builder.add(start, number(line * _LINE)), byte)
            builder.call(hint, [place, flag(0), flag(3), flag(1)])  # to be read, kept in all caches, data
        return context.get_dummy_value()

    return types.void(table, types.uint64), generate


prefetch: Any = intrinsic(_prefetch)
