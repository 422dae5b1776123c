"""Multistep methods: roots, stability regions, and Dahlquist's barriers.

On y' = λy a multistep method is a recursion whose characteristic equation is

    Σᵢ zⁱ πᵢ(ζ) = 0,     z = hλ                                          (1)

(ρ(ζ) − zσ(ζ) = 0 without a predictor; :cite:`hairer1996`, V.1). A point z is in the stability
region if all roots satisfy |ζ| ≤ 1 and those on the circle are simple. A boundary of the region
is part of the *root locus*, the z of all ζ = e^{iθ}: between its pieces the number of roots
outside the circle does not change. So A-stability is decided without rounding: no point of the
locus may have Re z < 0, which is a statement about a polynomial in cos θ, and at z = −1 all roots
must be inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...methods.multistep import Multistep
from ...methods.multistep.names import find_multistep, multistep
from ...methods.multistep.root_condition import inside_circle
from ..exact import polynomial as poly
from .page import Page
from .verdict import Measure, Verdict

__all__ = [
    "MultistepReport",
    "as_multistep",
    "characteristic_roots",
    "in_stability_region",
    "multistep_report",
    "root_locus",
    "zero_stability",
]

Complex = NDArray[np.complex128]

ON_CIRCLE = 1e-12  # roots this close to the circle count as on it
MULTIPLE = 1e-5  # and two of them this close to each other as one
SCAN = 4001  # points of the locus between 0 and π among which extremes are looked for
SAME = 1e-8  # relative
FARTHEST = 1e6  # an interval of stability that reaches beyond is called unlimited
SHORTEST = {"real": 1e-4, "imaginary": 0.05}  # growth is not seen below: |ζ| − 1 is ~ |z|^(p+1)


def as_multistep(method: Any) -> Multistep | None:
    """Return the multistep method that this is, or is the name of; else None."""
    if isinstance(method, str):
        return find_multistep(method)
    return method if isinstance(method, Multistep) else None


def _wanted(method: Any) -> Multistep:
    if isinstance(method, str):
        return multistep(method)
    if not isinstance(method, Multistep):
        raise TypeError(f"expected a Multistep or the name of one, such as 'AB3'; got {method!r}")
    return method


# ---------------------------------------------------------------------- roots


def zero_stability(method: Any) -> Verdict:
    """Decide whether the roots of ρ satisfy the root condition, exactly.

    Parameters
    ----------
    method
        A :class:`~integrators.Multistep`, or the name of one.

    Returns
    -------
    Verdict
        Its certificate has ``roots``: pairs (root, multiplicity).

    Examples
    --------
    >>> print(zero_stability("BDF6"))
    zero-stable: yes (all roots of ρ but 1 are inside: |ζ| ≤ 0.8634)
    >>> from integrators.methods.multistep.names import bdf
    >>> print(zero_stability(bdf(7)))
    zero-stable: no (ρ has a root with |ζ| = 1.022)
    """
    found = _wanted(method)
    roots = _with_multiplicity(found.alpha)
    certificate = {"roots": roots}
    sizes = [(abs(root), times) for root, times in roots]
    if found.is_zero_stable:
        on = sum(times for size, times in sizes if abs(size - 1) <= MULTIPLE)
        inside = max([size for size, _ in sizes if size < 1 - MULTIPLE], default=0.0)
        reason = f"all roots of ρ but 1 are inside: |ζ| ≤ {inside:.4g}"
        if on > 1:
            reason = f"{on} roots of ρ are on the circle, all of them simple"
        return Verdict("zero-stable", True, reason, certificate)
    largest = max(size for size, _ in sizes)
    if largest > 1 + MULTIPLE:
        reason = f"ρ has a root with |ζ| = {largest:.4g}"
    else:
        times = max(times for size, times in sizes if size > 1 - MULTIPLE)
        reason = f"ρ has a root of multiplicity {times} on the circle"
    return Verdict("zero-stable", False, reason, certificate)


def _with_multiplicity(p: tuple[Fraction, ...]) -> tuple[tuple[complex, int], ...]:
    """Roots and their multiplicities, which are found exactly by taking common factors off."""
    found: list[tuple[complex, int]] = []
    rest = poly.trim(p)
    times = 0
    layers = []  # the j-th has each root of multiplicity above j, once
    while len(rest) > 1:
        simple = poly.squarefree(rest)
        layers.append(simple)
        rest = poly.quotient(rest, simple)
    for times, (layer, deeper) in enumerate(pairwise([*layers, (Fraction(1),)]), start=1):
        exactly = poly.quotient(layer, poly.common_factor(layer, deeper))
        roots = np.roots([float(c) for c in exactly[::-1]])
        found += [(complex(root), times) for root in roots]
    return tuple(sorted(found, key=lambda pair: -abs(pair[0])))


def characteristic_roots(method: Any, z: Any) -> Complex:
    """Return the roots ζ of Eq. (1) at one or several z; they are the last axis.

    Where the degree falls (α_k = zβ_k) a root is infinite.

    Examples
    --------
    >>> characteristic_roots("Leapfrog", 0.0).real.round(12)
    array([-1.,  1.])
    """
    found = _wanted(method)
    rows = np.array([[float(c) for c in row] for row in found.stability_polynomials])
    points = np.asarray(z, dtype=np.complex128)
    coefficients = np.polynomial.polynomial.polyval(points.ravel(), rows, tensor=True).T
    k = rows.shape[1] - 1
    lead = coefficients[:, -1]
    companion = np.zeros((points.size, k, k), dtype=np.complex128)
    companion[:, np.arange(1, k), np.arange(k - 1)] = 1.0
    falls = np.abs(lead) < 1e-300
    companion[:, :, -1] = -coefficients[:, :-1] / np.where(falls, 1.0, lead)[:, None]
    companion[falls] = 0.0
    roots = np.linalg.eigvals(companion)
    roots[falls] = np.inf
    order = np.argsort(roots.real, axis=1)
    return np.take_along_axis(roots, order, axis=1).reshape((*points.shape, k))


def in_stability_region(method: Any, z: Any) -> Any:
    """Whether z = hλ is in the stability region, for one or several z.

    Examples
    --------
    >>> in_stability_region("AB2", -0.99), in_stability_region("AB2", -1.01)
    (True, False)
    """
    roots = characteristic_roots(method, z)
    sizes = np.abs(roots)
    stable = (sizes <= 1 + ON_CIRCLE).all(axis=-1)
    on = np.atleast_2d(sizes > 1 - MULTIPLE)
    crowded = np.atleast_1d(stable & (np.atleast_2d(on).sum(axis=-1).reshape(stable.shape) > 1))
    if crowded.any():
        flat = roots.reshape(-1, roots.shape[-1])
        for i in np.flatnonzero(crowded):
            outer = flat[i][on.reshape(flat.shape)[i]]
            apart = np.abs(outer[:, None] - outer[None, :]) + np.eye(len(outer))
            crowded.flat[i] = apart.min() < MULTIPLE
        stable = stable & ~crowded.reshape(stable.shape)
    return bool(stable) if np.ndim(z) == 0 else stable


def root_locus(method: Any, theta: Any = None) -> Complex:
    """Return the points z at which a root of Eq. (1) is e^{iθ}: the boundary locus.

    Parameters
    ----------
    method
        A :class:`~integrators.Multistep`, or the name of one.
    theta
        Angles; by default 721 from 0 to 2π.

    Returns
    -------
    array
        A row for each branch: one for a linear multistep method, m + 1 for P(EC)ᵐE. Points at
        infinity are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> root_locus("AB2", np.pi).real.round(12)  # where the interval of stability ends
    array([-1.])
    """
    found = _wanted(method)
    angles = np.linspace(0.0, 2 * np.pi, 721) if theta is None else np.asarray(theta, dtype=float)
    points = np.exp(1j * angles.ravel())
    rows = [np.polynomial.polynomial.polyval(points, _floats(p)) for p in
            found.stability_polynomials]  # fmt: skip
    if len(rows) == 2:
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (-rows[0] / rows[1])[None, :]
    else:
        branches = len(rows) - 1
        z = np.full((branches, points.size), np.nan + 0j)
        for i, values in enumerate(zip(*rows)):
            roots = np.roots(values[::-1]).astype(np.complex128)
            near = z[:, i - 1] if i else np.zeros(branches, dtype=np.complex128)
            z[: len(roots), i] = _in_the_order_of(roots, near)
    z[~np.isfinite(z)] = np.nan
    return np.asarray(z.reshape((z.shape[0], *angles.shape)))


def _in_the_order_of(roots: Complex, before: Complex) -> Complex:
    """Roots sorted so that each continues the branch that it is nearest to."""
    left, result = list(roots), []
    for place in before[: len(roots)]:
        distances = [abs(r - place) if np.isfinite(place) else abs(r) for r in left]
        result.append(left.pop(int(np.argmin(distances))))
    return np.array(result)


def _floats(p: tuple[Fraction, ...]) -> NDArray[np.float64]:
    return np.array([float(c) for c in p])


# ---------------------------------------------------------------------- regions


def a_stability_of(method: Multistep) -> Verdict:
    """Decide whether the left half plane is in the stability region, exactly."""
    if method.is_explicit:
        reason = "explicit methods have a bounded region"
        return Verdict("A-stable", False, reason, {})
    E = _real_part(method)
    certificate: dict[str, Any] = {"E": E}
    below = poly.point_below_zero(E)
    if below is not None:
        theta = math.acos(float((1 - below) / (1 + below)))
        z = complex(root_locus(method, theta)[0])
        certificate |= {"θ": theta, "z": z}
        reason = f"its boundary passes z = {z.real:.4g} + {z.imag:.4g}i"
        return Verdict("A-stable", False, reason, certificate)
    if not _stable_at_minus_one(method):
        return Verdict("A-stable", False, "a root is not inside the circle at z = −1", certificate)
    reason = "no z of the root locus has Re z < 0, and z = −1 is stable"
    return Verdict("A-stable", True, reason, certificate)


def _stable_at_minus_one(method: Multistep) -> bool:
    """Whether z = −1 is inside, and no root comes from infinity where Re z < 0."""
    at = [a + b for a, b in zip(method.alpha, method.beta)]
    return method.beta[-1] > 0 and inside_circle(at)


def _real_part(method: Multistep) -> poly.Polynomial:
    """(1 + s)ᵏ Re ρ(ζ)σ(ζ̄) at cos θ = (1 − s)/(1 + s): its sign for s ≥ 0 is that of Re z."""
    k = len(method.alpha) - 1
    total: poly.Polynomial = ()
    for d in range(k + 1):
        factor = sum(
            (
                method.alpha[i] * method.beta[j]
                for i in range(k + 1)
                for j in range(k + 1)
                if abs(i - j) == d
            ),
            Fraction(0),
        )
        total = poly.add(total, poly.scaled(_cosine(d, k), factor))
    return total


def _cosine(d: int, k: int) -> poly.Polynomial:
    """(1 + s)ᵏ cos dθ, by Chebyshev's recursion."""
    minus, plus = (Fraction(1), Fraction(-1)), (Fraction(1), Fraction(1))
    before: poly.Polynomial = (Fraction(1),)
    now: poly.Polynomial = minus
    if d == 0:
        now = before
    for _ in range(d - 1):
        twice = poly.scaled(poly.multiply(minus, now), 2)
        squared = poly.multiply(plus, plus)
        before, now = now, poly.add(twice, poly.scaled(poly.multiply(squared, before), -1))
    for _ in range(k - d):
        now = poly.multiply(now, plus)
    return now


