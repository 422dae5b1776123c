"""Multistep methods by name; their coefficients follow from what they are made for.

Given ρ and the places where slopes are used, the order conditions are linear equations for the
weights β, as many as there are places: Adams–Bashforth, Adams–Moulton, Nyström and Milne–Simpson
differ only in these (:cite:`hairer1993`, III.1). The BDF differentiate the polynomial through the
last values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

from ...errors import suggest
from .method import Multistep

__all__ = ["adams_bashforth", "adams_moulton", "bdf", "multistep", "multistep_names", "nystrom"]

HIGHEST = 6


def _whole(k: int, lowest: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int) or not lowest <= k <= 20:
        raise ValueError(f"expected a whole number from {lowest} to 20, got {k!r}")
    return k


def _weights(alpha: Sequence[int], places: Sequence[int]) -> list[Fraction]:
    """β of highest order for these α, with slopes at some places only.

    The conditions q Σ βⱼ j^(q−1) = Σ αⱼ j^q, q = 1, …, number of places.
    """
    m = len(places)
    rows = [
        [Fraction(q) * Fraction(j) ** (q - 1) for j in places]
        + [sum((Fraction(a) * j**q for j, a in enumerate(alpha)), Fraction(0))]
        for q in range(1, m + 1)
    ]
    for i in range(m):  # Gauss–Jordan; a matrix of Vandermonde is regular
        pivot = next(r for r in range(i, m) if rows[r][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for r in range(m):
            if r != i and rows[r][i] != 0:
                rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i])]
    beta = [Fraction(0)] * len(alpha)
    for j, row in zip(places, rows):
        beta[j] = row[-1]
    return beta


def _difference(k: int, back: int) -> list[int]:
    """ρ = ζᵏ − ζ^(k − back): the new value from the one `back` steps ago."""
    alpha = [0] * (k + 1)
    alpha[k], alpha[k - back] = 1, -1
    return alpha


def adams_bashforth(k: int) -> Multistep:
    """Return the explicit Adams method of k steps and order k.

    Examples
    --------
    >>> print(adams_bashforth(3))
    AB3: 3 steps, explicit, order 3, C₄ = 3/8, zero-stable
    y[n+3] - y[n+2] = h (23/12 f[n+2] - 4/3 f[n+1] + 5/12 f[n])
    """
    alpha = _difference(_whole(k, 1), 1)
    return Multistep(alpha, _weights(alpha, range(k)), f"AB{k}")


def adams_moulton(order: int) -> Multistep:
    """Return the implicit Adams method of this order: Euler backwards, trapezoidal rule, …

    Examples
    --------
    >>> print(adams_moulton(3))
    AM3: 2 steps, implicit, order 3, C₄ = -1/24, zero-stable
    y[n+2] - y[n+1] = h (5/12 f[n+2] + 2/3 f[n+1] - 1/12 f[n])
    """
    k = max(_whole(order, 1) - 1, 1)
    alpha = _difference(k, 1)
    return Multistep(alpha, _weights(alpha, range(k + 1 - order, k + 1)), f"AM{order}")


def adams_pair(order: int) -> Multistep:
    """Return Adams–Bashforth and Adams–Moulton of one order as a pair, PECE."""
    pair = adams_moulton(order).with_(predictor=adams_bashforth(order))
    return pair.with_(name=f"ABM{order}")


def bdf(k: int) -> Multistep:
    """Return the backward differentiation formula of k steps and order k: Σ ∇ᵐ y/m = h f.

    Examples
    --------
    >>> bdf(6).is_zero_stable, bdf(7).is_zero_stable
    (True, False)
    """
    alpha = [Fraction(0)] * (_whole(k, 1) + 1)
    difference = [1]  # ∇ᵐ, the newest value first
    for m in range(1, k + 1):
        difference = [a - b for a, b in zip([*difference, 0], [0, *difference])]
        for i, d in enumerate(difference):
            alpha[k - i] += Fraction(d, m)
    return Multistep(alpha, [*[0] * k, 1], f"BDF{k}")


def nystrom(k: int) -> Multistep:
    """Return the explicit method of k steps that starts from y_{n−1}; k = 2 is the leapfrog.

    Examples
    --------
    >>> print(nystrom(2))
    NY2: 2 steps, explicit, order 2, C₃ = 1/3, zero-stable
    y[n+2] - y[n] = h (2 f[n+1])
    """
    alpha = _difference(_whole(k, 2), 2)
    return Multistep(alpha, _weights(alpha, range(k)), f"NY{k}")


def _milne() -> Multistep:
    """Simpson's rule over two steps, the only two-step method of order 4."""
    alpha = _difference(2, 2)
    return Multistep(alpha, _weights(alpha, range(3)), "Milne")


