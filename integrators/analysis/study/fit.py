"""Fitting a problem to data: least squares with exact derivatives, and how sure the answer is.

Residuals are (g(t, y, p) − data)/σ at the times of the data. Their derivatives by what is varied
come from the variational equations (``runs.sensitivity``), so that Gauss–Newton steps are exact and
a fit of a few parameters takes a handful of runs. Near the solution the estimate is normally
distributed with covariance s²(JᵀJ)⁻¹, s² the residual variance (1 if σ is given): intervals follow
from Student's distribution.

On a bound an estimate is not normal. There the sum of squares, which slopes towards the bound, says
how far inside the truth may be: as far as makes it larger by no more than between the middle and
the end of an interval without bounds. The errors of the others are those without bounds, rather too
large than too small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import suggest
from ...problem import IVP, accepts_params
from ...runs.sensitivities.forward import with_traced_f
from ...solve import solve
from .order_fit import student

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Fit", "fit"]

Array = NDArray[np.float64]

#: Part of the standard error within which an estimate is on its bound.
ON_BOUND = 1e-3
#: Ratio of singular values of the scaled Jacobian below which parameters cannot be told apart.
UNIDENTIFIED = 1e-8


@dataclass
class Fit:
    """A problem fitted to data.

    Attributes
    ----------
    names, values, errors
        What was varied, its estimates, and their standard errors.
    covariance
        Of the estimates.
    problem
        With the estimates in their places.
    times, data, model
        The data, and what the fitted problem gives there; a row for each quantity.
    residuals
        Weighted, one row for each quantity.
    freedom
        Number of data less number of parameters.
    success, message, runs
        Whether the search ended where it should, what it said, and how many runs it took.
    identifiable
        Whether the data determine all that was varied.
    bounds
        (lower, upper) of each.
    """

    names: tuple[str, ...]
    values: Array
    errors: Array
    covariance: Array
    problem: IVP
    times: Array
    data: Array
    model: Array
    residuals: Array
    freedom: int
    success: bool
    message: str
    runs: int
    identifiable: bool = True
    labels: tuple[str, ...] = field(default_factory=tuple)
    bounds: Array = field(default_factory=lambda: np.zeros((0, 2)))
    pushed: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def on_bounds(self) -> tuple[str, ...]:
        """Names of the estimates that the data would have beyond a bound."""
        return tuple(name for name, push in zip(self.names, self.pushed) if push != 0.0)

    def interval(self, name: str, confidence: float = 0.95) -> tuple[float, float]:
        """Confidence interval of one estimate, within its bounds."""
        k = self.names.index(name)
        value, error, push = (float(x[k]) for x in (self.values, self.errors, self.pushed))
        reach = student(max(self.freedom, 1), confidence) * error
        # Where the sum of squares, push·d + (d/error)²/2 more at a distance d, is that of `reach`.
        shift = push * error**2 if push else 0.0
        ends = value - shift - np.hypot(shift, reach), value - shift + np.hypot(shift, reach)
        low, high = self.bounds[k]
        return max(float(ends[0]), float(low)), min(float(ends[1]), float(high))

    @property
    def parameters(self) -> dict[str, float]:
        """Estimates by name."""
        return {name: float(x) for name, x in zip(self.names, self.values)}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Data and fitted curves."""
        from ..plot.fit import fit_curves

        return fit_curves(self, ax)

    def __str__(self) -> str:
        lines = [f"{self.message} ({self.runs} runs, {self.freedom} degrees of freedom)"]
        for name, value, error in zip(self.names, self.values, self.errors):
            low, high = self.interval(name)
            lines.append(f"{name} = {value:.6g} ± {error:.2g}   95 %: {low:.6g} … {high:.6g}")
            if name in self.on_bounds:
                lines[-1] += "   on its bound: the data would have it beyond"
        if not self.identifiable:
            lines.append("the data do not determine all of these; vary fewer, or measure more")
        return "\n".join(lines)