def a_alpha_of(method: Multistep) -> Measure:
    """Return the largest α with |arg(−z)| < α in the stability region, in degrees."""
    name = "angle of A(α)-stability"
    if method.is_explicit or not _stable_at_minus_one(method):
        reason = "explicit" if method.is_explicit else "z = −1 is not stable"
        return Measure(name, 0.0, Fraction(0), reason, unit="°")
    if a_stability_of(method):
        return Measure(name, 90.0, Fraction(90), "A-stable", unit="°")
    from scipy.optimize import minimize_scalar

    def angle(theta: float) -> float:
        z = complex(root_locus(method, theta)[0])
        return math.pi - abs(np.angle(z)) if z.real < 0 else math.pi / 2

    angles = np.linspace(0.0, np.pi, SCAN)[1:]
    sampled = [angle(theta) for theta in angles]
    best = int(np.argmin(sampled))
    width = angles[1] - angles[0]
    refined = minimize_scalar(
        angle, bounds=(angles[best] - width, min(angles[best] + width, np.pi)), method="bounded",
        options={"xatol": 1e-12},
    )  # fmt: skip
    alpha = min(float(refined.fun), sampled[best])
    z = complex(root_locus(method, refined.x)[0])
    if alpha < 1e-9:
        return Measure(name, 0.0, Fraction(0), "the boundary meets the negative axis", unit="°")
    reason = f"the boundary is there at z = {z.real:.4g} + {z.imag:.4g}i"
    return Measure(name, math.degrees(alpha), None, reason, {"z": z}, unit="°")


