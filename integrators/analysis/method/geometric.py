"""Geometric properties: symplectic, symmetric, conserving; adjoint and composed methods.

A Runge–Kutta method conserves every quadratic invariant, and is symplectic on Hamiltonian
problems, if (:cite:`hairer2006`, IV.2 and VI.4)

    bᵢaᵢⱼ + bⱼaⱼᵢ − bᵢbⱼ = 0   for all i, j;                                                  (1)

for irreducible methods this is also necessary. The *adjoint* of a method Φ_h is Φ*_h = Φ₋ₕ⁻¹, with

    a*ᵢⱼ = b_{s+1−j} − a_{s+1−i,s+1−j},    b*ⱼ = b_{s+1−j},    c*ᵢ = Σb − c_{s+1−i}             (2)

(ibid., V.2). A method that equals its adjoint, up to the numbering of stages, is symmetric, and
then time-reversible: stepping back retraces the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from ...tableau import Tableau
from ...tableau.exact import DIGITS, Number, parse, to_decimal, uncertainty
from ..exact.arithmetic import minus, plus, times, total
from .families.partitioned import symmetry_of, symplecticity_of
from .reducibility import irreducible
from .stability.nonlinear import nonlinear_matrix
from .verdict import Verdict, as_halves, as_tableau

__all__ = ["adjoint", "compose", "quadratic_invariants", "symmetry", "symplecticity"]


# ---------------------------------------------------------------------- verdicts


def symplecticity(method: Any) -> Verdict:
    """Decide whether a method is symplectic, Eq. (1).

    Parameters
    ----------
    method
        A tableau or the name of a scheme.

    Returns
    -------
    Verdict
        With the ``matrix`` of Eq. (1), and where it is not zero the ``entry`` that is largest.

    Examples
    --------
    >>> print(symplecticity("ImplicitMidpoint"))
    symplectic: yes (bᵢaᵢⱼ + bⱼaⱼᵢ = bᵢbⱼ for all i, j)
    >>> print(symplecticity("Trapezoid"))
    symplectic: no (bᵢaᵢⱼ + bⱼaⱼᵢ − bᵢbⱼ = -0.25 for i = j = 1)
    """
    if (found := as_halves(method)) is not None:
        return symplecticity_of(found)
    return _zero_matrix("symplectic", method)


def quadratic_invariants(method: Any) -> Verdict:
    """Decide whether a method conserves all quadratic invariants, Eq. (1).

    Parameters
    ----------
    method
        A tableau or the name of a scheme.

    Notes
    -----
    Linear invariants are conserved by every Runge–Kutta method.

    Examples
    --------
    >>> bool(quadratic_invariants("Gauss2")), bool(quadratic_invariants("RK4"))
    (True, False)
    """
    return _zero_matrix("conserves quadratic invariants", method)


def _zero_matrix(name: str, method: Any) -> Verdict:
    tableau = irreducible(method)
    M, room = nonlinear_matrix(tableau)
    s = tableau.stages
    sizes = {(i, j): abs(M[i][j]) for i in range(s) for j in range(i + 1)}
    (i, j), largest = max(sizes.items(), key=lambda item: (item[1], -item[0][0], -item[0][1]))
    certificate: dict[str, Any] = {"matrix": M, "slack": float(room)}
    if largest <= room:
        reason = "bᵢaᵢⱼ + bⱼaⱼᵢ = bᵢbⱼ for all i, j"
        return Verdict(name, True, reason, certificate, proved=room < 1e-40)
    certificate["entry"] = (j + 1, i + 1)
    where = f"i = j = {i + 1}" if i == j else f"i = {j + 1}, j = {i + 1}"
    reason = f"bᵢaᵢⱼ + bⱼaⱼᵢ − bᵢbⱼ = {float(M[i][j]):.6g} for {where}"
    return Verdict(name, False, reason, certificate)


def symmetry(method: Any) -> Verdict:
    """Decide whether a method is symmetric (time-reversible): equal to its adjoint.

    Parameters
    ----------
    method
        A tableau or the name of a scheme.

    Returns
    -------
    Verdict
        With the ``partners`` of stages 1 … s under time reversal, and the ``adjoint``.

    Examples
    --------
    >>> print(symmetry("LobattoIIIA3"))
    symmetric (time-reversible): yes (it is its own adjoint; stages pair as 1–3, 2)
    >>> bool(symmetry("RadauIIA3"))
    False
    """
    if (found := as_halves(method)) is not None:
        return symmetry_of(found)
    tableau = irreducible(method)
    other = adjoint(tableau)
    name = "symmetric (time-reversible)"
    delta = max(uncertainty(x) for x in tableau._coefficients())
    largest = max(1.0, *(abs(float(x)) for x in tableau._coefficients()))
    tolerance = 8 * delta * largest * tableau.stages
    permutation = _matching(tableau, other, tolerance)
    proved = delta == 0 or tolerance < 1e-40
    if permutation is not None:
        partners = tuple(tableau.stages - k for k in permutation)  # Eq. (2) reverses them
        pairs = [(i, k) for i, k in enumerate(partners, start=1) if i <= k]
        shown = ", ".join(f"{i}–{k}" if i < k else str(i) for i, k in pairs)
        reason = f"it is its own adjoint; stages pair as {shown}"
        return Verdict(name, True, reason, {"partners": partners, "adjoint": other}, proved)
    return Verdict(name, False, _asymmetry(tableau, other, tolerance), {"adjoint": other})


def _asymmetry(tableau: Tableau, other: Tableau, tolerance: float) -> str:
    mine, theirs = (sorted(t.c, key=float) for t in (tableau, other))
    for x, y in zip(mine, theirs):
        if abs(float(x) - float(y)) > tolerance + 1e-15:
            missing = 1 - float(x)
            return f"there is a stage at c = {float(x):.4g}, but none to match it at {missing:.4g}"
    return "no order of the stages turns the method into its adjoint"


def _matching(one: Tableau, other: Tableau, tolerance: float) -> list[int] | None:
    """Stage numbers π with one[i] = other[π(i)], in coefficients as well, or None."""
    exact = tolerance == 0
    convert: Any = (lambda x: x) if exact else to_decimal
    A, B = ([[convert(a) for a in row] for row in t.A] for t in (one, other))
    heads = [[(convert(x), convert(y)) for x, y in zip(t.b, t.c)] for t in (one, other)]
    s = one.stages

    def equal(x: Any, y: Any) -> bool:
        return bool(x == y) if exact else abs(float(x - y)) <= tolerance

    candidates = [
        [
            k
            for k in range(s)
            if all(equal(x, y) for x, y in zip(heads[0][i], heads[1][k]))
            and equal(A[i][i], B[k][k])
        ]
        for i in range(s)
    ]
    chosen: list[int] = []

    def extend() -> bool:
        i = len(chosen)
        if i == s:
            return True
        for k in candidates[i]:
            if k in chosen:
                continue
            if all(
                equal(A[i][j], B[k][chosen[j]]) and equal(A[j][i], B[chosen[j]][k])
                for j in range(i)
            ):
                chosen.append(k)
                if extend():
                    return True
                chosen.pop()
        return False

    with localcontext(prec=DIGITS + 10):
        return chosen if extend() else None


# ---------------------------------------------------------------------- new methods from old


def adjoint(method: Any) -> Tableau:
    """Return the adjoint method, Eq. (2).

    Parameters
    ----------
    method
        A tableau or the name of a scheme; embedded weights are dropped.

    Examples
    --------
    >>> print(adjoint("ExplicitEuler"))
    1 | 1
    --+--
      | 1
    """
    tableau = as_tableau(method)
    s = tableau.stages
    with localcontext(prec=DIGITS + 10):
        A = [[minus(tableau.b[s - 1 - j], tableau.A[s - 1 - i][s - 1 - j]) for j in range(s)]
             for i in range(s)]  # fmt: skip
        end = total(tableau.b)
        c = [minus(end, x) for x in reversed(tableau.c)]
    return Tableau(
        A,
        tableau.b[::-1],
        c,
        name=f"adjoint of {tableau.name}" if tableau.name else "",
        reference=tableau.reference,
        check=False,
    )


def compose(*methods: Any, steps: Sequence[Any] | None = None, name: str = "") -> Tableau:
    """Return the method that takes steps of several methods one after the other.

    Parameters
    ----------
    *methods
        Tableaux or names of schemes, in the order in which they are applied.
    steps
        Fraction of the whole step that each of them takes: numbers or strings as for a tableau.
        By default all are equal.
    name
        Name of the new tableau; by default made from the old ones.

    Examples
    --------
    Half a step of the explicit and half a step of the implicit Euler method are the trapezoidal
    rule, in the other order the implicit midpoint rule.

    >>> from integrators import catalogue
    >>> irreducible(compose("ExplicitEuler", "ImplicitEuler")) == catalogue.get("Trapezoid")
    True
    >>> compose("ImplicitEuler", "ExplicitEuler").order
    2
    """
    tableaux = [as_tableau(method) for method in methods]
    if not tableaux:
        raise ValueError("compose needs at least one method, got none")
    if steps is None:
        steps = [Fraction(1, len(tableaux))] * len(tableaux)
    fractions = [parse(x) for x in steps]
    if len(fractions) != len(tableaux):
        raise ValueError(
            f"compose needs one step for each method: {len(tableaux)} methods, "
            f"{len(fractions)} steps"
        )
    if any(not np.isfinite(float(x)) for x in fractions):
        raise ValueError(f"steps must be finite numbers, got {', '.join(map(str, steps))}")
    A: list[list[Number]] = []
    b: list[Number] = []
    c: list[Number] = []
    start: Number = Fraction(0)
    with localcontext(prec=DIGITS + 10):
        for tableau, share in zip(tableaux, fractions):
            for row, node in zip(tableau.A, tableau.c):
                A.append([*b, *(times(share, a) for a in row)])
                c.append(plus(start, times(share, node)))
            b = [*b, *(times(share, x) for x in tableau.b)]
            start = plus(start, times(share, total(tableau.b)))
        s = len(b)
        full = [[*row, *[Fraction(0)] * (s - len(row))] for row in A]
    label = name or " ∘ ".join(t.name or "unnamed" for t in reversed(tableaux))
    return Tableau(full, b, c, name=label, check=False)
