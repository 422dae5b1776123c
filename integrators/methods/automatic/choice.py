"""Which method for which problem: the rules of the automatic choice.

They follow from ``benchmarks/detest.py``: evaluations of f at equal error. Explicit pairs of
order 8 win from moderate tolerances on (BS45 would win at loose ones, but its estimate is too small
where stability limits the steps); BDF among the stiff methods at loose tolerances and for many
unknowns, Radau IIA of variable order at others, and where eigenvalues lie near the imaginary axis,
which it damps and BDF do not. On differential-algebraic systems of moderate size RADAU5 is
the more accurate, and ends runs on which BDF get stuck (a NAND gate, a car axis, a ring modulator).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...stepping.engine import Options
from ..runge_kutta.divided import is_regular
from ..runge_kutta.implicit.algebra import LARGEST_OWN_LU

__all__ = [
    "decays",
    "decays_fast",
    "dominant",
    "explicit_name",
    "fast_decay",
    "known_eigenvalues",
    "may_have_eigenvalues",
    "must_be_implicit",
    "oscillates",
    "stiff_name",
]

# Decays by exp(−FAST rtol^−FASTER) within the interval make a problem stiff from the start: then an
# explicit pair would need more evaluations of f for stability alone than BDF for everything.
FAST, FASTER = 40.0, 1 / 9
LOOSE = 1e-4  # from here on pairs of order 5 are as good as those of order 8
LOOSE_INSIDE = 1e-6  # … here, if every step needs dense output, which costs order 8 as much again
MODERATE = 1e-5  # relative tolerances below are for methods of high order …
TIGHT = 1e-8  # … these, where matrices are more work than f …
FEW = 10  # … that is, beyond so many unknowns if a Jacobian takes differences …
LARGE = 200  # … and never beyond so many unknowns: Radau IIA has complex matrices
LASTING = 8.0  # an interval longer than so many transients is stiff for what swings, too
POWER_ITERATIONS = 7
SECTOR = 1.2  # |Im λ|/|Re λ| up to which BDF of order 5 is stable (tan 51.8°), nearly


def must_be_implicit(problem: IVP) -> bool:
    """Whether the problem is differential-algebraic."""
    return problem.mass is not None and not is_regular(problem.mass)


def explicit_name(options: Options) -> str:
    """Name of the explicit pair for a tolerance, and for events or dense output."""
    inside = options.want_dense and options.outputs.size == 0
    return "Tsit5" if options.rtol >= (LOOSE_INSIDE if inside else LOOSE) else "DOP853"


def stiff_name(problem: IVP, options: Options, eigenvalues: NDArray[Any] | None = None) -> str:
    """Name of the method for a stiff problem; its eigenvalues, if they are known, have a say."""
    higher = problem.index is not None and np.max(problem.index) > 1
    if higher or problem.manifold is not None:
        return "RADAU5"
    small = problem.n <= LARGEST_OWN_LU
    fits = small or (problem.n <= LARGE and problem.jac_sparsity is None)
    swings = eigenvalues is not None and oscillates(eigenvalues)
    algebraic = fits and must_be_implicit(problem)
    if options.want_dense or not fits:
        # Long steps are right at their ends; inside, only as far as their stages interpolate.
        return "RADAU5" if swings or algebraic else "BDF"
    if algebraic:
        return "RadauVariable" if options.rtol < TIGHT else "RADAU5"
    known = problem.jac is not None or hasattr(problem.f, "jacobian")
    cheap = problem.n <= (LARGEST_OWN_LU if known else FEW)
    return "RadauVariable" if swings or options.rtol < (MODERATE if cheap else TIGHT) else "BDF"


def oscillates(eigenvalues: NDArray[Any]) -> bool:
    """Whether one of the larger eigenvalues lies outside the sector where BDF5 is stable."""
    size = np.abs(eigenvalues)
    large = eigenvalues[size > 0.1 * size.max(initial=0.0)]
    return bool(np.any((np.abs(large.imag) > -SECTOR * large.real) & (large.imag != 0)))


def may_have_eigenvalues(problem: IVP) -> bool:
    """Whether the eigenvalues of the Jacobian are those of the problem, and few."""
    plain = problem.mass is None and problem.y0.dtype.kind != "c"
    return plain and problem.n <= LARGEST_OWN_LU


def known_eigenvalues(
    problem: IVP, t: float, y: NDArray[Any], least: float = 0.0
) -> NDArray[Any] | None:
    """Eigenvalues of the Jacobian at a state, if it is known without asking f.

    None as well where a bound shows that all of them are below `least`.
    """
    jac, f = problem.jac, problem.f
    if not may_have_eigenvalues(problem) or (jac is None and not hasattr(f, "jacobian")):
        return None
    try:
        if jac is None:
            if not f.is_traced:  # type: ignore[attr-defined]
                problem.bind(f)(t, y.copy())  # tells it n
            jac = f.jacobian()  # type: ignore[attr-defined]
        if callable(jac):
            jac = problem.bind(jac)(t, y.copy())
    except Exception:  # whoever needs it will say what is wrong with it
        return None
    J: Any = jac.toarray() if hasattr(jac, "toarray") else np.atleast_2d(np.asarray(jac))
    if J.shape != (problem.n, problem.n):
        return None
    bound = np.abs(J).sum(axis=1).max()
    if not (np.isfinite(bound) and bound > least):
        return None
    return np.linalg.eigvals(J)


def dominant(
    slope: Callable[[float, Any], Any], t: float, y: NDArray[Any], small: NDArray[Any]
) -> tuple[float, float]:
    """Modulus of the largest eigenvalue of ∂f/∂y, nearly, and its real part.

    By the power method with differences of f over `small`; POWER_ITERATIONS + 1 evaluations. It
    begins with signs that no grid has, so that all of its waves are there.
    """
    base = np.asarray(slope(t, y))
    direction = np.where(np.cos(np.arange(y.size, dtype=float) ** 2) > 0, 1.0, -1.0)
    radius = real = 0.0
    for _ in range(POWER_ITERATIONS):
        change = (np.asarray(slope(t, y + small * direction)) - base) / small
        if not np.all(np.isfinite(change)):
            break
        square = float(np.vdot(direction, direction).real)
        radius = float(np.linalg.norm(change)) / np.sqrt(square)
        real = float(np.vdot(direction, change).real) / square
        largest = np.abs(change).max()
        if largest == 0.0:
            break
        direction = change / largest
    return radius, real


def decays_fast(radius: float, real: float, length: float, rtol: float) -> bool:
    """The same as `decays`, by the largest eigenvalue alone."""
    return real < -0.5 * radius and radius * length > fast_decay(rtol)


def fast_decay(rtol: float) -> float:
    """Decay over the interval, as a logarithm, that makes a problem stiff from the start."""
    return float(FAST * max(rtol, 1e-15) ** -FASTER)


def decays(eigenvalues: NDArray[Any], t: float, t_end: float, rtol: float) -> bool:
    """Whether a component decays so fast that most of the interval is stiff.

    Not where others grow as fast: that is the passage of a saddle, and soon over.
    """
    rates = (t_end - t) * eigenvalues
    fast = rates[np.abs(rates) > fast_decay(rtol)]
    # What swings is gone when it has lost all digits, which must take a part of the interval only.
    gone = fast.real < np.maximum(-0.5 * np.abs(fast), LASTING * np.log(max(rtol, 1e-15)))
    fastest = -fast[gone].real.min(initial=0.0)
    return bool(fastest > 0 and rates.real.max() < 0.3 * fastest)