def stability_interval_of(method: Multistep, axis: str) -> Measure:
    """Return the length of the stability interval along an axis."""
    if axis not in SHORTEST:
        raise ValueError(f"expected axis 'real' or 'imaginary', got {axis!r}")
    name = f"{axis} stability interval"
    along = -1.0 if axis == "real" else 1j
    near, far = np.geomspace(SHORTEST[axis], 1.0, 800), np.geomspace(50.0, FARTHEST, 400)
    x = np.concatenate([near, np.linspace(1.0, 50.0, 2000), far])
    stable = in_stability_region(method, along * x)
    if stable.all():
        return Measure(name, math.inf, None, f"stable as far as |z| = {FARTHEST:g} at least")
    first = int(np.argmin(stable))
    if first == 0:
        return Measure(name, 0.0, Fraction(0), "a root leaves the circle at once")
    low, high = x[first - 1], x[first]
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if in_stability_region(method, along * middle) else (low, middle)
    # Found up to what counts as "on the circle"; along the real axis the root is mostly −1.
    at_minus_one = root_locus(method, np.pi)
    for z in at_minus_one if axis == "real" else ():
        if abs(z + low) < SAME * low:
            return Measure(name, -float(z.real), None, "beyond, a root ζ < −1 makes it grow")
    reason = "to 7 digits; beyond, a root with |ζ| > 1 makes it grow"
    return Measure(name, float(f"{low:.7g}"), None, reason)


