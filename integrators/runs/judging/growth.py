"""How errors grow along a run: by Jacobians at its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["sensitivity", "sizes"]

Array = NDArray[np.float64]

#: Parts of steps and components for which growth is computed, and random errors sent along.
MOST_STEPS, MOST_COMPONENTS, ERRORS = 6000, 60, 4
#: Components for which that is done with a Jacobian that is no machine code: nobody who reads a
#: message waits for hundreds of large ones.
MOST_SLOW_COMPONENTS = 30

#: Operations of a traced f, times components, up to which its Jacobian is traced for that.
MOST_TRACED = 100_000

#: Steps at which errors are brought back onto constraints, and how small they are then.
MOST_STAYED, SMALL = 500, 1e-5

#: Steps are divided into parts h with h |J| at most this, but not too many.
LONGEST, MOST_PARTS = 1.0, 8


def sensitivity(
    problem: Any, t: Array, y: Array, steps: int, jumps: bool, least: Any
) -> float | None:
    """Error at the end, in tolerances, if local errors are as large as allowed; None if unknown.

    Random errors are sent along with the flow of the linearised equations. `least` is atol/rtol.
    """
    every_step = len(t) == steps + 1 and not jumps
    if not every_step or len(t) < 2 or np.iscomplexobj(y) or not np.isfinite(y).all():
        return None
    stay: Callable[..., Any] | None = None
    if hasattr(problem, "growing") and (found := problem.growing(t, y)) is not None:
        problem, y, stay = found
    jac = _exact_jacobian(problem)
    if jac is None or problem.mass is not None:
        return None
    most = MOST_COMPONENTS if hasattr(jac, "machine_code") else MOST_SLOW_COMPONENTS
    if len(y) > most:
        return None
    together = -(-len(t) // (MOST_STEPS // 2))  # of very many steps, some are taken as one
    if together > 1:
        some = np.append(np.arange(0, len(t) - 1, together), len(t) - 1)
        t, y = t[some], y[:, some]
    scale, n = sizes(y), len(y)
    # A tolerance allows what atol does, where components are small: forces of stiff contacts live
    # on that. (States that a problem grows by may be others than those that it asks for.)
    small = np.maximum(1e-3 * scale, np.minimum(least, scale) if np.size(least) in (1, n) else 0.0)
    jacobian = problem.bind(jac)
    ends = np.array([_dense(jacobian(float(s), x)) for s, x in zip(t, y.T)])
    size = np.abs(ends * scale / scale[:, None]).sum(axis=2).max(axis=1)  # in relative errors
    parts = np.abs(np.diff(t)) * np.maximum(size[1:], size[:-1]) / LONGEST
    parts = np.minimum(np.ceil(parts), MOST_PARTS).astype(int).clip(1)
    if parts.sum() > MOST_STEPS:
        return None
    times, states, last = _between(problem, t, y, parts)
    J = np.array([_dense(jacobian(float(s), x)) for s, x in zip(times, states.T)])
    A = np.repeat(np.diff(t) / parts, parts)[:, None, None] * J
    B = np.eye(n) + A @ A / 12.0
    flow = np.linalg.solve(B - 0.5 * A, B + 0.5 * A)  # Padé's approximation of exp(A)
    rng = np.random.default_rng(0)
    every = 1 if stay is None else -(-len(t) // MOST_STAYED)
    delta, step = np.zeros((n, ERRORS)), 0
    for part, is_last in zip(flow, last):
        delta = part @ delta
        if is_last:
            step += 1
            if step % every == 0:
                x = y[:, step]
                share = np.sqrt(together * every / n)
                error = share * (np.abs(x) + small)[:, None] * rng.normal(size=(n, ERRORS))
                delta += error if stay is None else _stayed(problem, stay, t[step], x, error)
    return float(np.median(np.sqrt(np.mean((delta / scale[:, None]) ** 2, axis=0))))


def _exact_jacobian(problem: Any) -> Any:
    """The problem's Jacobian, or that of a right-hand side that was traced."""
    if callable(jac := getattr(problem, "jac", None)):
        return jac
    f: Any = getattr(problem, "f", None)
    if not hasattr(f, "jacobian") or f.operations()["total"] * problem.n > MOST_TRACED:
        return None
    return f.jacobian()


def _stayed(problem: Any, stay: Callable[..., Any], t: float, x: Array, error: Array) -> Array:
    """Errors that are left when states are brought back onto the constraints."""
    onto = problem.bind(stay)
    here = onto(float(t), x)
    moved = [onto(float(t), x + SMALL * column) for column in error.T]
    return (np.array(moved) - here).T / SMALL


def _between(problem: Any, t: Array, y: Array, parts: Any) -> tuple[Array, Array, Any]:
    """Times and states in the middle of the parts of each step, on cubics; the last of each."""
    step = np.repeat(np.arange(len(parts)), parts)
    number = np.arange(len(step)) - np.repeat(np.cumsum(parts) - parts, parts)
    s = (number + 0.5) / parts[step]
    h = np.diff(t)[step]
    slope = np.array([problem.rhs(float(a), x) for a, x in zip(t, y.T)]).T
    start, end = y[:, step], y[:, step + 1]
    r = 1.0 - s
    cubic = r * r * (1.0 + 2.0 * s) * start + s * s * (3.0 - 2.0 * s) * end
    cubic += h * s * r * (r * slope[:, step] - s * slope[:, step + 1])
    return t[step] + s * h, cubic, number == parts[step] - 1


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=float)


def sizes(y: NDArray[Any]) -> Array:
    """Largest size of each component, at least a thousandth of the largest of all."""
    sizes = np.abs(y).max(axis=1, initial=0.0)
    return np.maximum(sizes, max(1e-3 * float(sizes.max(initial=0.0)), np.finfo(float).tiny))
