"""What errors are measured against, and how far it can be trusted.

A :class:`Reference` is the exact solution, a tabulated one of many digits, or, where neither is
known, a solution computed with a tight tolerance. A computed one is computed twice, the second
time with a looser tolerance; their difference tells how far to trust the first.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import problems
from ...problem import IVP
from ...runs.solution import Solution
from ...solve import solve

__all__ = [
    "Reference",
    "as_problem",
    "error_growth",
    "find_reference",
    "known_stiff",
    "solved_tightly",
]

Array = NDArray[np.float64]
States = Callable[[Array], NDArray[Any]]
"""From m times to the states there, shape (n, m)."""

VANISHED = 1e-12  # a solution that has shrunk by this factor makes relative errors meaningless
TIGHT_RTOL = 1e-12
SPREAD = 30  # the second run of a computed reference is looser by this factor
ATOL_OVER_RTOL = 0.1  # relative to the size of the initial state
MAX_STEPS = 200_000
DISTURBANCE, LOOSE_RTOL = 1e-6, 1e-10  # for the growth of errors: far apart, yet both small


@dataclass(frozen=True)
class Reference:
    """What errors are measured against.

    Attributes
    ----------
    y : ndarray or None
        State at the end of the interval; None if nothing is known.
    origin : str
        Where it comes from, in words.
    relative : bool
        Whether errors are divided by its size; not, where it has died out.
    uncertainty : float
        Its own relative error, as far as that is known beforehand.
    along : callable or None
        States at given times, shape (n, m).
    doubt : callable or None
        The same from a second, looser computation.
    """

    y: NDArray[Any] | None
    origin: str
    relative: bool = True
    uncertainty: float = 0.0
    along: States | None = field(default=None, repr=False)
    doubt: States | None = field(default=None, repr=False)

    def error(self, y: NDArray[Any]) -> float | None:
        """Max norm of the error of a state, relative to the reference where it has not died out."""
        if self.y is None:
            return None
        scale = float(np.max(np.abs(self.y))) if self.relative else 1.0
        return float(np.max(np.abs(y - self.y))) / scale


def as_problem(problem: str | IVP) -> IVP:
    """Return the problem itself, or the one of this name."""
    if isinstance(problem, str):
        return problems.get(problem)
    if not isinstance(problem, IVP):
        raise TypeError(f"expected an IVP or the name of a problem, got {problem!r}")
    return problem


def known_stiff(problem: IVP) -> bool:
    """Whether the library's table of problems says so."""
    return problem.name in problems.names() and problems.entry(problem.name).stiff


def find_reference(problem: IVP, *, stiff: bool | None = None) -> Reference:
    """Return what errors of a problem are measured against.

    Parameters
    ----------
    problem
        If it has neither ``exact`` nor a tabulated state at the end of its interval, a solution
        is computed, with an explicit method first unless the problem is stiff.
    stiff
        Whether it is known to be; by default what the table of problems says.

    Examples
    --------
    >>> find_reference(problems.get("kepler")).origin
    'the exact solution'
    >>> mine = IVP(lambda t, y: -(y**3), [1.0], (0.0, 1.0))
    >>> reference = find_reference(mine)
    >>> bool(reference.error(np.array([3**-0.5])) < 1e-11)  # y = (1 + 2t)^(−1/2)
    True
    """
    stiff = known_stiff(problem) if stiff is None else stiff
    t1 = problem.t_span[1]
    if problem.exact is not None:
        end = np.atleast_1d(np.asarray(problem.exact(t1)))
        return _as_reference(problem, end, "the exact solution", along=_exact_along(problem))
    known = problem.reference(t1)
    along, doubt = _computed_along(problem, stiff, 1.0), _computed_along(problem, stiff, SPREAD)
    if known is not None:
        digits = problems.entry(problem.name).digits if problem.name in problems.names() else 16
        words = f"a reference of {digits} digits" if digits < 16 else "a reference of many digits"
        error = 10.0 ** (1 - digits)
        return _as_reference(problem, known, words, error, along, doubt)
    return _computed(problem, stiff, along, doubt)