def _milne_pair() -> Multistep:
    """Milne's predictor, open over four steps, and Simpson's rule."""
    alpha = _difference(4, 4)
    predictor = Multistep(alpha, _weights(alpha, (1, 2, 3)), "Milne's predictor")
    return _milne().with_(predictor=predictor, name="MilnePECE")


_FAMILIES: dict[str, tuple[Callable[[int], Multistep], int, tuple[str, ...]]] = {
    "AB": (adams_bashforth, 1, ("adamsbashforth",)),
    "AM": (adams_moulton, 1, ("adamsmoulton",)),
    "ABM": (adams_pair, 1, ("pece", "adamsbashforthmoulton", "adamspece")),
    "BDF": (bdf, 1, ("gear",)),
    "NY": (nystrom, 2, ("multistepnystrom", "multistepnyström")),
}
_SINGLE: dict[str, tuple[Callable[[], Multistep], tuple[str, ...]]] = {
    "Leapfrog": (
        lambda: nystrom(2).with_(name="Leapfrog"),
        ("multistepmidpoint", "twostepmidpoint"),
    ),
    "Milne": (_milne, ("milnesimpson",)),
    "MilnePECE": (_milne_pair, ("milnepair",)),
}


def multistep_names() -> list[str]:
    """Return the names of all multistep methods.

    Examples
    --------
    >>> multistep_names()[:3], len(multistep_names())
    (['AB1', 'AB2', 'AB3'], 32)
    """
    families = [f"{n}{k}" for n, (_, low, _) in _FAMILIES.items() for k in range(low, HIGHEST + 1)]
    return families + list(_SINGLE)


@cache
def _found(plain: str) -> Multistep | None:
    for name, (make, others) in _SINGLE.items():
        if plain in (name.lower(), *others):
            return make()
    match = re.fullmatch(r"([^\d]+)(\d{1,3})", plain)
    for name, (build, lowest, others) in _FAMILIES.items():
        if match is not None and match[1] in (name.lower(), *others):
            k = int(match[2])
            if lowest <= k <= HIGHEST:
                return build(k)
            why = "no BDF beyond 6 is zero-stable; " if name == "BDF" and k > HIGHEST else ""
            raise ValueError(
                f"there is no {name}{k} among the names; {why}there are {name}{lowest} to "
                f"{name}{HIGHEST}, and integrators.methods.multistep.names makes others"
            )
    return None


def multistep(name: str) -> Multistep:
    """Return the multistep method with this name.

    Parameters
    ----------
    name
        "AB1" to "AB6" (Adams–Bashforth), "AM1" to "AM6" (Adams–Moulton, by order), "ABM1" to
        "ABM6" (both as a pair, PECE), "BDF1" to "BDF6", "NY2" to "NY6" (Nyström), "Leapfrog",
        "Milne", "MilnePECE". Case, spaces, hyphens and underscores do not matter.

    Examples
    --------
    >>> multistep("Adams-Bashforth 2")
    <Multistep AB2: 2 steps, explicit, order 2>
    """
    found = find_multistep(name)
    if found is None:
        known = multistep_names()
        raise ValueError(
            f"there is no multistep method {name!r}{suggest(name, known)}; there are "
            f"{', '.join(known)}"
        )
    return found


def find_multistep(name: str) -> Multistep | None:
    """Return the multistep method with this name; None if it is not the name of one."""
    return _found(re.sub(r"[-–_ ]", "", name.lower()))
