"""What a general differential-algebraic system of the library is, and the list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from integrators.dae.general import DAE, DAEProblem

__all__ = ["CASES", "EXTENDED", "TEST_SET", "Case", "register"]

#: Begun by W. M. Lioen & J. J. B. de Swart at CWI, Amsterdam (1998).
TEST_SET = "F. Mazzia & C. Magherini, Test Set for IVP Solvers, release 2.4 (2008), "
EXTENDED = "Taylor series of the DAE with 64 bits of mantissa on two meshes: "


@dataclass(frozen=True, eq=False)
class Case:
    """A system, a start, and what is known of it.

    Attributes
    ----------
    system
        The equations.
    t_span
        Interval of a usual run.
    index, freedoms
        Structural index and number of freedoms, None where the system is singular.
    source
        Where it comes from.
    fixed, guess
        Values at the start.
    converted
        Whether its structure misleads and equations have to be rewritten.
    reference
        A time, and values of unknowns and derivatives there.
    provenance
        Who computed the reference, and how.
    stops
        Times at which an input has a corner: give them to ``solve`` as ``tstops``.
    """

    system: DAE
    t_span: tuple[float, float]
    index: int | None
    freedoms: int | None
    source: str
    fixed: Mapping[str, float] = field(default_factory=dict)
    guess: Mapping[str, float] = field(default_factory=dict)
    converted: bool = False
    reference: tuple[float, Mapping[str, float]] | None = None
    provenance: str = ""
    stops: tuple[float, ...] = ()

    def problem(self, road: str | None = None, t_end: float | None = None) -> DAEProblem:
        """Return the problem of a road, from the case's start."""
        t0, t1 = self.t_span
        start = self.system.consistent(t0, self.fixed, self.guess)
        return self.system.problem(start, (t0, t1 if t_end is None else t_end), road)


CASES: dict[str, Callable[..., Case]] = {}


def register(function: Callable[..., Case]) -> Callable[..., Case]:
    """Put a function that returns a case on the list, under its name."""
    CASES[function.__name__] = function
    return function
