"""What compiled kernels need and Python cannot say: pointers.

Imported by :mod:`integrators.kernels` when the first kernel is compiled, never before, because it
needs numba. It gives the compiled form of things that also exist as plain Python: calling a
function through its address, the arrays of a workspace, and the choice of a method's family.

The functions handed to numba carry no annotations: numba compares them with the kernels' own
signatures.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import (
    NativeValue,
    intrinsic,
    lower_getattr_generic,
    models,
    overload,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import make_array, populate_array

from .elementary import cos, exp, log, quotient, select, sin
from .pointers import call, call_lanes, invoke
from .record import Record
from .workspace import WORDS, Workspace

# -------------------------------------------------------------------- calls through an address


@intrinsic
def _call_address(typing_context: Any, address: Any, t: Any, x: Any, p: Any, out: Any) -> Any:
    signature = types.void(types.intp, types.float64, x, p, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        pointers = [
            builder.bitcast(make_array(kind)(context, builder, value).data, byte_pointer)
            for kind, value in zip(sig.args[2:], args[2:])
        ]
        kind = ir.FunctionType(ir.VoidType(), [ir.DoubleType(), *[byte_pointer] * 3])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1], *pointers])
        return context.get_dummy_value()

    return signature, codegen


@overload(call)
def _compiled_call(f, t, x, p, out):
    def through_pointer(f, t, x, p, out):
        _call_address(f, t, x, p, out)

    return through_pointer


@intrinsic
def _call_lanes_address(typing_context: Any, address: Any, t: Any, x: Any, p: Any, out: Any) -> Any:
    signature = types.void(types.intp, t, x, p, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        pointers = [
            builder.bitcast(make_array(kind)(context, builder, value).data, byte_pointer)
            for kind, value in zip(sig.args[1:], args[1:])
        ]
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer] * 4)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), pointers)
        return context.get_dummy_value()

    return signature, codegen


@overload(call_lanes)
def _compiled_call_lanes(f, t, x, p, out):
    def through_pointer(f, t, x, p, out):
        _call_lanes_address(f, t, x, p, out)

    return through_pointer


@overload(exp)
def _exp(x):
    return lambda x: np.exp(x)


@overload(log)
def _log(x):
    return lambda x: np.log(x)


@overload(sin)
def _sin(x):
    return lambda x: np.sin(x)


@overload(cos)
def _cos(x):
    return lambda x: np.cos(x)


@overload(select)
def _select(condition, a, b):
    return lambda condition, a, b: a if condition else b


@overload(quotient)
def _quotient(a, b):
    def by_c(a, b):
        return a / b

    return by_c


# -------------------------------------------------------------------- records

WORD, DOUBLE = ir.IntType(64), ir.DoubleType()


class RecordType(types.Type):
    """The numba type of a record: a pointer to its numbers."""

    def __init__(self, record: str) -> None:
        self.record = record
        fields = repr(Record.records[record].FIELDS)
        super().__init__(name=f"Record({record}, {_short_hash(fields)})")

    def field(self, name: str) -> tuple[int, Any] | None:
        """Place and numba type of a number."""
        fields = Record.records[self.record].FIELDS
        if name not in fields:
            return None
        return list(fields).index(name), types.float64 if fields[name] == "f" else types.int64


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@register_model(RecordType)
class _RecordModel(models.PrimitiveModel):
    def __init__(self, manager: Any, record_type: Any) -> None:
        super().__init__(manager, record_type, WORD)


@infer_getattr
class _RecordAttributes(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, record_type: Any, name: str) -> Any:
        found = record_type.field(name)
        return None if found is None else found[1]


def _number(builder: Any, record_type: Any, record: Any, name: str) -> Any:
    """Pointer to a number of a record."""
    place, kind = record_type.field(name)
    element = DOUBLE if kind == types.float64 else WORD
    start = builder.inttoptr(record, element.as_pointer())
    return builder.gep(start, [ir.Constant(WORD, place)])


@lower_getattr_generic(RecordType)
def _record_number(context: Any, builder: Any, record_type: Any, value: Any, name: str) -> Any:
    return builder.load(_number(builder, record_type, value, name))


@lower_setattr_generic(RecordType)
def _set_record_number(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    builder.store(args[1], _number(builder, sig.args[0], args[0], name))


# -------------------------------------------------------------------- workspaces

ELEMENTS = {"f": types.float64, "i": types.int64, "c": types.complex128}


class WorkspaceType(types.Type):
    """The numba type of a workspace: a pointer to its table."""

    def __init__(self, family: str) -> None:
        self.family = family
        # The layout is part of the name, so that cached code for another one is never used.
        layout = _short_hash(Workspace.families[family].layout())
        super().__init__(name=f"Workspace({family}, {layout})")

    def field(self, name: str) -> tuple[int, Any] | None:
        """Place in the table and numba type of a field."""
        fields = Workspace.families[self.family].FIELDS
        if name not in fields:
            return None
        kind = fields[name]
        place = WORDS * list(fields).index(name)
        if kind == "a":
            return place, types.intp
        if isinstance(kind, type):
            return place, RecordType(kind.__name__)
        return place, types.Array(ELEMENTS[kind[0]], int(kind[1]), "C")

    def record_of(self, name: str) -> tuple[str, Any] | None:
        """Name and type of the record that holds a number of the workspace."""
        record = Workspace.families[self.family].numbers.get(name)
        found = None if record is None else self.field(record)
        return None if record is None or found is None else (record, found[1])


@typeof_impl.register(Workspace)
def _typeof_workspace(value: Any, context: Any) -> WorkspaceType:
    return WorkspaceType(value.seen_as)


@register_model(WorkspaceType)
class _WorkspaceModel(models.PrimitiveModel):
    def __init__(self, manager: Any, workspace_type: Any) -> None:
        super().__init__(manager, workspace_type, ir.IntType(64))


@unbox(WorkspaceType)
def _unbox_workspace(workspace_type: Any, value: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(value, "address")
    native = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(native, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


@infer_getattr
class _WorkspaceAttributes(AttributeTemplate):
    key = WorkspaceType

    def generic_resolve(self, workspace_type: Any, name: str) -> Any:
        if (held := workspace_type.record_of(name)) is not None:
            return held[1].field(name)[1]
        found = workspace_type.field(name)
        return None if found is None else found[1]


@lower_getattr_generic(WorkspaceType)
def _workspace_field(context: Any, builder: Any, workspace_type: Any, value: Any, name: str) -> Any:
    if (held := workspace_type.record_of(name)) is not None:
        record = _workspace_field(context, builder, workspace_type, value, held[0])
        return _record_number(context, builder, held[1], record, name)
    place, kind = workspace_type.field(name)
    word = ir.IntType(64)
    table = builder.inttoptr(value, word.as_pointer())

    def entry(k: int) -> Any:
        loaded = builder.load(builder.gep(table, [ir.Constant(word, place + k)]))
        # The table never changes while a kernel runs, so loads may be moved out of loops.
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if kind == types.intp or isinstance(kind, RecordType):
        return entry(0)
    array = make_array(kind)(context, builder)
    item_size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    shape = [entry(1 + axis) for axis in range(kind.ndim)]
    strides = [ir.Constant(word, item_size)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(
        array,
        data=builder.inttoptr(entry(0), array.data.type),
        shape=shape,
        strides=strides,
        itemsize=item_size,
        meminfo=None,
    )
    return array._getvalue()


@lower_setattr_generic(WorkspaceType)
def _set_workspace_number(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    workspace_type, value = sig.args[0], args[0]
    field, record_type = workspace_type.record_of(name)
    record = _workspace_field(context, builder, workspace_type, value, field)
    builder.store(args[1], _number(builder, record_type, record, name))


# -------------------------------------------------------------------- the method's kernels


@intrinsic
def _invoke_address(typing_context: Any, w: Any, address: Any, t: Any, h: Any) -> Any:
    signature = types.int64(w, types.intp, types.float64, types.float64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        word, double = ir.IntType(64), ir.DoubleType()
        pointer = ir.FunctionType(word, [word, double, double]).as_pointer()
        return builder.call(builder.inttoptr(args[1], pointer), [args[0], args[2], args[3]])

    return signature, codegen


@overload(invoke)
def _invoke(w, kernel_of_method, t, h):
    def through_pointer(w, kernel_of_method, t, h):
        return _invoke_address(w, kernel_of_method, t, h)

    return through_pointer


def method_kernel_signature(family: type[Workspace]) -> Any:
    """C signature of a method's kernels: int64(workspace, t, h)."""
    return types.int64(WorkspaceType(family.__name__), types.float64, types.float64)
