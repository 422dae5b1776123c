"""Loop-closure functions q = γ(y): closed loops without any constraint equation (book, §8.11).

G = ∂γ/∂y and g = Ġẏ, so that GᵀHG ÿ = Gᵀ(τ − C − H g) is the equation of motion. Gears are such
functions, too (§9.6): :func:`gears` makes one of ratios. As rows beside loop joints, in models with
any joints, they are constraints: ``ModelBuilder.add_gear`` and :func:`with_gears`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array, ArrayLike, real_array, real_scalar
from ...model.gearing import gear_constraint
from .closed_loop import constraints

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["LoopClosure", "gears", "with_gears"]

#: Largest error of derivatives that a user supplies, against central differences of step 1e-5:
#: these are right to the square of the step for functions of ordinary size.
DERIVATIVE_TOLERANCE = 1e-6
#: Largest gap that a loop-closure function may leave, and largest K G.
CLOSURE_TOLERANCE = 1e-8


class LoopClosure:
    """q = γ(y): positions from independent variables, with first and second derivatives.

    Parameters
    ----------
    model
        A model with or without loops, whose velocities are the derivatives of its positions.
    gamma
        ``gamma(y)`` returns q; written with NumPy and without branches it is traced, and its
        derivatives are exact.
    size
        How many numbers y has.
    G, g
        ``G(y)`` = ∂γ/∂y and ``g(y, ydot)`` = Ġẏ, if γ cannot be traced; both or none. They are
        compared with differences of γ by :meth:`check`.
    names
        Of the variables y, for pictures and tables; y0, y1, … if not given.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.n_four_bar(1)
    >>> closure = LoopClosure(model, lambda y: [y[0], y[0], -y[0]], 1)
    >>> closure.jacobian([0.3]).T
    array([[ 1.,  1., -1.]])
    >>> closure.check([0.3], [1.0])
    """

    def __init__(
        self,
        model: Model,
        gamma: Callable[..., Any],
        size: int,
        G: Callable[..., Any] | None = None,
        g: Callable[..., Any] | None = None,
        *,
        names: tuple[str, ...] = (),
    ) -> None:
        for body in model.bodies:
            if not body.joint.rate_is_velocity:
                raise ValueError(
                    f"body {body.name!r}: a loop-closure function needs velocities that are the "
                    f"derivatives of positions, which those of {type(body.joint).__name__} are "
                    "not; state it as a constraint (ModelBuilder.add_constraint, add_gear), which "
                    "any joints may have"
                )
        if (G is None) != (g is None):
            raise TypeError("give both G and g, or none of them to have γ traced")
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"size: expected a whole number ≥ 1, received {size!r}")
        self.model, self.size, self.is_traced = model, int(size), G is None
        self.names = tuple(names) or tuple(f"y{k}" for k in range(self.size))
        #: How it was made: pickled in place of the functions, if they can be.
        self.recipe: tuple[Callable[..., Any], tuple[Any, ...]] = (
            LoopClosure,
            (model, gamma, size, G, g),
        )
        if G is None:
            self._position, self._jacobian, self._speed, self._curvature = _derivatives(
                gamma, self.size, model.nq
            )
        else:
            assert g is not None
            self._gamma, self._G, self._g = gamma, G, g

    def __reduce__(self) -> Any:
        return self.recipe

    def position(self, y: Any) -> Any:
        """γ(y); of numbers or of symbols."""
        return self._position(0.0, y) if self.is_traced else np.asarray(self._gamma(y))

    def jacobian(self, y: Any) -> Any:
        """G = ∂γ/∂y, nv × size."""
        if self.is_traced:
            J = np.asarray(self._jacobian(0.0, y))
        else:
            J = np.asarray(self._G(y))
        return J.reshape(self.model.nv, self.size)

    def bias(self, y: Any, ydot: Any) -> Any:
        """g = Ġẏ."""
        if not self.is_traced:
            return np.asarray(self._g(y, ydot))
        x = np.concatenate([np.asarray(y), np.asarray(ydot)])
        return self._curvature(0.0, x)

    def states(self, x: ArrayLike) -> Array:
        """[q; v] from [y; ẏ], of one state or of states in columns, such as ``solution.y``."""
        x = np.asarray(x, dtype=float)
        columns = x.reshape(2 * self.size, -1).T
        made = [
            np.concatenate(
                [
                    np.asarray(self.position(c[: self.size]), dtype=float),
                    np.asarray(self.jacobian(c[: self.size]), dtype=float) @ c[self.size :],
                ]
            )
            for c in columns
        ]
        return np.array(made).T.reshape(-1, *x.shape[1:])

    def check(self, y: ArrayLike, ydot: ArrayLike, *, t: float = 0.0) -> None:
        """Raise where γ opens a loop, or where G or g contradict γ or the constraints.

        K G = 0 and K g = γ_acc are compared with the constraints of the loops; derivatives that
        the user supplied also with central differences.
        """
        y = real_array(y, "y", (self.size,)).astype(float)
        ydot = real_array(ydot, "ydot", (self.size,)).astype(float)
        q = self.model.check("q", np.asarray(self.position(y), dtype=float))
        G = np.asarray(self.jacobian(y), dtype=float)
        g = np.asarray(self.bias(y, ydot), dtype=float)
        if not self.is_traced:
            self._compare(y, ydot, G, g)
        if not self.model.bonds:
            return
        v = G @ ydot
        c = constraints(self.model, q, v, t=t)
        size = 1.0 + np.abs(v).max(initial=0.0) ** 2
        for what, values, scale in (
            ("leaves a gap", c.delta, 1.0),
            ("moves the loops apart, K G", c.K @ G, size),
            ("accelerates the loops apart, K g − γ", c.K @ g - c.gamma, size),
        ):
            worst = float(np.abs(values).max(initial=0.0))
            if not worst <= CLOSURE_TOLERANCE * scale:
                raise ValueError(
                    f"the loop-closure function {what} of {worst:.3g} at y = {y}; check it, or "
                    "keep away from where it is not defined"
                )

    def _compare(self, y: Array, ydot: Array, G: Array, g: Array) -> None:
        h = 1e-5
        steps = h * np.eye(self.size)

        def difference(f: Callable[[Array], Any], step: Array) -> Array:
            return (np.asarray(f(y + step), float) - np.asarray(f(y - step), float)) / (2 * h)

        expected = np.array([difference(self.position, s) for s in steps]).T
        bent = difference(lambda z: self.jacobian(z) @ ydot, h * ydot)
        for name, given, right in (("G", G, expected), ("g", g, bent)):
            worst = float(np.abs(given - right).max(initial=0.0))
            if not worst <= DERIVATIVE_TOLERANCE * (1.0 + np.abs(right).max(initial=0.0)):
                raise ValueError(
                    f"{name} of the loop-closure function differs by {worst:.3g} from differences "
                    f"of γ at y = {y}; correct it, or leave G and g out to have γ traced"
                )


def _derivatives(gamma: Callable[..., Any], size: int, n: int) -> tuple[Any, Any, Any, Any]:
    """γ, ∂γ/∂y, (∂γ/∂y)ẏ and its change along ẏ, all traced."""
    from integrators.tracing import TracingError, traced

    def position(t: Any, y: Any) -> Any:
        return np.array(list(gamma(y)))

    try:
        where = traced(position, n=size, outputs=n)
        J = where.jacobian()
        speed = traced(
            lambda t, x: J(t, x[:size]).reshape(n, size) @ x[size:], n=2 * size, outputs=n
        )
        D = speed.jacobian()
        bend = traced(
            lambda t, x: D(t, x).reshape(n, 2 * size)[:, :size] @ x[size:], n=2 * size, outputs=n
        )
    except TracingError as error:
        raise TracingError(
            f"the loop-closure function cannot be traced ({error}); write it without branches, or "
            "give its derivatives G and g"
        ) from error
    return where, J, speed, bend


def gears(model: Model, ratios: Mapping[str, Mapping[str, float]]) -> LoopClosure:
    """Gears as a loop-closure function: positions that are multiples, or sums, of others (§9.6).

    Parameters
    ----------
    model
        Joints that gears connect must have one freedom.
    ratios
        For each driven body the bodies that drive it, with their ratios:
        ``{"rotor": {"link": 100.0}}``; several for a differential. Drivers may be driven
        themselves. All other variables of the model are independent, in their order.

    See Also
    --------
    with_gears : the same ratios as constraints of a model, which may have any joints.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> arm = mechanisms.n_pendulum(3)
    >>> gears(arm, {"link3": {"link1": -2.0}}).jacobian([0.0, 0.0]).T
    array([[ 1.,  0., -2.],
           [ 0.,  1.,  0.]])
    """
    driven: dict[int, dict[int, float]] = {}
    for name, drivers in ratios.items():
        driven[_single(model, name)] = {
            _single(model, other): real_scalar(ratio, f"ratio of {other!r}")
            for other, ratio in drivers.items()
        }
    kept = [j for j in range(model.nv) if j not in driven]
    R = np.zeros((model.nv, len(kept)))
    R[kept, np.arange(len(kept))] = 1.0
    waiting = dict(driven)
    while waiting:
        ready = [j for j, drivers_of in waiting.items() if waiting.keys().isdisjoint(drivers_of)]
        if not ready:
            names = [model.v_names[j] for j in waiting]
            raise ValueError(f"gears: {names} drive each other in a circle; leave one of them free")
        for j in ready:
            for other, ratio in waiting.pop(j).items():
                R[j] += ratio * R[other]
    zero = np.zeros(model.nv)
    closure = LoopClosure(
        model,
        lambda y: R @ np.asarray(y),
        len(kept),
        lambda y: R,
        lambda y, d: zero,
        names=tuple(model.q_names[j] for j in kept),
    )
    closure.recipe = gears, (model, {name: dict(drivers) for name, drivers in ratios.items()})
    return closure


def with_gears(model: Model, ratios: Mapping[str, Mapping[str, float]]) -> Model:
    """The model with gears as constraints, one for each driven body.

    Parameters
    ----------
    model
        Any model; the joints that gears connect must have one variable.
    ratios
        As in :func:`gears`, and as readers of files report them (``report.gears``).

    Examples
    --------
    >>> from multibody import FD, mechanisms
    >>> arm = with_gears(mechanisms.n_pendulum(3), {"link3": {"link1": -2.0}})
    >>> a = FD(arm, [0.1, 0.2, -0.2], [0.0, 0.0, 0.0])
    >>> bool(abs(a[2] + 2.0 * a[0]) < 1e-9)
    True
    """
    made = list(model.constraints)
    for driven, drivers in ratios.items():
        for name in (driven, *drivers):
            _single(model, name)
        made.append(gear_constraint(f"gear of {driven}", driven, drivers, 0.0, None, ()))
    return replace(model, constraints=tuple(made))


def _single(model: Model, body: str) -> int:
    i = model.number(body)
    at = model.v_index[i - 1] if i else slice(0, 0)
    if at.stop - at.start != 1 or not model.bodies[i - 1].joint.rate_is_velocity:
        raise ValueError(f"gears: expected a body on a joint of one freedom, received {body!r}")
    return int(at.start)