def fit(
    problem: IVP,
    times: ArrayLike,
    data: ArrayLike,
    vary: Sequence[str] | Mapping[str, float],
    *,
    observe: Callable[..., Any] | Sequence[int] | None = None,
    sigma: ArrayLike | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    method: Any = "DOP853",
    rtol: float = 1e-8,
    atol: ArrayLike = 1e-10,
    **options: Any,
) -> Fit:
    """Fit parameters and initial values of a problem to data.

    Parameters
    ----------
    problem
        With guesses as its parameters and initial values. f must be traceable.
    times, data
        Times, and what was measured there: one row for each quantity. NaN is left out.
    vary
        Names as in ``solve(…, sensitivities=…)``, with other guesses if a mapping.
    observe
        What was measured: a function g(t, y) or g(t, y, p), or numbers of components; by default
        the whole state.
    sigma
        Standard deviation of the data: a number, one for each quantity, or one for each datum. If
        it is not given, it is estimated from the residuals.
    bounds
        (lower, upper) of some of what is varied.
    method, rtol, atol, options
        Of ``solve``.

    Examples
    --------
    >>> import numpy as np
    >>> from integrators import IVP, fit
    >>> decay = IVP(lambda t, y, p: -p[0] * y, [1.0], (0.0, 2.0), params=[1.0])
    >>> t = np.linspace(0.1, 2.0, 15)
    >>> found = fit(decay, t, 3.0 * np.exp(-0.7 * t), ["p[0]", "y0[0]"])
    >>> found.values.round(6)
    array([0.7, 3. ])
    """
    from scipy.optimize import least_squares

    names, problem = tuple(vary), with_traced_f(problem)
    t = np.atleast_1d(np.asarray(times, dtype=float))
    measured = np.atleast_2d(np.asarray(data, dtype=float))
    if t.ndim != 1 or measured.ndim != 2 or measured.shape[1] != t.size:
        raise ValueError(
            f"data: expected a row of {t.size} values for each quantity, received shape "
            f"{np.shape(data)} for {t.size} times"
        )
    seen = _Observed(problem, observe, measured.shape[0])
    given = ~np.isnan(measured)
    if np.count_nonzero(given) < len(names):
        raise ValueError(
            f"{np.count_nonzero(given)} data cannot determine {len(names)} parameters; vary fewer"
        )
    weights = 1.0 / _deviations(sigma, measured)
    values_of = _Values(problem, names)
    guess = np.array([vary[k] for k in names]) if isinstance(vary, Mapping) else values_of.start
    limits = _limits(bounds or {}, names, guess)
    kept: dict[bytes, tuple[Array, Array]] = {}
    counted = [0]

    def evaluated(x: Array) -> tuple[Array, Array]:
        key = np.asarray(x, dtype=float).tobytes()
        if key not in kept:
            kept.clear()
            counted[0] += 1
            kept[key] = _model(values_of.problem(x), names, t, seen, method, rtol, atol, options)
        return kept[key]

    def residuals(x: Array) -> Array:
        return ((evaluated(x)[0] - measured) * weights)[given]

    def jacobian(x: Array) -> Array:
        return (evaluated(x)[1] * weights[..., None])[given]

    scale = np.where(guess == 0.0, 1.0, np.abs(guess))
    found = least_squares(residuals, guess, jacobian, bounds=(*limits.T,), x_scale=scale)
    model, slopes = evaluated(found.x)
    J = (slopes * weights[..., None])[given]
    freedom = int(np.count_nonzero(given) - len(names))
    covariance, identifiable = _covariance(J, scale)
    variance = 1.0
    if sigma is None:
        left = float(residuals(found.x) @ residuals(found.x))
        variance = left / freedom if freedom > 0 else np.nan
    covariance = covariance * variance
    errors = np.sqrt(np.diag(covariance))
    uphill = J.T @ residuals(found.x) / (variance if variance > 0.0 else 1.0)
    return Fit(
        names,
        np.asarray(found.x),
        errors,
        covariance,
        values_of.problem(found.x),
        t,
        measured,
        model,
        (model - measured) * weights,
        freedom,
        bool(found.success),
        str(found.message),
        counted[0],
        identifiable,
        seen.labels,
        limits,
        _pushed(found.x, limits, errors, uphill),
    )


def _limits(bounds: Mapping[str, Any], names: Sequence[str], guess: Array) -> Array:
    """Lower and upper bounds, a row for each name."""
    for name in bounds:
        if name not in names:
            raise ValueError(f"bounds: {name!r} is not varied{suggest(name, names)}")
    limits = np.array([bounds.get(name, (-np.inf, np.inf)) for name in names], dtype=float)
    for name, (low, high), start in zip(names, limits.reshape(-1, 2), guess):
        if not low < high:
            raise ValueError(f"bounds: expected lower < upper for {name}, received {low}, {high}")
        if not low <= start <= high:
            raise ValueError(
                f"bounds: the guess {start:g} of {name} lies outside of {low:g} … {high:g}; give "
                f"another one: vary={{{name!r}: …}}"
            )
    return limits


def _pushed(x: Array, limits: Array, errors: Array, uphill: Array) -> Array:
    """Slope of the sum of squares at estimates that it drives against a bound; others have 0."""
    near = ON_BOUND * np.where(np.isfinite(errors), errors, 0.0)
    low = (x - limits[:, 0] <= near) & (uphill > 0.0)
    high = (limits[:, 1] - x <= near) & (uphill < 0.0)
    return np.where(low | high, uphill, 0.0)


def _model(
    problem: IVP,
    names: Sequence[str],
    t: Array,
    seen: _Observed,
    method: Any,
    rtol: float,
    atol: Any,
    options: dict[str, Any],
) -> tuple[Array, Array]:
    """What a problem gives at the times of the data, and its derivatives, behind the last axis."""
    run = solve(
        problem,
        method=method,
        rtol=rtol,
        atol=atol,
        t_eval=t,
        sensitivities=names,
        throw=True,
        **options,
    )
    assert run.sensitivities is not None
    if run.t.size < t.size:
        raise ValueError(f"the run ended before the last of the data: {run.message}")
    shifts = [_direction_p(problem, name) for name in names]
    columns = [run.sensitivities[name] for name in names]
    return seen.values(problem, t, run.y, columns, shifts)


