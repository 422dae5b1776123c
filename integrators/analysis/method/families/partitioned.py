"""Methods for y = (q, v) on one page: orders, and whether they are symplectic and symmetric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....tableau.partitioned import Nystrom, Partitioned, Splitting
from ..page import Page, headline
from ..verdict import Measure, Verdict, as_halves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PartitionedReport", "partitioned_report", "symmetry_of", "symplecticity_of"]

Method = Splitting | Nystrom | Partitioned
FINEST = 4000  # points at which the trace of an oscillation's matrix is looked at
LONGEST = 20.0  # as far as h·ω is looked at
KINDS: dict[type, str] = {Splitting: "splitting", Nystrom: "Nyström", Partitioned: "partitioned"}
SHOWN = 0.1  # h·ω of the oscillation whose energy is drawn


def symplecticity_of(method: Method) -> Verdict:
    """Whether steps are symplectic maps of (q, v)."""
    name = "symplectic"
    if isinstance(method, Splitting):
        reason = "kicks and drifts are flows of the Hamiltonians V(q) and T(v)"
        return Verdict(name, True, reason)
    exact = method.slack < 1e-40
    if isinstance(method, Nystrom):
        formula = "bᵢ = b'ᵢ(1 − cᵢ) and b'ᵢ(bⱼ − aᵢⱼ) = b'ⱼ(bᵢ − aⱼᵢ)"
    else:
        formula = "bᵢâᵢⱼ + bⱼaⱼᵢ = bᵢbⱼ"
    holds = method.is_symplectic
    reason = f"{formula} for all i, j" if holds else f"not {formula} for all i, j"
    return Verdict(name, holds, reason, proved=exact or not holds)


def symmetry_of(method: Method) -> Verdict:
    """Whether a step backwards undoes a step."""
    name = "symmetric (time-reversible)"
    if isinstance(method, Nystrom):
        return Verdict(name, False, "an explicit Nyström method with stages in order is not")
    if isinstance(method, Splitting):
        reason = "kicks and drifts read the same backwards"
    else:
        reason = "stages 1 … s, taken from the end, are the same in both tableaux"
    holds = method.is_symmetric
    return Verdict(name, holds, reason if holds else f"not so that {reason}")


def oscillation_matrix(method: Method, z: float) -> NDArray[np.float64]:
    """What a step makes of (q, v/ω) for q'' = −ω² q with hω = z.

    Examples
    --------
    >>> from integrators import catalogue
    >>> M = oscillation_matrix(catalogue.entry("StormerVerlet").method, 0.5)
    >>> round(float(np.linalg.det(M)), 14), round(float(np.trace(M)), 14)
    (1.0, 1.75)
    """
    one = np.eye(2)  # rows: what q and v are made of
    if isinstance(method, Splitting):
        q, v = one[0].copy(), one[1].copy()
        for kick, drift in zip(method.kicks, method.drifts):
            v = v - float(kick) * z * q
            q = q + float(drift) * z * v
        return np.array([q, v])
    if isinstance(method, Nystrom):
        c, b, rate = (
            np.array([float(x) for x in row]) for row in (method.c, method.b, method.b_rate)
        )
        A = np.array([[float(x) for x in row] for row in method.A])
        stages = np.ones(len(c))[:, None] * one[0] + c[:, None] * z * one[1]
        forces = -np.linalg.solve(np.eye(len(c)) + z * z * A, stages)
        return np.array([one[0] + z * one[1] + z * z * b @ forces, one[1] + z * rate @ forces])
    A, second, b, _ = method.arrays
    s = len(b)
    system = np.block([[np.eye(s), -z * A], [z * second, np.eye(s)]])
    start = np.vstack([np.outer(np.ones(s), one[0]), np.outer(np.ones(s), one[1])])
    stages = np.linalg.solve(system, start)
    q, v = stages[:s], stages[s:]
    return np.array([one[0] + z * b @ v, one[1] - z * b @ q])


def oscillation_limit(method: Method) -> Measure:
    """Largest hω up to which an oscillation stays bounded.

    Examples
    --------
    >>> from integrators import catalogue
    >>> oscillation_limit(catalogue.entry("StormerVerlet").method).text
    '2'
    """
    name = "stable on oscillations up to hω"

    def bounded(z: float) -> bool:
        values = np.abs(np.linalg.eigvals(oscillation_matrix(method, z)))
        return bool(np.max(values) <= 1 + 1e-7)  # two that meet on the circle are found to 1e-8

    if not bounded(1e-2):
        return Measure(name, 0.0, None, "its amplitude grows, or falls, with every step")
    low = high = 1e-2
    for high in np.arange(1, FINEST) * LONGEST / FINEST:
        if not bounded(high):
            break
        low = high
    else:
        return Measure(name, float("inf"), None, f"as far as can be seen, to {LONGEST:g}")
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if bounded(middle) else (low, middle)
    return Measure(name, float(f"{low:.5g}"), None, "by the eigenvalues of a step")


@dataclass(frozen=True, repr=False)
class PartitionedReport(Page):
    """What :func:`partitioned_report` found; printed, it is a page of text.

    ``verdicts`` has the keys "symplectic" and "symmetric", ``measures`` "oscillation".
    """

    method: Method
    verdicts: dict[str, Verdict]
    measures: dict[str, Measure]

    @property
    def title(self) -> str:
        """Name, kind and order in one line."""
        return headline(self.method, KINDS[type(self.method)])

    def order_lines(self) -> list[str]:
        """What there is to say about the order."""
        method = self.method
        if isinstance(method, Splitting):
            return [
                f"order {method.order} on separable problems q' = f(t, v), v' = g(t, q)",
                f"order {method.nystrom_order} on q'' = g(t, q)",
            ]
        if isinstance(method, Nystrom):
            pair = method.embedded_order
            lines = [f"order {method.order} on q'' = g(t, q)"]
            return lines if pair is None else [*lines, f"embedded method of order {pair}"]
        return [f"order {method.order} on every problem y = (q, v)"]

    def figure(self) -> Figure:
        """Draw the energy error of an oscillation along a thousand steps."""
        from ...plot.oscillation import energy_error

        M = oscillation_matrix(self.method, SHOWN)
        state, energies = np.array([1.0, 0.0]), []
        for _ in range(1000):
            state = M @ state
            energies.append(float(state @ state) - 1.0)
        return energy_error(energies, SHOWN, self.title)

    def __str__(self) -> str:
        lines = [*self.order_lines(), *map(str, self.verdicts.values())]
        return "\n".join([*self.heading(), "", *lines, *map(str, self.measures.values())])


def partitioned_report(method: Any) -> PartitionedReport:
    """Analyse a method for y = (q, v).

    Parameters
    ----------
    method
        A :class:`~integrators.Splitting`, :class:`~integrators.Nystrom` or
        :class:`~integrators.Partitioned`, or the name of one.

    Examples
    --------
    >>> print(partitioned_report("PositionVerlet"))
    PositionVerlet: splitting, 1 stage, order 2
    ===========================================
    source: verlet1967
    <BLANKLINE>
    order 2 on separable problems q' = f(t, v), v' = g(t, q)
    order 2 on q'' = g(t, q)
    symplectic: yes (kicks and drifts are flows of the Hamiltonians V(q) and T(v))
    symmetric (time-reversible): yes (kicks and drifts read the same backwards)
    stable on oscillations up to hω: 2 (by the eigenvalues of a step)
    """
    found = as_halves(method)
    if found is None:
        raise TypeError(
            "expected a Splitting, Nystrom or Partitioned method or the name of one, such as "
            f"'StormerVerlet'; got {method!r}"
        )
    verdicts = {"symplectic": symplecticity_of(found), "symmetric": symmetry_of(found)}
    return PartitionedReport(found, verdicts, {"oscillation": oscillation_limit(found)})
