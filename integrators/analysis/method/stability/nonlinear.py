"""Nonlinear stability: algebraic stability, B- and AN-stability.

On contractive problems, ⟨f(y) − f(z), y − z⟩ ≤ 0, two solutions do not drift apart. A method
keeps this for every step size (B-stability) if it is *algebraically stable*: all bᵢ ≥ 0 and

    M = BA + AᵀB − bbᵀ   is positive semidefinite, B = diag(b)                               (1)

(:cite:`hairer1996`, IV.12); for irreducible methods the two are equivalent (Hundsdorfer and
Spijker). On y' = λ(t)y with Re λ ≤ 0 a step multiplies by

    K(Z) = 1 + bᵀZ(I − AZ)⁻¹𝟙 ,   Z = diag(z₁ … z_s),  zᵢ = h λ(t + cᵢh),                    (2)

and AN-stability asks for |K(Z)| ≤ 1 whenever all Re zᵢ ≤ 0 and equal nodes have equal zᵢ. It
equals algebraic stability if all nodes differ.

Semidefiniteness is decided by elimination in fractions; what the digits of the coefficients leave
open is added to the diagonal first.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....tableau import Tableau
from ....tableau.exact import to_decimal, uncertainty
from ..reducibility import _numbered, irreducible
from ..verdict import Verdict, as_tableau
from .linear import i_stability

__all__ = ["algebraic_stability", "an_stability", "nonlinear_matrix"]

Matrix = list[list[Fraction]]

_SETTLED = 1e-40
_SAMPLES = 4000
"""Points of the search that AN-stability of confluent methods needs."""


def algebraic_stability(method: Any) -> Verdict:
    """Decide whether a method is algebraically stable, hence B-stable, Eq. (1).

    Parameters
    ----------
    method
        A tableau or the name of a scheme; it is reduced to its irreducible form first.

    Returns
    -------
    Verdict
        Its certificate has ``M``, its ``eigenvalues``, ``b``, and where M is indefinite a
        ``direction`` v with vᵀMv < 0.

    Examples
    --------
    >>> bool(algebraic_stability("RadauIIA3"))
    True
    >>> print(algebraic_stability("Trapezoid"))
    algebraically stable (B-stable): no (M has the eigenvalue -0.25)
    """
    tableau = irreducible(method)
    M, room = nonlinear_matrix(tableau)
    b = [_exact(x) for x in tableau.b]
    open_b = [abs(x) * Fraction(uncertainty(y)) for x, y in zip(b, tableau.b)]
    M_double = np.array([[float(x) for x in row] for row in M])
    values, vectors = np.linalg.eigh(M_double)
    certificate: dict[str, Any] = {"M": M, "eigenvalues": values, "b": tableau.b}
    name, proved = "algebraically stable (B-stable)", room < _SETTLED
    for i, (x, slack) in enumerate(zip(b, open_b), start=1):
        if x < -slack:
            certificate["negative weight"] = i
            return Verdict(name, False, f"b[{i}] = {float(x):.6g} is negative", certificate)
    if not _is_semidefinite(M, room):
        certificate["direction"] = vectors[:, 0]
        reason = f"M has the eigenvalue {values[0]:.6g}"
        return Verdict(name, False, reason, certificate)
    if all(abs(x) <= room for row in M for x in row):
        reason = "all b ≥ 0, and M = 0"
    else:
        reason = f"all b ≥ 0, and M is positive semidefinite of rank {_rank(values)}"
    return Verdict(name, True, reason, certificate, proved)


def an_stability(method: Any) -> Verdict:
    """Decide whether |K(Z)| ≤ 1 for all Z in the left half plane, Eq. (2).

    Parameters
    ----------
    method
        A tableau or the name of a scheme.

    Returns
    -------
    Verdict
        Where it fails the certificate has the diagonal ``Z`` and ``|K(Z)|`` > 1. For a confluent
        method that is not algebraically stable a positive answer rests on a search and is not
        ``proved``.

    Examples
    --------
    >>> print(an_stability("ImplicitMidpoint"))
    AN-stable: yes (algebraically stable)
    >>> verdict = an_stability("LobattoIIIA3")
    >>> bool(verdict), verdict.certificate["|K(Z)|"] > 1
    (False, True)
    """
    tableau = irreducible(as_tableau(method))
    algebraic = algebraic_stability(tableau)
    if algebraic:
        return Verdict(
            "AN-stable", True, "algebraically stable", algebraic.certificate, algebraic.proved
        )
    groups = _groups_of_equal_nodes(tableau)
    Z = _violation(tableau, groups)
    if Z is not None:
        size = float(abs(_propagation(tableau, Z[None, :])[0]))
        values = [_complex(z) for z in Z[[g[0] for g in groups]]]
        shown = values[0] if len(set(values)) == 1 else f"({', '.join(values)})"
        certificate = {**algebraic.certificate, "Z": Z, "|K(Z)|": size}
        excess = f"{size:.6g}" if size > 1.00001 else f"1 + {size - 1:.1e}"
        reason = f"|K(Z)| = {excess} for z = {shown} at the nodes"
        return Verdict("AN-stable", False, reason, certificate)
    reason = f"nodes coincide, and {_SAMPLES} points of the axis show no |K(Z)| > 1"
    return Verdict("AN-stable", True, reason, algebraic.certificate, proved=False)


def nonlinear_matrix(method: Any) -> tuple[Matrix, Fraction]:
    """Return M of Eq. (1) in fractions, and how far unknown digits can move its eigenvalues.

    Parameters
    ----------
    method
        A tableau or the name of a scheme.

    Examples
    --------
    >>> nonlinear_matrix("ImplicitEuler")
    ([[Fraction(1, 1)]], Fraction(0, 1))
    """
    tableau = as_tableau(method)
    s = tableau.stages
    A = [[_exact(a) for a in row] for row in tableau.A]
    b = [_exact(x) for x in tableau.b]
    M = [[b[i] * A[i][j] + b[j] * A[j][i] - b[i] * b[j] for j in range(s)] for i in range(s)]
    delta = max(uncertainty(x) for x in (*tableau.b, *(a for row in tableau.A for a in row)))
    if delta == 0:
        return M, Fraction(0)
    # |ΔM| ≤ 2δ(|b||a| + |b||a| + |b||b|) entry by entry; s times the largest bounds the norm.
    largest = max(
        abs(b[i] * A[i][j]) + abs(b[j] * A[j][i]) + abs(b[i] * b[j])
        for i in range(s)
        for j in range(s)
    )
    return M, 2 * s * Fraction(delta) * largest


# ---------------------------------------------------------------------- semidefinite matrices


def _is_semidefinite(M: Matrix, room: Fraction) -> bool:
    """Whether M + room·I is positive semidefinite, by symmetric elimination."""
    rest = [[x + (room if i == j else 0) for j, x in enumerate(row)] for i, row in enumerate(M)]
    while rest:
        n = len(rest)
        k = max(range(n), key=lambda i: rest[i][i])
        pivot = rest[k][k]
        if pivot < 0 or min(rest[i][i] for i in range(n)) < 0:
            return False
        if pivot == 0:
            return all(x == 0 for row in rest for x in row)
        others = [i for i in range(n) if i != k]
        rest = [[rest[i][j] - rest[i][k] * rest[k][j] / pivot for j in others] for i in others]
    return True


def _rank(eigenvalues: NDArray[np.float64]) -> int:
    return int(np.sum(eigenvalues > 1e-12 * max(1.0, float(np.max(np.abs(eigenvalues))))))


def _exact(x: Any) -> Fraction:
    return x if isinstance(x, Fraction) else Fraction(to_decimal(x))


# ---------------------------------------------------------------------- AN-stability


def _groups_of_equal_nodes(tableau: Tableau) -> list[list[int]]:
    label = _numbered(tableau.c)
    return [[i for i, m in enumerate(label) if m == k] for k in range(max(label) + 1)]


def _violation(tableau: Tableau, groups: Sequence[Sequence[int]]) -> NDArray[np.complex128] | None:
    """A diagonal Z in the closed left half plane with |K(Z)| > 1, or None if none was found."""
    s, m = tableau.stages, len(groups)
    P = np.zeros((s, m))
    for k, group in enumerate(groups):
        P[list(group), k] = 1
    A, b, _ = tableau.arrays
    M = b[:, None] * A + (b[:, None] * A).T - np.outer(b, b)
    weights, (values, vectors) = P.T @ b, np.linalg.eigh(P.T @ M @ P)
    axis = i_stability(tableau)

    def candidates() -> Any:
        scales = np.geomspace(3.0, 1e-3, 24)[:, None]
        if "y" in axis.certificate:
            yield 1j * np.full((1, m), axis.certificate["y"])
        if weights.min() < 0:  # K ≈ 1 + bᵢzᵢ for a small real zᵢ
            yield -scales * np.eye(m)[np.argmin(weights)] + 0j
        if values[0] < 0:  # |K|² ≈ 1 − ε² vᵀMv at Z = iεv
            yield 1j * scales * vectors[:, 0]
        # K is analytic in each variable: its largest modulus is on the imaginary axes.
        random = np.random.default_rng(1)
        sizes = 10.0 ** random.uniform(-3, 3, (_SAMPLES, m))
        yield 1j * sizes * random.choice([-1.0, 1.0], (_SAMPLES, m))

    for points in candidates():
        Z = points @ P.T
        growth = np.abs(_propagation(tableau, Z))
        k = int(np.argmax(growth))
        if growth[k] > 1 + 1e-9:  # well above the rounding of a solve with moderate numbers
            found: NDArray[np.complex128] = Z[k]
            return found
    return None


def _propagation(tableau: Tableau, Z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """K(Z) for each row of Z."""
    A, b, _ = tableau.arrays
    s = tableau.stages
    stages = np.linalg.solve(np.eye(s) - A * Z[:, None, :], np.ones((len(Z), s, 1)))[..., 0]
    return np.asarray(1 + (Z * stages) @ b, dtype=np.complex128)


def _complex(z: complex) -> str:
    if z.imag == 0:
        return f"{z.real:.3g}"
    return f"{z.imag:.3g}i" if z.real == 0 else f"{z.real:.3g}{z.imag:+.3g}i"