# ---------------------------------------------------------------------- all of it


@dataclass(frozen=True, repr=False)
class MultistepReport(Page):
    """What is known of a multistep method; prints itself. See :func:`multistep_report`."""

    method: Multistep
    zero_stable: Verdict
    a_stable: Verdict
    a_alpha: Measure
    real_interval: Measure
    imaginary_interval: Measure
    barriers: tuple[str, ...]

    @property
    def title(self) -> str:
        """Name, steps and order in one line."""
        return str(self.method).partition("\n")[0]

    def __str__(self) -> str:
        method = self.method
        lines = [str(method), ""]
        error = method.global_error_constant
        if error is not None and method.is_consistent:
            lines.append(f"error constant C/σ(1): {error}")
        facts = (self.zero_stable, self.a_stable, self.a_alpha)
        lines += [str(fact) for fact in (*facts, self.real_interval, self.imaginary_interval)]
        return "\n".join([*lines, *self.barriers])


def multistep_report(method: Any) -> MultistepReport:
    """Return order, error constants, stability, and where it stands with Dahlquist's barriers.

    Parameters
    ----------
    method
        A :class:`~integrators.Multistep`, or the name of one.

    Examples
    --------
    >>> print(multistep_report("BDF3"))
    BDF3: 3 steps, implicit, order 3, C₄ = -3/22, zero-stable
    y[n+3] - 18/11 y[n+2] + 9/11 y[n+1] - 2/11 y[n] = h (6/11 f[n+3])
    <BLANKLINE>
    error constant C/σ(1): -1/4
    zero-stable: yes (all roots of ρ but 1 are inside: |ζ| ≤ 0.4264)
    A-stable: no (its boundary passes z = -0.07467 + 1.077i)
    angle of A(α)-stability: 86.03236686021° (the boundary is there at z = -0.07607 + 1.097i)
    real stability interval: ∞ (stable as far as |z| = 1e+06 at least)
    imaginary stability interval: 0 (a root leaves the circle at once)
    Dahlquist's first barrier: order 3; zero-stable implicit 3-step methods have at most 4
    Dahlquist's second barrier: order 3; A-stable methods have at most 2: this one cannot be
    """
    found = _wanted(method)
    return MultistepReport(
        found,
        zero_stability(found),
        a_stability_of(found),
        a_alpha_of(found),
        stability_interval_of(found, "real"),
        stability_interval_of(found, "imaginary"),
        dahlquist_barriers(found),
    )


def dahlquist_barriers(method: Multistep) -> tuple[str, ...]:
    """Say where a method stands with the two barriers; nothing of predictor-corrector pairs.

    A zero-stable method of k steps has at most order k if it is explicit (β_k/α_k ≤ 0), else
    k + 1 for odd and k + 2 for even k. An A-stable one has at most order 2, and among those of
    order 2 the trapezoidal rule has the smallest error constant, −1/12 (:cite:`hairer1993`,
    III.3; :cite:`hairer1996`, V.1).
    """
    if method.predictor is not None:
        return ()
    k, p = len(method.alpha) - 1, method.order
    most = k if method.beta[-1] <= 0 else k + (2 if k % 2 == 0 else 1)
    kind = "explicit" if method.beta[-1] == 0 else "implicit"
    first = f"order {p}; zero-stable {kind} {k}-step methods have at most {most}"
    if p > most:
        first += ": this one cannot be"
    second = f"order {p}; A-stable methods have at most 2"
    second += ": this one cannot be" * (p > 2)
    return f"Dahlquist's first barrier: {first}", f"Dahlquist's second barrier: {second}"