def error_growth(problem: IVP, stiff: bool | None = None) -> float:
    """Return by how much the problem itself magnifies a small relative error of its start, ≥ 1.

    Round-off that is made early on grows as any other error does: in Kepler's problem with time,
    in Arenstorf's a thousandfold.

    Examples
    --------
    >>> decay = IVP(lambda t, y: -y, [1.0], (0.0, 5.0))
    >>> unstable = IVP(lambda t, y: 3 * (y - np.cos(t)) - np.sin(t), [1.0], (0.0, 2 * np.pi))
    >>> round(error_growth(decay), 3), 1e8 < error_growth(unstable) < 2e8
    (1.0, True)
    """
    if problem.mass is not None or problem.events or np.iscomplexobj(problem.y0):
        return 1.0  # errors of a start that violates constraints, or of switching, say nothing
    stiff = known_stiff(problem) if stiff is None else stiff
    size = float(np.max(np.abs(problem.y0))) or 1.0
    # A fixed pattern of signs: no symmetric disturbance that an invariant could hide.
    signs = np.where(np.arange(problem.n) % 3 == 1, -1.0, 1.0)
    moved = problem.with_(y0=problem.y0 + DISTURBANCE * size * signs)
    _, first = solved_tightly(problem, stiff, LOOSE_RTOL)
    _, second = solved_tightly(moved, stiff, LOOSE_RTOL)
    if not (first.success and second.success):
        return 1.0
    scale = float(np.max(np.abs(first.y[:, -1])))
    apart = float(np.max(np.abs(first.y[:, -1] - second.y[:, -1])))
    return max(1.0, apart / (DISTURBANCE * scale)) if scale > VANISHED * size else 1.0


def _as_reference(
    problem: IVP,
    y: Any,
    origin: str,
    uncertainty: float = 0.0,
    along: States | None = None,
    doubt: States | None = None,
) -> Reference:
    y = np.atleast_1d(np.asarray(y))
    size, start = float(np.max(np.abs(y))), float(np.max(np.abs(problem.y0)))
    return Reference(y, origin, size > VANISHED * start, uncertainty, along, doubt)


def _exact_along(problem: IVP) -> States:
    """Evaluate ``exact`` at many times: at once if it can, else one by one."""
    exact: Any = problem.exact  # declared for one time; many take a vector as well

    def along(times: Array) -> NDArray[Any]:
        with contextlib.suppress(Exception):  # written for one time: try that below
            values = np.asarray(exact(times))
            ends = np.array([np.atleast_1d(exact(t)) for t in (times[0], times[-1])]).T
            if values.shape == (problem.n, times.size) and np.array_equal(values[:, [0, -1]], ends):
                return values
        return np.array([np.atleast_1d(exact(t)) for t in times]).T

    return along


# -------------------------------------------------------------------- computed references


def solved_tightly(problem: IVP, stiff: bool, rtol: float, **options: Any) -> tuple[str, Solution]:
    """Solve with a tight tolerance; returns the name of the method, too.

    An explicit method comes first, unless the problem is stiff or has a mass matrix.
    """
    size = float(np.max(np.abs(problem.y0))) or 1.0
    options |= {"rtol": rtol, "atol": ATOL_OVER_RTOL * rtol * size}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if problem.mass is None and not stiff:
            solution = solve(problem, method="DOP853", max_steps=MAX_STEPS // 2, **options)
            if solution.success:
                return "DOP853", solution
        return "RadauIIA5", solve(problem, method="RadauIIA5", max_steps=MAX_STEPS, **options)


def _computed(problem: IVP, stiff: bool, along: States, doubt: States) -> Reference:
    name, fine = solved_tightly(problem, stiff, TIGHT_RTOL)
    if not fine.success:
        return Reference(None, f"no reference is known and none could be computed: {fine.message}")
    _, coarse = solved_tightly(problem, name != "DOP853", SPREAD * TIGHT_RTOL)
    found = _as_reference(problem, fine.y[:, -1].copy(), "")
    difference = found.error(coarse.y[:, -1]) if coarse.success else None
    trust = "with no second run to check it"
    if difference is not None:
        trust = f"which a second run confirms to {max(difference, 1e-15):.0e}"
    origin = f"a solution by {name} with rtol = {TIGHT_RTOL:g}, {trust} (none is tabulated)"
    # The looser run has nearly all of the difference, so that this is on the safe side.
    uncertainty = float("inf") if difference is None else difference
    return Reference(found.y, origin, found.relative, uncertainty, along, doubt)


def _computed_along(problem: IVP, stiff: bool, factor: float) -> States:
    def along(times: Array) -> NDArray[Any]:
        # Steps end on the times asked for: an interpolant would be less accurate.
        _, solution = solved_tightly(problem, stiff, factor * TIGHT_RTOL, tstops=times)
        if not solution.success:
            raise ValueError(f"no reference along the solution: {solution.message}")
        ahead = 1.0 if problem.t_span[1] >= problem.t_span[0] else -1.0
        nearest = np.searchsorted(ahead * solution.t, ahead * times)
        return np.asarray(solution.y[:, np.clip(nearest, 0, solution.t.size - 1)])

    return along
