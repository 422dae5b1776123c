"""Laws of joints as functions that compiled code can call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.kernels.pointers import SIGNATURE

from ...joints import Joint
from ..loops.constraints.joint_law import loop_law
from ..loops.constraints.stated import law_sizes, stated_law

if TYPE_CHECKING:
    from ...model import Model
    from ...model.constraints import Constraint
    from .arrays import Tree

__all__ = [
    "Fresh",
    "law_callback",
    "law_code",
    "law_function",
    "loop_function",
    "rate_function",
    "stated_function",
    "stated_key",
]


class Fresh:
    """Something that a cache must not compare."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fresh)

    def __hash__(self) -> int:
        return 0


def law_function(body: Any) -> Callable[..., None]:
    """jcalc as a function that writes E, r, v_J, c_J, S one after the other into `out`."""
    joint = body.joint
    reverse = body.reverse and not joint.is_axial  # of an axial joint the frame is turned instead
    nq, nv = joint.nq, joint.nv

    def law(t: Any, x: Any, p: Any, out: Any) -> None:
        x = _as_traced(x)
        q, v = x[:nq], x[nq : nq + nv]
        E, r, S, c, sigma = joint.law(t, q, v, p)
        columns = [[S[k][j] for k in range(6)] for j in range(nv)]
        velocity = [0.0] * 6 if sigma is None else [sigma[k] for k in range(6)]
        for column, speed in zip(columns, v):
            velocity = [a + b * speed for a, b in zip(velocity, column)]
        bias = [0.0] * 6 if c is None else [c[k] for k in range(6)]
        E = [[E[i][j] for j in range(3)] for i in range(3)]
        r = [r[k] for k in range(3)]
        if reverse:  # book, Table 4.2
            columns = [_reversed(E, r, s) for s in columns]
            bias = _reversed(E, r, bias)
            velocity = _reversed(E, r, velocity)
            r = [-_dot3(E[i], r) for i in range(3)]
            E = [[E[j][i] for j in range(3)] for i in range(3)]
        flat = [*E[0], *E[1], *E[2], *r, *velocity, *bias]
        for column in columns:
            flat += column
        for k, value in enumerate(flat):
            out[k] = value

    return law


def _as_traced(x: Any) -> Any:
    """Symbols in the kind of array that traced functions get, on which NumPy's functions work.

    (On plain arrays of objects some do not, as ``np.cross`` before NumPy 2.3.)
    """
    if x.dtype != object:
        return x
    from integrators.tracing.symbols.arrays import SymbolArray

    return x.view(SymbolArray)


def _dot3(a: Any, b: Any) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _reversed(E: Any, r: Any, m: Any) -> list[Any]:
    """−X⁻¹ m: a motion of the successor seen as one of the predecessor."""
    w = [E[0][i] * m[0] + E[1][i] * m[1] + E[2][i] * m[2] for i in range(3)]
    u = [E[0][i] * m[3] + E[1][i] * m[4] + E[2][i] * m[5] for i in range(3)]
    x = [r[1] * w[2] - r[2] * w[1], r[2] * w[0] - r[0] * w[2], r[0] * w[1] - r[1] * w[0]]
    return [-a for a in w] + [-(a + b) for a, b in zip(u, x)]


def rate_function(joint: Joint) -> Callable[..., None]:
    """q̇ as a function that writes into `out`."""
    nq, nv = joint.nq, joint.nv

    def rate(t: Any, x: Any, p: Any, out: Any) -> None:
        x = _as_traced(x)
        value = joint.rate(t, x[:nq], x[nq : nq + nv], p)
        for k in range(nq):
            out[k] = value[k]

    return rate


def loop_function(joint: Joint) -> Callable[..., None]:
    """Law of a loop joint as a function that writes its values into `out`."""

    def function(t: Any, x: Any, p: Any, out: Any) -> None:
        law = _loop_law(joint.law_key(), Fresh(joint))  # made when first needed: it is traced
        for k, value in enumerate(law(t, x, p)):
            out[k] = value

    return function


@cache
def _loop_law(key: Any, joint: Fresh) -> Callable[..., Any]:
    """Law of a loop joint; joints with the same key share it, and its parameters are arguments."""
    return loop_law(joint.function)


def stated_key(model: Model, constraint: Constraint) -> Any:
    """Equal for constraints of models of one structure that have the same law up to parameters."""
    joints = tuple((b.parent, b.reverse, b.joint.law_key()) for b in model.bodies)
    return "stated", constraint.key(), joints


def stated_function(model: Model, constraint: Constraint) -> Callable[..., None]:
    """Law of a constraint by a function, as a function that writes its values into `out`."""
    n, _ = law_sizes(model, constraint)

    def function(t: Any, x: Any, p: Any, out: Any) -> None:
        law = _stated_law(stated_key(model, constraint), Fresh((model, constraint)))
        for k, value in enumerate(law(t, x[:n], p)):
            out[k] = value

    return function


@cache
def _stated_law(key: Any, stated: Fresh) -> Callable[..., Any]:
    return stated_law(*stated.function)


@cache
def law_code(key: Any, law: Fresh, n: int, k: int, size: int, pure: bool = False) -> Any:
    """Machine code of a law; joints with the same key share it."""
    from integrators.tracing.traced import Traced

    def values(t: Any, x: Any, p: Any = ()) -> Any:
        out = np.empty(size, dtype=object)
        law.function(t, x, p, out)
        return out

    def without(t: Any, x: Any) -> Any:
        return values(t, x)

    return Traced(values if k else without, n, k, outputs=size, pure=pure).machine_code()


def law_callback(function: Callable[..., None], n: int, k: int, size: int, tree: Tree) -> Any:
    """C callback for a law that cannot be traced; what it raises is kept in the tree."""

    def run(t: float, x: int, p: int, out: int) -> None:
        target = np.ctypeslib.as_array((ctypes.c_double * size).from_address(out))
        try:
            values = [
                np.array((ctypes.c_double * m).from_address(at)) if m else np.zeros(0)
                for m, at in ((n, x), (k, p))
            ]
            function(t, values[0], values[1], target)
        except BaseException as error:  # cannot cross compiled code; raised afterwards
            tree.error = error
            target[:] = np.nan

    return SIGNATURE(run)
