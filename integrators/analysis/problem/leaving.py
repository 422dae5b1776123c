"""Where f is not Lipschitz: do several solutions go through one point, or does none?

A scalar f is taken apart into f(t, y) = g(t) h(y), if it is such a product (an autonomous f is one,
with g = 1). In the time s(t) = ∫ g dt the problem is y' = h(y): if h(y₀) = 0 but
∫_{y₀}^{y} dη/h(η) is finite (Osgood's criterion fails), then besides the constant solution there is
one that leaves y₀ at once, as for √|y| and for t√|y|. Where h jumps at y₀, no theorem applies: the
signs of h on both sides tell where a solution can go, forwards and backwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fields import Field
from .lipschitz import Constant, Quotients, difference_quotients

__all__ = ["Leaving", "without_lipschitz"]

Array = NDArray[np.float64]
Solutions = tuple[Callable[[Any], Any], ...]

OSGOOD = 0.95  # h ~ |y − y₀|^s: ∫dy/h is finite for s < 1; closer to 1 numbers cannot tell
FADING = 0.85  # part of the growth that is left at small distances where it is a logarithm's
JUMP = -0.9  # exponent of the difference quotients from which on f jumps
SAME = 1e-9  # relative misfit of a product g(t) h(y)
AWAY = (0.0, 1e-3, 0.31, 0.77)  # times about t0, in parts of the interval, that are looked at


def without_lipschitz(
    field: Field, t0: float, y0: Array, a: float, L: Constant
) -> tuple[str, list[str], Solutions]:
    """Return verdict, reasons and solutions where f is not known to be Lipschitz."""
    reasons = [str(L).splitlines()[0] + ": Picard–Lindelöf does not apply"]
    times = [t0 + side * part * a for part in AWAY for side in (1.0, -1.0)]
    near = [difference_quotients(field, y0, t=t, norm=np.inf) for t in times]
    here = next((q for q in near if q.growing), None)
    if here is None:
        reasons.append("at y0 itself the quotient stays bounded: take a smaller box for uniqueness")
        return "exists", reasons, ()
    if here.t != t0:
        reasons.append(
            f"at y0 the quotient grows for t = {here.t:.3g}, as near to t0 as one likes: no "
            "smaller box helps"
        )
    product = Product.of(field, t0, y0, a) if field.n == 1 else None
    if product is None:
        return "exists", reasons, ()
    if here.exponent < JUMP:
        return "unknown", [*reasons, product.at_a_jump(float(y0[0]))], ()
    if product.h(float(y0[0])) != 0.0:
        reasons.append(
            f"f(y0) ≠ 0 and {product.words}: separation of variables still gives a single solution"
        )
        return "unique", reasons, ()
    if here.exponent + 1 > OSGOOD or _fades(here):
        reasons.append("f(y0) = 0, and ∫dy/f at y0 is too close to divergence to tell")
        return "exists", reasons, ()
    leaving = Leaving(product, float(y0[0]), here)
    reasons.append(
        f"f(y0) = 0, {product.words}, but ∫dy/f from y0 is finite: besides the constant solution "
        "there is one that leaves it (Osgood's criterion fails)"
    )
    return "not unique", reasons, (Constantly(float(y0[0])), leaving)


def _fades(quotients: Quotients) -> bool:
    """Whether the growth of the quotients slows down like that of a logarithm."""
    x, v = np.log(quotients.distances), np.log(np.maximum(quotients.values, 1e-300))
    slopes = np.diff(v) / np.diff(x)
    return bool(len(slopes) > 3 and abs(slopes[-1]) < FADING * abs(slopes[len(slopes) // 2 - 1]))


class Product:
    """A scalar f(t, y) = g(t) h(y), and the time s(t) = ∫ g dt in which it is autonomous."""

    def __init__(self, field: Field, t0: float, at: float, y: float, autonomous: bool) -> None:
        self.field, self.t0, self.autonomous = field, t0, autonomous
        self._at, self._y = at, y
        self._unit = float(field(at, [y])[0])
        self.words = "f does not depend on t" if autonomous else "f is a product g(t) h(y)"

    @classmethod
    def of(cls, field: Field, t0: float, y0: Array, a: float) -> Product | None:
        """Take f apart on samples; None if it is no product."""
        unit = 1.0 + abs(float(y0[0]))
        y = float(y0[0]) + unit * np.array([-0.9, -0.37, -1e-3, 0.0, 1e-3, 0.41, 0.8])
        t = t0 + a * np.array([-0.8, -0.33, 0.0, 0.29, 0.71])
        F = field.values(np.repeat(t, y.size), np.tile(y, t.size)[:, None]).reshape(t.size, y.size)
        if not np.isfinite(F).all() or not np.any(F):
            return None
        i, j = np.unravel_index(int(np.argmax(np.abs(F))), F.shape)
        if np.max(np.abs(F * F[i, j] - np.outer(F[:, j], F[i]))) > SAME * F[i, j] ** 2:
            return None
        constant = bool(np.array_equal(F, np.broadcast_to(F[i], F.shape)))
        return cls(field, t0, t0 if constant else float(t[i]), float(y[j]), constant)

    def h(self, y: float) -> float:
        """The part that depends on y."""
        return float(self.field(self._at, [y])[0])

    def elapsed(self, t: float) -> float:
        """s(t), counted from t0."""
        if self.autonomous:
            return t - self.t0
        from scipy.integrate import quad

        def g(x: float) -> float:
            return float(self.field(x, [self._y])[0]) / self._unit

        return float(quad(g, self.t0, t, epsabs=1e-13, epsrel=1e-12)[0])

    def at_a_jump(self, y0: float) -> str:
        """Say where solutions can go from a place at which f jumps."""
        d = 1e-9 * (1 + abs(y0))
        below, here, above = (self.h(y0 + x) for x in (-d, 0.0, d))
        if not self.autonomous:
            return f"f jumps at y0, from {below:.4g} to {above:.4g}: neither theorem applies"
        ways = []
        for name, sign in (("forwards", 1.0), ("backwards", -1.0)):
            ways_out = ["go up"] * (sign * above > 0) + ["go down"] * (sign * below < 0)
            ways_out += ["stay"] * (here == 0)
            can = f"it can {' or '.join(ways_out)}" if ways_out else "there is none"
            ways.append(f"{name} {can}")
        return (
            f"f jumps at y0, from {below:.4g} to {above:.4g} with {here:.4g} between: neither "
            f"theorem applies; of a solution from there: {', '.join(ways)}"
        )


@dataclass(frozen=True)
class Constantly:
    """The solution y(t) = y0 of a problem with f(y0) = 0."""

    y0: float

    def __call__(self, t: Any) -> Any:
        """y at one or many times."""
        return np.full(np.shape(t), self.y0)[()]


class Leaving:
    """The solution of y' = g(t) h(y) that leaves a zero y0 of h at once: variables are separated.

    s(t) = ∫_{y₀}^{y} dη/h(η). With h ~ c|η − y₀|ˢ, s < 1, the substitution |η − y₀| = u^{1/(1−s)}
    makes the integrand smooth. Where h has the sign that drives solutions back to y₀, the solution
    stays there on that side.
    """

    def __init__(self, product: Product, y0: float, quotients: Quotients) -> None:
        self.product, self.y0 = product, y0
        self.power = 1.0 / -quotients.exponent  # 1/(1 − s), as the quotient goes like d^(s − 1)

    def _speed(self, side: float, u: float) -> float:
        """ds/du at |η − y₀| = u^power on one side of y₀; smooth down to u = 0."""
        u = max(u, 1e-7)
        d = u**self.power
        slope = self.product.h(self.y0 + side * d)
        return side * self.power * u ** (self.power - 1) / slope if slope else math.inf

    def __call__(self, t: Any) -> Any:
        """y at one or many times."""
        flat = np.array([self._one(float(x)) for x in np.ravel(t)])
        return flat.reshape(np.shape(t))[()]

    def _one(self, t: float) -> float:
        from scipy.integrate import quad
        from scipy.optimize import brentq

        target = self.product.elapsed(t)
        if target == 0.0:
            return self.y0
        for side in (1.0, -1.0):
            if np.sign(self._speed(side, 1e-3)) != np.sign(target):
                continue

            def elapsed(u: float, side: float = side) -> float:
                return float(quad(lambda v: self._speed(side, v), 0.0, u, epsabs=1e-13)[0])

            top = 1.0
            while abs(elapsed(top)) < abs(target):
                top *= 2
                if top > 1e6:
                    raise ValueError(f"the solution that leaves y0 does not reach t = {t:g}")
            u = brentq(lambda u: elapsed(u) - target, 0.0, top, xtol=1e-14)
            return self.y0 + side * u**self.power
        return self.y0
