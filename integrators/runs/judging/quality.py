"""What a run is worth: whether what the problem keeps was kept, and how errors grew on the way.

An integrator controls local errors and knows nothing of what becomes of them. The problem often
knows more: invariants, constraints, the books of energy. How far they drifted, relative to their
scale and to what the tolerance allows, is looked at after the run, at some of its states, when
``Solution.message`` or ``Solution.quality`` is first asked for; runs that nobody asks about pay
nothing. A drift out of proportion is told in the message; status and success stay.

Invariants do not see errors along the motion. Two things do: the growth of errors, from Jacobians
along the run (:attr:`Quality.sensitivity`), and a second run with a tighter tolerance
(:func:`global_error`, for ``solve(check="global")``).

Drift and growth are suspicions: how much of either a good run may have depends on the mechanism
(an energy may swing far where positions do not) and on how much better a method is than its
tolerance. Where a second run is cheap, it decides; where it is not, what is suspected counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .growth import sensitivity, sizes
from .watches import ALWAYS, Watch, watches_of

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = [
    "GlobalError",
    "Quality",
    "global_error",
    "without_records",
]

Array = NDArray[np.float64]

#: Error at the end, in tolerances, that local errors as large as allowed would make, above which a
#: run counts as sensitive: the digits asked for are not to be had from this tolerance. Where that
#: error is this part of the solution, no digit is, and the message says so.
SENSITIVE = 200.0
LOST = 0.1

#: Tighter tolerance, or shorter step, of the second run; how tight and how much tighter it is at
#: least; and what error, in tolerances, is told.
TIGHTER, SHORTER = 100.0, 2.0
TIGHTEST, LEAST_TIGHTER = 1e-12, 10.0
FAR_OFF = 30.0

#: Parts of the allowed drift, and growth, above which a second run decides.
SUSPECTED_DRIFT, SUSPECTED_GROWTH = 0.3, 50.0
#: Part of a drift that is left in the second run if it is none of the integration.
UNREDUCED = 0.5
#: What the run may have cost for that, in operations, and the second one more than the first; and
#: how many operations an evaluation costs where modes change.
MOST_OPERATIONS, MOST_LONGER, WITH_MODES = 3e8, 20, 40_000


@dataclass(frozen=True)
class GlobalError:
    """Errors along a run, from a second one with a tighter tolerance.

    Attributes
    ----------
    t : (m,)
        Times at which both are known.
    error : (n, m)
        First run less second.
    relative : (m,)
        Largest component of it, in parts of the component's largest size along the run (of the
        largest of all, if that is a thousand times larger).
    source
        What the second run was, in words.
    """

    t: Array
    error: Array
    relative: Array
    source: str

    @property
    def end(self) -> float:
        """The relative error at the end."""
        return float(self.relative[-1]) if self.relative.size else float("nan")


class Quality:
    """What can be said of a run; see :attr:`Solution.quality`.

    Attributes
    ----------
    watches : tuple of Watch
        What was watched; empty if the problem keeps nothing that is known.
    rtol : float or None
        The tolerance asked for; None for a fixed step.
    global_error : GlobalError or None
        With ``solve(check="global")``.

    Examples
    --------
    An oscillator that a damping method robs of its energy:

    >>> from integrators import IVP, solve
    >>> energy = lambda t, y: y[0] ** 2 + y[1] ** 2
    >>> swing = IVP(lambda t, y: [y[1], -y[0]], [1.0, 0.0], (0, 10), invariants={"E": energy})
    >>> solve(swing, rtol=1e-8).quality.ok
    True
    >>> print(solve(swing, method="ImplicitEuler", step=0.05).quality.verdict)
    E drifted by 0.39, 0.2 of its scale
    """

    def __init__(
        self,
        solution: Solution,
        rtol: float | None,
        error: GlobalError | None = None,
        again: Callable[..., Solution] | None = None,
        atol: Any = 0.0,
    ) -> None:
        self.rtol, self.global_error, self._again = rtol, error, again
        self._least = np.asarray(atol, dtype=float) / rtol if rtol else 0.0
        self._evaluations, self._has_modes = solution.nfev, bool(solution.modes)
        self._watched_again: tuple[Watch, ...] = ()
        self._problem, self._t, self._y = solution.problem, solution.t, solution.y
        self._steps, self._jumps = solution.nsteps, any(map(len, solution.t_events))
        self.watches = watches_of(solution, rtol)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against the run: what its message says."""
        far, told = self.error_at_end, [w for w in self.watches if not w.ok]
        if far is None:
            found = [str(w) for w in told]
            return (*found, self._grown) if self._is_lost else (*found,)
        asked = ALWAYS / FAR_OFF if self.rtol is None else self.rtol
        if far <= FAR_OFF * asked:
            return tuple(f"{w}{self._as_before(w)}" for w in told if self._as_before(w))
        error = self.global_error
        how = (
            f"a second run with a tolerance tighter by {self._tighter:.0f}"
            if error is None
            else error.source
        )
        said = f"its error at the end is about {far:.1g}, relative ({how})"
        return (*map(str, told), said)

    def _as_before(self, watch: Watch) -> str:
        """What to say of a drift that a tighter tolerance does not reduce; nothing of others."""
        if not np.isfinite(watch.drift):
            return " "
        second = next((w for w in self._watched_again if w.name == watch.name), None)
        if second is None or second.drift < UNREDUCED * watch.drift:
            return ""
        return ", with a tighter tolerance as well: the equations do not keep it"

    @functools.cached_property
    def error_at_end(self) -> float | None:
        """Relative error at the end, from a second run; None where there was none.

        A second run is made on request (``check="global"``), and where something is suspected of a
        run that was cheap. Of a mechanism it is the error of positions, in parts of its size
        (``IVP.distance``), of others the largest of the components.
        """
        if self.global_error is not None:
            return self._apart(self._y[:, -1] - self.global_error.error[:, -1], self.global_error)
        if not self._is_suspect() or not self._is_cheap():
            return None
        longer = min(MOST_LONGER, 3.0 * MOST_OPERATIONS / max(self._operations, 1.0))
        most = int(longer * (self._steps + 50))
        second = self._again(self._tighter, None, most)  # type: ignore[misc]
        if not second.success or second.reached is None:
            return None
        if not all(w.ok for w in self.watches):
            self._watched_again = watches_of(second, self.rtol)
        return self._apart(second.reached[1])

    def _apart(self, right: Array, error: GlobalError | None = None) -> float:
        """How far the end is from where it should be, in parts of what moves."""
        distance = getattr(self._problem, "distance", None)
        if distance is not None:
            return float(distance(self._problem, float(self._t[-1]), self._y[:, -1], right))
        if error is not None:
            return error.end
        count = getattr(self._problem, "compared", len(right))
        return float((np.abs(self._y[:, -1] - right) / sizes(self._y))[:count].max(initial=0.0))

    def _is_suspect(self) -> bool:
        """Whether to look closer, before anything is told.

        At a mechanism always: growth is that of errors of the size of the tolerance, which not
        every step keeps, and loops can be closed, energy be kept at a wrong place. So with
        differential-algebraic equations, of which nobody knows how errors grow.
        """
        if getattr(self._problem, "distance", None) is not None or self._is_algebraic:
            return True
        if any(w.relative > SUSPECTED_DRIFT * w.allowed for w in self.watches):
            return True
        return self._growth > SUSPECTED_GROWTH or self._is_lost

    @property
    def _is_algebraic(self) -> bool:
        """Whether the problem has constraints, or a mass matrix, which may be singular."""
        problem = self._problem
        return hasattr(problem, "compared") or getattr(problem, "mass", None) is not None

    def _is_cheap(self) -> bool:
        """Whether a second run costs little, can tell, and calls nothing that may do more."""
        if self._again is None or self.rtol is None or self._tighter < LEAST_TIGHTER:
            return False
        return _is_repeatable(self._problem) and self._operations <= MOST_OPERATIONS

    @property
    def _tighter(self) -> float:
        """By how much the tolerance of a second run is tighter."""
        return TIGHTER if self.rtol is None else min(TIGHTER, self.rtol / TIGHTEST)

    @property
    def _operations(self) -> float:
        """What the run cost, if f is traced."""
        each = _motion(self._problem).f.operations()["total"]
        return float(self._evaluations * (each + (WITH_MODES if self._has_modes else 0)))

    @functools.cached_property
    def sensitivity(self) -> float | None:
        """Error at the end, in tolerances, if each step made the error that it may make.

        From exact Jacobians at the steps: δ ← Φ δ + ε with Φ = exp(h J) and random ε of the size of
        the tolerance. None if there are no exact Jacobians, or large ones that are no machine code,
        for fixed steps, after jumps, and for output at other times than the steps.
        """
        try:
            run = self._t, self._y, self._steps, self._jumps
            return sensitivity(self._problem, *run, self._least)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            return None

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against the run."""
        return not self.doubts and (self.error_at_end is not None or not self._growth > SENSITIVE)

    @property
    def _growth(self) -> float:
        """The sensitivity, where it is known and the error itself is not."""
        if self.rtol is None or self.global_error is not None:
            return 0.0
        growth = self.sensitivity
        return 0.0 if growth is None else growth

    @property
    def _is_lost(self) -> bool:
        """Whether growth may leave no digit."""
        return self._growth * (self.rtol or 0.0) > LOST

    @property
    def _grown(self) -> str:
        return (
            f"errors grow along it: those that the tolerance allows make about {self._growth:.0e} "
            "tolerances at the end; solve(check='global') tells more"
        )

    @property
    def verdict(self) -> str:
        """What speaks against the run, in words; "nothing speaks against it"."""
        said = list(self.doubts)
        if self.error_at_end is None and self._growth > SENSITIVE and self._grown not in said:
            said.append(self._grown)
        if said:
            return "; ".join(said)
        known = self.watches or self.global_error or self.sensitivity is not None
        return "nothing speaks against it" if known else "nothing is known that could be watched"

    def __repr__(self) -> str:
        return f"<Quality: {self.verdict}>"


# ---------------------------------------------------------------------- a second run


def _is_repeatable(problem: Any) -> bool:
    """Whether a run calls no function that may do more than compute.

    Functions that are not traced are never called behind the back of whoever wrote them: they may
    print, count, or remember what they were called with.
    """
    motion = _motion(problem)
    schedule = getattr(motion, "schedule", None)
    return (
        hasattr(getattr(motion, "f", None), "operations")
        and (schedule is None or schedule.repeatable)
        and not without_records(problem).events
    )


def _motion(problem: Any) -> Any:
    """The equations of motion: of a problem with modes, those of the mode that it names for all."""
    return getattr(problem, "free_motion", problem)


def without_records(problem: Any) -> Any:
    """Return the problem without events that are only looked for: they change nothing."""
    events = getattr(problem, "events", ())
    acting = tuple(e for e in events if e.reset is not None or e.terminal)
    return problem if len(acting) == len(events) else problem.with_(events=acting)


def global_error(
    solution: Solution, again: Callable[[float, Array], Solution], rtol: float | None
) -> GlobalError:
    """Estimate errors along a run.

    Parameters
    ----------
    solution
        The run.
    again
        ``again(factor, times)`` runs the same method with a tolerance tighter, or a step shorter,
        by a factor, and output at these times.
    rtol
        The run's tolerance; None for a fixed step.
    """
    factor = SHORTER if rtol is None else TIGHTER
    times, keep = np.unique(solution.t, return_index=True)
    last = np.append(np.diff(solution.t) != 0.0, True)  # of two states at a jump, that after it
    keep = np.array([k if last[k] else k + 1 for k in keep], dtype=int)
    if solution.t.size > 1 and solution.t[-1] < solution.t[0]:
        times, keep = times[::-1], keep[::-1]
    how = f"a second run with a {'step shorter' if rtol is None else 'tolerance tighter'} by "
    second = again(factor, times)
    known = min(second.t.size, times.size)
    if not second.success:
        how = f"failed: {second.message}; {how}"
    error = solution.y[:, keep[:known]] - second.y[:, :known]
    # Components that a run chooses for itself differ between runs, and mean nothing.
    count = getattr(solution.problem, "compared", len(error))
    relative = (np.abs(error) / sizes(solution.y)[:, None])[:count].max(axis=0, initial=0.0)
    if not second.success:
        relative = np.append(relative, np.nan)[-max(known, 1) :]
    return GlobalError(times[:known], error, relative, f"{how}{factor:g}")
