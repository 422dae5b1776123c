"""What compiled kernels need and Python cannot say: calls through function pointers.

Imported by :mod:`integrators.kernels` when the first kernel is compiled, never before, because it
needs numba. Each entry gives the compiled form of a function that also exists as plain Python.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from .methods import loop
from .methods.pointers import call


@intrinsic
def _call_address(typing_context: Any, address: Any, t: Any, x: Any, p: Any, out: Any) -> Any:
    signature = types.void(types.intp, types.float64, x, p, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        pointers = [
            builder.bitcast(context.make_array(kind)(context, builder, value).data, byte_pointer)
            for kind, value in zip(sig.args[2:], args[2:])
        ]
        kind = ir.FunctionType(ir.VoidType(), [ir.DoubleType(), *[byte_pointer] * 3])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1], *pointers])
        return context.get_dummy_value()

    return signature, codegen


@overload(call)
def _compiled_call(f: Any, t: Any, x: Any, p: Any, out: Any) -> Any:
    def through_pointer(f: Any, t: Any, x: Any, p: Any, out: Any) -> None:
        _call_address(f, t, x, p, out)

    return through_pointer


for _generic, _table in loop.DISPATCH.items():

    def _chooser(*args: Any, _table: Any = _table) -> Any:
        """Choose the function of the method's family by the type of its workspace."""
        return _table[args[0].instance_class]

    # numba wants the chooser and the chosen to have the same argument names.
    loop.register_overload(overload, _generic, _table)
