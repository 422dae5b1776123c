"""``method="auto"``: the default of ``solve``."""

from __future__ import annotations

from ...problem import IVP
from ...stepping.engine import Options, Stepper
from .choice import must_be_implicit, stiff_name
from .engine import AutomaticEngine, bound_by_name

__all__ = ["Automatic"]


class Automatic:
    """Choose the method by the problem, and change it on the way where the problem turns stiff.

    A run begins with an explicit pair (DOP853, Tsit5 at loose tolerances) that watches for
    stiffness at no cost. If stability limits its steps, a stiff method goes on (BDF; Radau IIA for
    tight tolerances, oscillations and higher index), and an explicit one again where the stiffness
    ends. Differential-algebraic problems are given to the stiff method at once.
    ``Solution.phases`` tells which method was used when.

    With a fixed step it is DOPRI5.

    Examples
    --------
    >>> from integrators import problems, solve
    >>> [phase.method for phase in solve(problems.get("van_der_pol_100")).phases]
    ['RadauVariable']
    >>> [phase.method for phase in solve(problems.get("kepler")).phases]
    ['DOP853']
    """

    name = "auto"

    def bind(self, problem: IVP, options: Options) -> Stepper:
        """Bind the choice to a problem."""
        if options.fixed:
            return bound_by_name("DOPRI5", problem, options)
        if must_be_implicit(problem):
            return bound_by_name(stiff_name(problem, options), problem, options)
        return AutomaticEngine(problem, options)

    def __repr__(self) -> str:
        return "Automatic()"