def _direction_p(problem: IVP, name: str) -> Array:
    from ...runs.sensitivities.forward import _direction

    return _direction(problem, name)[0]


class _Values:
    """What is varied, put into a problem."""

    def __init__(self, problem: IVP, names: Sequence[str]) -> None:
        self.base, self.names = problem, names
        self.own: Any = None
        known = dict(zip(getattr(problem, "parameter_names", ()), problem.params))
        if any(name in known for name in names):
            self.own = getattr(problem, "with_values")  # noqa: B009
            missing = [name for name in names if name not in known]
            if missing:
                raise ValueError(
                    f"vary: {missing[0]!r} is no parameter of the family; they are "
                    f"{', '.join(known)}"
                )
            self.start = np.array([known[name] for name in names])
            return
        from ...runs.sensitivities.forward import _direction

        rows = [_direction(problem, name) for name in names]
        self.dp, self.dy0 = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
        self.start = self.dp @ problem.params + self.dy0 @ problem.y0

    def problem(self, x: Array) -> IVP:
        """The problem with values x."""
        if self.own is not None:
            return self.own(dict(zip(self.names, map(float, x))))
        change = np.asarray(x) - self.start
        return self.base.with_(
            params=self.base.params + change @ self.dp, y0=self.base.y0 + change @ self.dy0
        )


class _Observed:
    """What was measured, as a function with derivatives."""

    def __init__(self, problem: IVP, observe: Any, rows: int) -> None:
        from ...tracing import traced

        self.n, self.k = problem.n, problem.params.size
        names = problem.state_names or [f"y[{i}]" for i in range(self.n)]
        if observe is None:
            observe = range(self.n)
        self.function: Any = None
        if callable(observe):
            takes = self.k > 0 and accepts_params(observe)

            def value(t: Any, y: Any, p: Any = ()) -> Any:
                result = observe(t, y, p) if takes else observe(t, y)
                return np.reshape(np.asarray(result), (rows,))

            self.function = traced(value, n=self.n, params=self.k, outputs=rows)
            self.labels = tuple(f"quantity {i}" for i in range(rows))
            return
        self.components = [int(i) for i in observe]
        if len(self.components) != rows:
            raise ValueError(
                f"data: expected {len(self.components)} rows, one for each component that is "
                f"observed, received {rows}; say which by observe=[…]"
            )
        self.labels = tuple(str(names[i]) for i in self.components)

    def values(
        self, problem: IVP, t: Array, y: Array, columns: list[Array], shifts: list[Array]
    ) -> tuple[Array, Array]:
        """Values at all times, a row for each quantity; and derivatives."""
        if self.function is None:
            parts = [S[self.components] for S in columns]
            return y[self.components], np.stack(parts, axis=-1)
        p = (problem.params,) if self.k else ()
        g, values, slopes = self.function, [], []
        for i, time in enumerate(map(float, t)):
            values.append(g(time, y[:, i], *p))
            by_y = g.jacobian()(time, y[:, i], *p)
            moved = [by_y @ S[:, i] for S in columns]
            if self.k:
                by_p = g.parameter_jacobian()(time, y[:, i], *p)
                moved = [a + by_p @ shift for a, shift in zip(moved, shifts)]
            slopes.append(np.array(moved).T)
        return np.array(values).T, np.array(slopes).transpose(1, 0, 2)


def _deviations(sigma: Any, data: Array) -> Array:
    if sigma is None:
        return np.ones_like(data)
    given = np.asarray(sigma, dtype=float)
    given = given[:, None] if given.ndim == 1 and given.size == len(data) else given
    wide = np.broadcast_to(given, data.shape)
    if not (np.isfinite(wide).all() and (wide > 0.0).all()):
        raise ValueError(f"sigma: expected positive numbers, received {sigma!r:.80}")
    return np.array(wide)


def _covariance(J: Array, scale: Array) -> tuple[Array, bool]:
    """(JᵀJ)⁻¹ by singular values of the scaled J, and whether all directions are determined."""
    _, sizes, V = np.linalg.svd(J * scale, full_matrices=False)
    good = sizes > UNIDENTIFIED * sizes.max(initial=0.0)
    inverse = np.where(good, 1.0 / np.where(good, sizes, 1.0), np.inf)
    with np.errstate(invalid="ignore"):
        half = (V.T * np.where(np.isfinite(inverse), inverse, 0.0)) * scale[:, None]
        covariance = half @ half.T
        if not good.all():
            lost = np.abs(V[~good]).max(axis=0) > UNIDENTIFIED
            covariance[lost, :] = covariance[:, lost] = np.nan
            covariance[lost, lost] = np.inf
    return covariance, bool(good.all())
