"""Runge–Kutta methods on manifolds: Munthe-Kaas, with any explicit tableau.

A step from y_n integrates the local field

    ż = g(t, z) = rate(z, velocity(t, y_n ⊞ z)),   z(t_n) = 0,

by the tableau and ends in y_{n+1} = y_n ⊞ z (H. Munthe-Kaas, Appl. Numer. Math. 29 (1999),
115–127; :cite:`hairer2006`, IV.8). Since g is an ordinary vector field, order, error estimate and
dense output of the tableau keep their meaning: z(θ) is interpolated, and y_n ⊞ z(θ) is a point of
the manifold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ...kernels.pointers import call
from ...manifold import Manifold, Retraction
from ...problem import IVP, accepts_params
from ...stepping.engine import Options
from ...stepping.workspace import Explicit
from ...tableau import Tableau
from ..runge_kutta.engine import ExplicitEngine
from ..runge_kutta.explicit import explicit_refine
from .step import MOVED, lie_accept, lie_dense, lie_step

__all__ = ["LieEngine", "MuntheKaas"]

Array = NDArray[np.float64]

NAMED = {1: "ExplicitEuler", 2: "Midpoint", 3: "Kutta3", 4: "RK4", 5: "DOPRI5", 8: "DOP853"}
"""The tableaux behind RKMK1 (exponential Euler), RKMK2 (exponential midpoint), RKMK3, …"""

NEUTRAL = 1e-9  # y ⊞ 0 = y and rate(0, ξ) = ξ must hold to this relative accuracy


class MuntheKaas:
    """A Runge–Kutta method for problems with a :class:`~integrators.Manifold`.

    Parameters
    ----------
    tableau
        An explicit :class:`Tableau`, or a name of the catalogue. "RKMK4" is short for
        ``MuntheKaas("RK4")``; there are RKMK1 to RKMK5 and RKMK8.

    Notes
    -----
    Errors are measured in the tangent space: component i of z is kept below
    atol + rtol·scale_i, see :class:`~integrators.Manifold`. They do not depend on the coordinates
    of y, so a rotation of the whole problem changes no step. ``atol`` may be a list, one for each
    tangent component. Tableaux without an embedded method use step doubling, inside one chart.

    On a vector space (``groups.euclidean``) the steps are those of the tableau itself.

    Examples
    --------
    >>> import numpy as np
    >>> from integrators import IVP, groups, solve
    >>> group = groups.rotations_by_matrix()
    >>> spin = group.manifold(lambda t, R: np.array([np.cos(t), np.sin(t), 1.0]))
    >>> hat = lambda w: np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    >>> f = lambda t, R: (R.reshape(3, 3) @ hat(spin.velocity(t, R))).ravel()
    >>> problem = IVP(f, np.eye(3).ravel(), (0, 10), manifold=spin)
    >>> R = solve(problem, method=MuntheKaas("DOPRI5"), rtol=1e-9).y[:, -1].reshape(3, 3)
    >>> bool(np.abs(R.T @ R - np.eye(3)).max() < 1e-13)
    True
    """

    def __init__(self, tableau: Tableau | str) -> None:
        if isinstance(tableau, str):
            from ...catalogue import from_name_or_file

            tableau = from_name_or_file(tableau)
        if not isinstance(tableau, Tableau):
            raise TypeError(
                f"MuntheKaas needs an explicit tableau or its name, such as 'RK4'; got {tableau!r}"
            )
        name = tableau.name or "tableau"
        if not tableau.is_explicit:
            raise ValueError(
                f"Munthe-Kaas methods need an explicit tableau, and {name} is implicit; take RK4, "
                "DOPRI5 or DOP853, or solve y' = f(t, y) by the implicit method itself"
            )
        self.tableau = tableau
        self.order = tableau.order
        self.name = f"MuntheKaas({name})"

    @classmethod
    def from_name(cls, name: str) -> MuntheKaas:
        """Return the method called "RKMK4" or "MuntheKaas(RK4)"."""
        plain = name.lower().replace("-", "").replace("_", "").replace(" ", "")
        if plain.startswith("rkmk"):
            order = plain[4:].strip("()")
            if not order.isdigit() or int(order) not in NAMED:
                known = ", ".join(f"RKMK{k}" for k in NAMED)
                raise ValueError(
                    f"there is no {name!r}; there are {known}, and MuntheKaas(…) of any explicit "
                    "tableau of the catalogue"
                )
            return cls(NAMED[int(order)])
        inside = name.partition("(")[2].strip().removesuffix(")").strip()
        if not inside:
            raise ValueError(f"{name!r} does not say which tableau: write 'MuntheKaas(RK4)'")
        return cls(inside)

    def error_components(self, problem: IVP) -> int:
        """Number of components in which errors are measured: the dimension of the manifold."""
        return self._manifold(problem).dimension

    def bind(self, problem: IVP, options: Options) -> LieEngine:
        """Bind the method to a problem."""
        self._manifold(problem)
        if problem.nonnegative.size:
            raise ValueError(f"{self.name} knows no non-negative components; use RADAU5, say")
        if problem.mass is not None:
            raise ValueError(
                f"{self.name} is explicit and cannot treat a mass matrix; divide by it in the "
                "manifold's velocity"
            )
        if problem.y0.dtype.kind == "c":
            raise ValueError(f"{self.name} needs a real state; split it into real and imaginary")
        if self.order < 1 and not options.fixed:
            raise ValueError(
                f"{self.name} has order 0 (the weights b must add up to 1), so no step is short "
                "enough; correct the tableau, or study it with a fixed step"
            )
        return LieEngine(self.tableau, problem, options)

    def _manifold(self, problem: IVP) -> Manifold:
        if problem.manifold is None:
            raise ValueError(
                f"{self.name} needs a problem with a manifold, IVP(..., manifold=Manifold(...)); "
                f"without one use {self.tableau.name or 'the tableau'} itself"
            )
        return problem.manifold

    def __repr__(self) -> str:
        return self.name


class Chart(Explicit):
    """Arrays of a Munthe-Kaas method; those of an explicit method hold coordinates z."""

    FIELDS: ClassVar[dict[str, str]] = {
        **Explicit.FIELDS,  # p: the centre y_n, then the parameters
        "chart": "i1",  # switches, see integrators.methods.lie.step
        "point": "f1",  # current state y …
        "points": "f2",  # … and those after the steps of one call of the loop
        "arrive": "a",  # computes `arrival` from z
        "arrival": "f1",  # where the attempted step leads, then the scale there
        "velocity": "f1",  # ξ of the last evaluation: f writes it behind dx
        "velocity_end": "f1",  # ξ at the end of the last step, if HAVE_F1
        "scale": "f1",  # sizes of the components at the start of the step
        "rtol_given": "f1",  # the loop sees absolute tolerances only, renewed in each step
        "atol_given": "f1",
    }


class LieEngine(ExplicitEngine):
    """A Munthe-Kaas method bound to a problem."""

    def __init__(self, tableau: Tableau, problem: IVP, options: Options) -> None:
        assert problem.manifold is not None
        self.manifold = problem.manifold
        self.centre_size = problem.n
        super().__init__(tableau, problem, options)

    def _dimension(self) -> int:
        return self.manifold.dimension

    def _first_vector(self) -> Array:
        return np.zeros(self.n)

    def _setup(self) -> None:
        super()._setup()
        m, problem = self.n, self.problem
        self.results = np.zeros(2 * m)  # ż and ξ, side by side
        self.dx, self.velocity = self.results[:m], self.results[m:]
        self.q = np.concatenate([problem.y0, problem.params])
        self.local, self.arrival = _fields(self.manifold, problem)
        self._check_neutral()
        self.state.f_native = int(hasattr(self.local, "machine_code"))
        if self.state.f_native == 1:
            self._codes = [self.local.machine_code(), self.arrival.machine_code()]
        self.move = self._retraction()

    def _check_neutral(self) -> None:
        y0 = self.problem.y0
        here = np.asarray(self.arrival(0.0, np.zeros(self.n), self.q))[: y0.size]
        if not np.allclose(here, y0, rtol=NEUTRAL, atol=NEUTRAL * np.abs(y0).max()):
            raise ValueError(f"retract(y0, 0) must be y0 = {y0}, but it is {here}")

    def _retraction(self) -> Retraction:
        if self.state.f_native == 0:
            return Retraction(self.manifold.retract)
        arrival, n, p = self.arrival, self.centre_size, self.problem.params
        return Retraction(lambda y, z: arrival(0.0, z, np.concatenate([y, p]))[:n])

    def _kernels(self) -> tuple[Any, ...]:
        self.fused = None
        return Chart, lie_step, lie_accept, lie_dense, explicit_refine

    def _rhs_address(self) -> int:
        if self.state.f_native == 1:
            return int(self._codes[0].address)
        local, x, q, results = self.local, self.x, self.q, self.results

        def evaluate(t: float) -> None:
            results[:] = local(t, x.copy(), q.copy())

        return self.trampoline(evaluate)

    def _workspace(self, shared: dict[str, Any]) -> Chart:
        n, m = self.centre_size, self.n
        atol = shared["atol"]
        shared.update(p=self.q, atol=atol.copy(), index=np.zeros(0, dtype=np.int64))
        plain = super()._workspace(shared)
        self.place = np.zeros(n + m)
        self.place[n:] = self.size(self.problem.y0)
        return Chart(
            **{name: getattr(plain, name) for name in Explicit.FIELDS},
            chart=np.ones(MOVED + 1, dtype=np.int64),
            point=np.array(self.problem.y0),
            points=np.zeros((self.chunk, n)),
            arrive=self._arrive_address(shared["y_new"]),
            arrival=self.place,
            velocity=self.velocity,
            velocity_end=np.zeros(m),
            scale=np.zeros(m),
            rtol_given=np.array([self.options.rtol]),
            atol_given=atol,
        )

    def _arrive_address(self, z: Array) -> int:
        if self.state.f_native == 1:
            return int(self._codes[1].address)
        arrival, q, place = self.arrival, self.q, self.place

        def arrive(t: float) -> None:
            place[:] = arrival(t, z.copy(), q.copy())

        return self.trampoline(arrive)

    # ------------------------------------------------------------ running

    @property
    def point(self) -> Array:
        """The current state, in place."""
        return self.w.point

    @property
    def points(self) -> Array:
        """States after the steps of the last call of the loop."""
        return self.w.points

    def begin(self, slope: NDArray[Any], first_step: float | None) -> None:
        """Remember the first velocity; choose the first step."""
        super().begin(slope, first_step)
        self.state.rtol = 0.0  # from here on it is part of the absolute tolerances

    def size(self, y: NDArray[Any]) -> Array:
        """Sizes of the tangent components at y that relative tolerances refer to."""
        q = np.concatenate([y, self.problem.params])
        return np.asarray(self.arrival(0.0, np.zeros(self.n), q))[self.centre_size :]

    def slope(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        """velocity(t, y) through the same pointer as the loop, counted; raises what it raises."""
        n = self.centre_size
        centre = self.q[:n].copy()
        self.q[:n], self.x[:] = y, 0.0
        self.state.nfev += 1
        call(self.f_address, t, self.x, self.q, self.results)
        self.q[:n] = centre
        if (error := self.error()) is not None:
            raise error
        xi = self.velocity.copy()
        if not np.all(np.isfinite(xi)):
            bad = int(np.flatnonzero(~np.isfinite(xi))[0])
            raise ValueError(
                f"the manifold's velocity is not finite: component {bad} is {xi[bad]} at "
                f"t = {t:g}; it must be defined at the initial state"
            )
        if not np.allclose(self.dx, xi, rtol=NEUTRAL, atol=NEUTRAL * np.abs(xi).max()):
            raise ValueError(f"rate(0, ξ) must be ξ = {xi}, but it is {self.dx}")
        return xi

    def replace_state(self, y: NDArray[Any]) -> None:
        """Put another state in place of the current one (projection): no slope survives."""
        self.w.point[:] = y
        self.place[self.centre_size :] = self.size(y)
        self.w.chart[MOVED] = 1
        self.state.f0_current = self.state.have_f1 = 0


# -------------------------------------------------------------------- the local field

_made: WeakKeyDictionary[Manifold, dict[tuple[int, int], Any]] = WeakKeyDictionary()


def _fields(manifold: Manifold, problem: IVP) -> tuple[Any, Any]:
    """g and the end of a step as functions of (t, z, [y_n, p]); traced if the velocity is.

    The first returns ż and ξ, the second y_n ⊞ z and the scale there, one behind the other.
    """
    from ...tracing import Traced, TracingError, traced

    n, k, m = problem.n, problem.params.size, manifold.dimension
    plain = _compose(manifold, n, with_params=k > 0 and accepts_params(manifold.velocity))
    if not isinstance(manifold.velocity, Traced):
        return plain
    known = _made.setdefault(manifold, {})
    if (n, k) not in known:
        try:
            local, arrival = plain
            known[n, k] = (
                traced(local, n=m, params=n + k, outputs=2 * m),
                traced(arrival, n=m, params=n + k, outputs=n + m),
            )
        except TracingError:  # retract or rate cannot be traced: the velocity alone is fast
            known[n, k] = plain
    return known[n, k]


def _compose(
    manifold: Manifold, n: int, with_params: bool
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    m = manifold.dimension
    velocity, retract, rate = manifold.velocity, manifold.retract, manifold.rate
    scale = manifold.scale or (lambda y: np.sqrt(np.sum(y * y)) * np.ones(m))

    def local(t: Any, z: Any, q: Any) -> Any:
        y = _numbers(retract(q[:n], z), n, "retract")
        xi = velocity(t, y, q[n:]) if with_params else velocity(t, y)
        xi = _numbers(xi, m, "velocity")
        return np.concatenate([_numbers(rate(z, xi), m, "rate"), xi])

    def arrival(t: Any, z: Any, q: Any) -> Any:
        y = _numbers(retract(q[:n], z), n, "retract")
        return np.concatenate([y, _numbers(scale(y), m, "scale")])

    return local, arrival


def _numbers(value: Any, size: int, name: str) -> Any:
    """Return what a function of the manifold gave, as an array; say so if it is something else."""
    array = np.asarray(value)
    if array.dtype.kind == "c" or value is None or array.dtype.kind in "US":
        raise TypeError(f"the manifold's {name} returned {value!r}; expected {size} real numbers")
    if array.shape == () and size == 1:
        array = array.reshape(1)
    if array.shape != (size,):
        raise ValueError(
            f"the manifold's {name} returned an array of shape {array.shape}; expected {size} "
            f"numbers ({'the coordinates of a point' if name == 'retract' else 'one for each'}"
            f"{'' if name == 'retract' else ' component of the tangent space'})"
        )
    return array
