"""Arrays of node numbers: NumPy code on thousands of traced values at a time.

A :class:`SymbolBlock` is to NumPy what an array of floats is: arithmetic adds a block of nodes to a
:class:`~.columns.Columns`, and whatever only moves elements (slices, ``np.roll``,
``np.concatenate``, ``reshape``) moves their numbers, by NumPy itself. What is not known here raises
a :class:`~..errors.TracingError`, and the function is traced by single symbols instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import tracing_error
from ..graph import CONDITIONS
from ..symbols.arrays import unknown
from ..symbols.elementwise import ELEMENTWISE
from ..symbols.symbol import _OF_TRUTHS, BLOCK_RULES, Symbol
from .columns import Columns

__all__ = ["SymbolBlock", "block_of"]

Integers = NDArray[np.int64]

MANY = 64  # elements; a function that asks for more of them, one by one, is traced by symbols


class SymbolBlock(np.lib.mixins.NDArrayOperatorsMixin, Symbol):
    """An array of traced numbers or, if `is_truth`, of traced truth values."""

    __slots__ = ("is_truth",)

    graph: Any
    index: Any

    def __init__(self, graph: Columns, index: Integers, is_truth: bool = False) -> None:
        self.graph, self.index, self.is_truth = graph, index, is_truth

    # --- what it is -------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of its axes."""
        return self.index.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.index.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.index.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type that it stands for."""
        return np.dtype(bool if self.is_truth else float)

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[SymbolBlock]:
        if self.ndim == 1 and len(self) > MANY:
            raise tracing_error("elements are taken one by one", "work with whole arrays")
        return (self[i] for i in range(len(self)))

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<block of shape {self.shape}>"

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        """One object: whoever wants floats asks it for one, and is told why there is none."""
        cell = np.empty((), dtype=object)
        cell[()] = self
        return cell

    def __bool__(self) -> bool:
        raise tracing_error("a traced value has no truth value", "use integrators.where")

    # --- elements ---------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> SymbolBlock:
        return SymbolBlock(self.graph, np.asarray(self.index[_constant(key)]), self.is_truth)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, SymbolBlock) and key.is_truth and np.size(value) == 1:
            self.index[...] = apply_block("select", key, value, self).index
            return
        self.index[_constant(key)] = _numbers(self.graph, value)

    def _in_place(self, value: Any) -> SymbolBlock:
        self.index[...] = _numbers(self.graph, value)
        return self

    def copy(self, *_: Any) -> SymbolBlock:
        """Return a copy, with its own elements."""
        return SymbolBlock(self.graph, self.index.copy(), self.is_truth)

    def astype(self, dtype: Any, **_: Any) -> SymbolBlock:
        """Return a copy; only floats can be asked for."""
        if np.dtype(dtype) != float:
            raise unknown(f"astype({np.dtype(dtype)})")
        return SymbolBlock(self.graph, _numbers(self.graph, self).copy())

    # --- NumPy ------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if method == "__call__" and ufunc is np.matmul and not kwargs:
            result = _matmul(*inputs)
        elif method == "__call__" and ufunc in ELEMENTWISE and not kwargs:
            result = ELEMENTWISE[ufunc](*(block_of(self.graph, x) for x in inputs))
        elif method == "outer" and not kwargs and len(inputs) == 2:
            a, b = (block_of(self.graph, x) for x in inputs)
            spread = a.index.reshape(a.shape + (1,) * b.ndim)
            return ufunc(SymbolBlock(self.graph, spread, a.is_truth), b)
        elif method == "reduce":
            result = _reduce(ufunc, block_of(self.graph, inputs[0]), **kwargs)
        else:
            raise unknown(f"np.{ufunc.__name__}.{method}")
        if out is None:
            return result
        if len(out) != 1 or not isinstance(out[0], SymbolBlock):
            raise _into_floats()
        return out[0]._in_place(result)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        if func in FUNCTIONS:
            return FUNCTIONS[func](*args, **kwargs)
        if func not in MOVES:
            raise unknown(f"np.{func.__name__}")
        truth = _are_truths(args)

        def back(x: Any) -> Any:
            if isinstance(x, np.ndarray):
                return SymbolBlock(self.graph, x, truth)
            return type(x)(back(e) for e in x) if isinstance(x, list | tuple) else x

        places = _as_nodes(self.graph, args[0]), *args[1:]
        return back(func(*places, **kwargs))

    def __float__(self) -> float:
        raise _into_floats()

    def __rmatmul__(self, other: Any) -> Any:
        return _matmul(other, self)

    def __matmul__(self, other: Any) -> Any:
        return _matmul(self, other)

    @property
    def T(self) -> SymbolBlock:
        """The transpose."""
        return SymbolBlock(self.graph, self.index.T, self.is_truth)

    def dot(self, other: Any) -> Any:
        """Return the product of matrices."""
        return _matmul(self, other)

    def clip(self, low: Any = None, high: Any = None) -> Any:
        """Return the elements between bounds."""
        return _clip(self, low, high)


def _install() -> None:
    for name in ("reshape", "ravel", "flatten", "transpose", "swapaxes", "squeeze", "repeat"):

        def move(self: SymbolBlock, *args: Any, _name: str = name, **kwargs: Any) -> SymbolBlock:
            moved = getattr(self.index, _name)(*args, **kwargs)
            return SymbolBlock(self.graph, moved, self.is_truth)

        setattr(SymbolBlock, name, move)
    for name in ("sum", "mean", "prod", "max", "min"):

        def reduce(self: SymbolBlock, *args: Any, _name: str = name, **kwargs: Any) -> Any:
            return FUNCTIONS[getattr(np, _name)](self, *args, **kwargs)

        setattr(SymbolBlock, name, reduce)
    for name in ("add", "sub", "mul", "truediv", "pow"):

        def change(self: SymbolBlock, other: Any, _name: str = f"__{name}__") -> SymbolBlock:
            return self._in_place(getattr(self, _name)(other))

        setattr(SymbolBlock, f"__i{name}__", change)


def _into_floats() -> Exception:
    return tracing_error(
        "a traced value cannot be stored in an array of floats",
        "collect results with np.concatenate or np.stack, or in np.zeros_like(y)",
    )


def _constant(key: Any) -> Any:
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(part, Symbol) for part in parts):
        raise tracing_error("an index that depends on traced values", "use integrators.where")
    return key


def block_of(g: Columns, x: Any) -> SymbolBlock:
    """Return numbers, arrays of numbers and nested lists of blocks as a block."""
    if isinstance(x, SymbolBlock):
        return x
    if isinstance(x, list | tuple) and _has_blocks(x):
        return SymbolBlock(g, np.stack([_numbers(g, e) for e in x]))
    array = np.asarray(x)
    if array.dtype.kind not in "fiub":
        raise unknown(f"an array of type {array.dtype}")
    return SymbolBlock(g, g.constants(array.astype(float)), array.dtype.kind == "b")


def _numbers(g: Columns, x: Any) -> Integers:
    """Nodes of what counts as numbers: truth values are 0 or 1."""
    block = block_of(g, x)
    if not block.is_truth:
        return block.index
    zero, one = (np.broadcast_to(g.constants(v), block.shape) for v in (0.0, 1.0))
    return g.block("select", _truths(g, block), one, zero)


def _truths(g: Columns, x: SymbolBlock) -> Integers:
    """Nodes of what counts as truth values: what is not 0 is true."""
    if x.is_truth and not _is_constant(g, x.index):
        return x.index
    return g.block("ne", x.index, np.broadcast_to(g.constants(0.0), x.shape))


def _is_constant(g: Columns, index: Integers) -> bool:
    """Whether truth values are constants of NumPy, which are stored as numbers."""
    first = int(index.flat[0]) if index.size else 0
    place = int(np.searchsorted(g.starts, first, side="right")) - 1
    return bool(g._codes[place][0] == 0)


def apply_block(op: str, *xs: Any) -> SymbolBlock:
    """Return an operation on blocks, element by element."""
    g = next(x.graph for x in xs if isinstance(x, SymbolBlock))
    blocks = [block_of(g, x) for x in xs]
    if op in _OF_TRUTHS and all(b.is_truth for b in blocks):
        op = _OF_TRUTHS[op]
    elif op == "select" and blocks[1].is_truth and blocks[2].is_truth:
        c, a, b = blocks
        return apply_block("or", apply_block("and", c, a), apply_block("and", ~c, b))
    nodes = []
    for k, x in enumerate(blocks):
        logical = op in ("and", "or", "not") or (op == "select" and k == 0)
        nodes.append(_truths(g, x) if logical else _numbers(g, x))
    return SymbolBlock(g, g.block(op, *np.broadcast_arrays(*nodes)), op in CONDITIONS)


# --- NumPy's functions --------------------------------------------------------------------------


def _reduce(
    ufunc: np.ufunc, x: SymbolBlock, axis: Any = 0, keepdims: bool = False, **rest: Any
) -> SymbolBlock:
    """A sum, product or extremum along axes, by pairs of neighbours."""
    if ufunc not in (np.add, np.multiply, np.minimum, np.maximum) or any(
        v is not None and v is not np._NoValue for v in rest.values()
    ):
        raise unknown(f"np.{ufunc.__name__}.reduce with {', '.join(rest) or 'these arguments'}")
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis) % x.ndim
    kept = [k for k in range(x.ndim) if k not in axes]
    shape = tuple(x.shape[k] for k in kept)
    parts = _numbers(x.graph, x).transpose(*axes, *kept).reshape(-1, *shape)
    rows = SymbolBlock(x.graph, parts)
    if len(rows) == 0:
        raise unknown("a reduction of nothing")
    while len(rows) > 1:
        whole = len(rows) // 2 * 2
        paired: Any = ufunc(rows[0:whole:2], rows[1:whole:2])
        rows = SymbolBlock(x.graph, np.concatenate([paired.index, rows.index[whole:]]))
    result = rows[0]
    if keepdims:
        full = tuple(1 if k in axes else x.shape[k] for k in range(x.ndim))
        return SymbolBlock(x.graph, result.index.reshape(full))
    return result


def _reduction(ufunc: np.ufunc) -> Callable[..., Any]:
    def reduce(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return _reduce(ufunc, x, axis=axis, keepdims=keepdims)

    return reduce


def _mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    total = _reduce(np.add, x, axis=axis, keepdims=keepdims)
    return total / (x.size / total.size)


def _matmul(a: Any, b: Any) -> Any:
    """A product of matrices; of constant ones (SciPy's, too) only what is not zero counts."""
    if isinstance(a, SymbolBlock) and isinstance(b, SymbolBlock):
        if a.ndim != 1 or b.ndim != 1:
            raise unknown("a product of two traced matrices")
        return _reduce(np.add, a * b)
    if isinstance(a, SymbolBlock):
        product = _matmul(b.T, a.T)
        return product.T
    from scipy.sparse import coo_array

    x: SymbolBlock = b
    if not 1 <= np.ndim(a) <= 2 or x.ndim > 2:
        raise unknown(f"a product of arrays with {np.ndim(a)} and {x.ndim} axes")
    matrix = coo_array(a if hasattr(a, "tocoo") else np.atleast_2d(np.asarray(a, dtype=float)))
    matrix.sum_duplicates()
    if matrix.shape[1] != len(x):
        raise ValueError(f"shapes {np.shape(a)} and {x.shape} do not fit")
    row, column = (np.asarray(k) for k in matrix.coords)
    order = np.lexsort((column, row))
    row, column, data = row[order], column[order], matrix.data[order].astype(float)
    factors = data.reshape(-1, *[1] * (x.ndim - 1))
    terms = _numbers(x.graph, factors * x[column]) if row.size else x.index[:0]
    counts = np.bincount(row, minlength=matrix.shape[0])
    firsts = np.cumsum(counts) - counts
    zero = x.graph.constants(0.0)
    out = np.broadcast_to(zero, (matrix.shape[0], *x.shape[1:])).copy()
    for count in np.unique(counts[counts > 0]):
        rows = np.flatnonzero(counts == count)
        chosen = terms[firsts[rows][None, :] + np.arange(count)[:, None]]
        out[rows] = _reduce(np.add, SymbolBlock(x.graph, chosen)).index
    return SymbolBlock(x.graph, out[0] if np.ndim(a) == 1 else out)


def _where(condition: Any, *branches: Any) -> Any:
    if len(branches) != 2:
        raise unknown("np.where(condition) without two branches")
    return apply_block("select", condition, *branches)


def _clip(x: Any, low: Any = None, high: Any = None, **kwargs: Any) -> Any:
    low, high = kwargs.pop("min", low), kwargs.pop("max", high)
    if kwargs:
        raise unknown("np.clip with these arguments")
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _filled(value: float | None) -> Callable[..., Any]:
    def make(x: SymbolBlock, fill: Any = None, dtype: Any = None, shape: Any = None) -> Any:
        g = x.graph
        full = np.broadcast_to(_numbers(g, fill if value is None else value), shape or x.shape)
        return SymbolBlock(g, full.copy())

    if value is None:
        return make
    return lambda x, dtype=None, shape=None: make(x, dtype=dtype, shape=shape)


def _diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    g = next(b.graph for b in (x, prepend, append) if isinstance(b, SymbolBlock))
    parts = []
    whole = block_of(g, x)
    for part in (prepend, x, append):
        if part is None:
            continue
        nodes = _numbers(g, part)
        if nodes.ndim == 0:
            shape = list(whole.shape)
            shape[axis] = 1
            nodes = np.broadcast_to(nodes, shape)
        parts.append(nodes)
    nodes = np.moveaxis(np.concatenate(parts, axis=axis), axis, 0)
    for _ in range(n):
        nodes = (SymbolBlock(g, nodes[1:]) - SymbolBlock(g, nodes[:-1])).index
    return SymbolBlock(g, np.moveaxis(nodes, 0, axis))


def _pad(x: SymbolBlock, widths: Any, mode: Any = "constant", **kwargs: Any) -> SymbolBlock:
    nodes = _numbers(x.graph, x)
    if mode == "constant":
        values = x.graph.constants(kwargs.pop("constant_values", 0.0))
        return SymbolBlock(x.graph, np.pad(nodes, widths, mode, constant_values=values, **kwargs))
    if mode not in ("edge", "wrap", "reflect", "symmetric") or kwargs:
        raise unknown(f"np.pad with mode={mode!r} and these arguments")
    return SymbolBlock(x.graph, np.pad(nodes, widths, mode))


def _has_blocks(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return any(_has_blocks(e) for e in x)
    return isinstance(x, SymbolBlock)


def _are_truths(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return any(_are_truths(e) for e in x if _has_blocks(e))
    return bool(x.is_truth)


def _as_nodes(g: Columns, x: Any) -> Any:
    """Nodes of an array, or of each in a sequence of arrays."""
    if isinstance(x, list | tuple):
        return [_numbers(g, e) for e in x]
    return x.index


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.sum: _reduction(np.add),
    np.prod: _reduction(np.multiply),
    np.max: _reduction(np.maximum),
    np.min: _reduction(np.minimum),
    np.mean: _mean,
    np.dot: _matmul,
    np.where: _where,
    np.clip: _clip,
    np.diff: _diff,
    np.pad: _pad,
    np.zeros_like: _filled(0.0),
    np.empty_like: _filled(0.0),
    np.ones_like: _filled(1.0),
    np.full_like: _filled(None),
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
}

#: What only moves elements of its first argument.
MOVES = frozenset(
    {
        np.concatenate,
        np.stack,
        np.hstack,
        np.vstack,
        np.dstack,
        np.column_stack,
        np.roll,
        np.reshape,
        np.ravel,
        np.transpose,
        np.swapaxes,
        np.moveaxis,
        np.expand_dims,
        np.squeeze,
        np.flip,
        np.fliplr,
        np.flipud,
        np.rot90,
        np.tile,
        np.repeat,
        np.broadcast_to,
        np.take,
        np.delete,
        np.split,
        np.array_split,
        np.hsplit,
        np.vsplit,
        np.atleast_1d,
        np.atleast_2d,
        np.copy,
    }
)

_install()
BLOCK_RULES.update(kind=SymbolBlock, apply=apply_block, array=block_of, has=_has_blocks)
