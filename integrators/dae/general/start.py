"""Consistent starts: values that satisfy the equations and all their hidden constraints.

The unknowns are X, all derivatives up to the leading ones; the equations are all residuals of the
derivative array. Values given as fixed stay; the others change as little as possible, where a value
given as a guess weighs a thousand times as much as one that was not given at all. Damped Newton
steps of least length lead to the constraints, then the point moves along them towards the guess.
Where that fails, the residuals of the first point are faded out (continuation), and if that fails,
too, other values are tried for what was not given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import suggest
from .derivative_array import DerivativeArray
from .equations import derivative_name
from .pattern.structure import StructureError

__all__ = ["Start", "consistent", "nearest"]

Array = NDArray[np.float64]

NOT_GIVEN = 1e3  # such a change of a value that was not given counts as 1 of one that was
LEADING = 1e6  # the same for leading derivatives, which follow from the others
CONSISTENT = 1e-9  # a residual below this part of its terms is none
ROUNDING = 1e-15  # the same for what evaluating it leaves
RANK = 1e-12  # singular values below this part of the largest are rounding errors
SAME = 1e-12  # a fixed value that moves by less has stayed
MOST_STEPS = 60
TRIES = 6  # with other values for what was not given
LARGEST_DENSE = 500


@dataclass(frozen=True, eq=False)
class Start:
    """A consistent start, and how it was found.

    Attributes
    ----------
    t, params
        Where the equations hold.
    X
        All derivatives up to the leading ones.
    names
        Their names.
    fixed, given
        Names of values that were fixed, and that were given as guesses.
    changes
        How far guesses moved, by name.
    residuals
        What is left of every equation, hidden ones included, by name.
    remarks
        What else there is to say.
    """

    t: float
    X: Array
    names: tuple[str, ...]
    n: int
    params: Array
    fixed: tuple[str, ...]
    given: tuple[str, ...]
    changes: Mapping[str, float]
    residuals: Mapping[str, float]
    remarks: tuple[str, ...] = ()

    @property
    def y(self) -> Array:
        """The unknowns themselves."""
        return self.X[: self.n].copy()

    @property
    def values(self) -> dict[str, float]:
        """All values by name."""
        return {name: float(x) for name, x in zip(self.names, self.X)}

    def with_params(self, array: DerivativeArray, params: Array, near: Array | None) -> Start:
        """Return the start for other parameters: fixed values stay.

        `near` is the nearest consistent X, and will do if no fixed value moved.
        """
        held = [_place(self.names, name) for name in self.fixed]
        if near is not None and np.allclose(near[held], self.X[held], rtol=SAME, atol=SAME):
            moved = dict(zip(self.names, near - self.X))
            residuals = array.residuals(self.t, near, params)
            return replace(
                self,
                X=near,
                params=np.array(params, dtype=float),
                changes={name: x + moved[name] for name, x in self.changes.items()},
                residuals={name: float(r) for name, r in zip(array.row_names, residuals)},
            )
        fixed = {name: self[name] for name in self.fixed}
        guess = {name: self[name] - self.changes[name] for name in self.given}
        return consistent(array, self.t, fixed, guess, params, self.X)

    def __getitem__(self, name: str) -> float:
        return float(self.X[_place(self.names, name)])

    def __str__(self) -> str:
        width = max(len(name) for name in self.names)
        lines = [f"consistent start at t = {self.t:g}"]
        shown = list(zip(self.names, self.X))[:40]
        for name, x in shown:
            note = "fixed" if name in self.fixed else ""
            if name in self.changes:
                note = f"guess, moved by {self.changes[name]:.3g}"
            lines.append(f"  {name.ljust(width)}  {x: .12g}  {note}".rstrip())
        if len(self.names) > len(shown):
            lines.append(f"  … and {len(self.names) - len(shown):,} more")
        worst = sorted(self.residuals.items(), key=lambda item: -abs(item[1]))[:12]
        lines.append("residuals: " + ", ".join(f"{name} {r:.1e}" for name, r in worst))
        return "\n".join([*lines, *self.remarks])

    def __repr__(self) -> str:
        worst = max((abs(r) for r in self.residuals.values()), default=0.0)
        return f"<Start at t = {self.t:g}: {self.n} unknowns, residuals below {worst:.1e}>"


def _place(names: Sequence[str], name: str) -> int:
    for k, known in enumerate(names):
        if known == name:
            return k
    raise KeyError(name)


def _entries(array: DerivativeArray, given: Any, what: str) -> dict[int, float]:
    """Return values by place in X, from a dictionary or a list of all unknowns."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        values = np.asarray(given, dtype=float).ravel()
        if values.size > array.size:
            raise ValueError(
                f"{what} has {values.size} values for {array.n} unknowns; give a dictionary, "
                f"{{{array.names[0]!r}: 1.0}}"
            )
        given = dict(zip(array.names, values.tolist()))
    out = {}
    places = {name: i for i, name in enumerate(array.names)}
    for key, value in given.items():
        name = array.equations.unknowns[key] if isinstance(key, int) else str(key)
        name = name.replace("′", "'").replace("’", "'")
        if name not in places:
            hint = suggest(name, places) + _too_high(array, name)
            raise ValueError(
                f"{what}: {key!r} is no value of a start{hint}"
                f" (there are {', '.join(array.names[:20])}{', …' if array.size > 20 else ''})"
            )
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number):
            raise ValueError(f"{what}: {name} = {value!r}; expected a finite number")
        out[places[name]] = number
    return out


def _too_high(array: DerivativeArray, name: str) -> str:
    base = name.rstrip("'0123456789")
    if base in array.equations.unknowns:
        top = array.d[array.equations.unknowns.index(base)]
        return f"; the highest derivative of {base} is {derivative_name(base, top)}"
    return ""


ELSEWHERE = (0.37, -0.61, 1.13, 0.0)  # times, from that of the start, at which J is looked at
NEVER_REGULAR = (
    "it is so at every consistent point that was tried, though not elsewhere: what determines "
    "them in these equations has a factor that vanishes on all solutions, so that index and "
    "freedoms are not those of structure(). Write the equations without such factors (in place of "
    "f + φ·g, where g = 0 is another equation, write f)"
)


def consistent(
    array: DerivativeArray,
    t: float,
    fixed: Any,
    guess: Any,
    params: Array,
    around: Array | None = None,
) -> Start:
    """Find the consistent start nearest to a guess; see :meth:`integrators.DAE.consistent`.

    Values that are not given start from those of `around`, or from zeros.
    """
    held, near = _entries(array, fixed, "fixed"), _entries(array, guess, "guess")
    for place in sorted(set(held) & set(near)):
        raise ValueError(f"{array.names[place]} is both fixed and guessed; give it once")
    first = np.zeros(array.size) if around is None else around.copy()
    for place, value in {**near, **held}.items():
        first[place] = value
    weights = np.full(array.size, NOT_GIVEN)
    weights[_leading(array)] = LEADING
    for place in near:
        weights[place] = 1.0
    free = np.array([i for i in range(array.size) if i not in held], dtype=np.int64)
    solver = _Solver(array, t, params, free, weights)
    X, remarks = solver.solve(first, [i for i in free.tolist() if i not in near])
    if X is None:
        raise ValueError(_refusal(array, solver, held))
    X = _nearer(solver, X, near)
    lost = array.singular(t, X, params)
    if lost is not None:
        everywhere = _singular_on_solutions(array, t, X, params)
        advice = NEVER_REGULAR if everywhere else "start elsewhere, or look at these equations"
        raise StructureError(
            f"the system Jacobian is singular at the start (t = {t:g}): the equations "
            f"{array.structure.equation_names(lost.equations)} do not determine the leading "
            f"derivatives of {array.structure.unknown_names(lost.unknowns)} there (smallest "
            f"singular value {lost.smallest:.1e} of the largest); {advice}"
        )
    residuals = array.residuals(t, X, params)
    return Start(
        float(t),
        X,
        tuple(array.names),
        array.n,
        np.array(params, dtype=float),
        tuple(array.names[i] for i in held),
        tuple(array.names[i] for i in near),
        {array.names[i]: float(X[i] - first[i]) for i in near},
        {name: float(r) for name, r in zip(array.row_names, residuals)},
        tuple(remarks),
    )


def _nearer(solver: _Solver, X: Array, near: Mapping[int, float]) -> Array:
    """Take back what guesses moved for the sake of values that were not given.

    These had a long way to go, and weights make that cheap but not free: guesses that are
    consistent would move in the seventh digit. Now that the others are known, guesses stay if the
    others alone can satisfy the equations; if not, only what guesses must change is left.
    """
    if not near:
        return X
    again = X.copy()
    again[list(near)] = list(near.values())
    others = np.setdiff1d(solver.free, list(near))
    if others.size:
        alone = _Solver(solver.array, solver.t, solver.p, others, solver.weights)
        kept = alone.newton(again, ROUNDING)
        if kept is not None:
            return kept
    found = solver.newton(again)
    return X if found is None else solver.towards(found, again)


def _leading(array: DerivativeArray) -> list[int]:
    return [array.place[j, array.d[j]] for j in range(array.n)]


def nearest(array: DerivativeArray, t: float, X: Array, params: Array, loose: Any = ()) -> Array:
    """Return the consistent X nearest to a given one; raises where there is none.

    Leading derivatives, and the places in `loose`, are not given and follow from the others.
    """
    free = np.arange(array.size)
    weights = np.ones(array.size)
    weights[_leading(array)] = LEADING
    weights[np.asarray(loose, dtype=np.int64)] = LEADING
    solver = _Solver(array, t, params, free, weights)
    found, _ = solver.solve(np.asarray(X, dtype=float), [])
    if found is None:
        raise ValueError(_refusal(array, solver, {}))
    return found


def _singular_on_solutions(array: DerivativeArray, t: float, X: Array, params: Array) -> bool:
    """Whether J is singular at other consistent points, too, at other times and values."""
    rng = np.random.default_rng(16)
    free = np.arange(array.size)
    weights = np.full(array.size, NOT_GIVEN)
    found = 0
    for shift in ELSEWHERE:
        around = X + rng.uniform(-1.0, 1.0, X.size) * np.maximum(1.0, np.abs(X))
        with np.errstate(all="ignore"):
            other, _ = _Solver(array, t + shift, params, free, weights).solve(around, [])
            if other is None:
                continue
            if array.singular(t + shift, other, params) is None:
                return False
        found += 1
    return found >= 2


def _refusal(array: DerivativeArray, solver: _Solver, held: Mapping[int, float]) -> str:
    """Say which equations are left with which residuals."""
    X, r = solver.best
    part = np.abs(r / solver.size(X))
    order = [i for i in np.argsort(-part)[:6] if not part[i] <= CONSISTENT]
    left = ", ".join(f"{array.row_names[i]} = {r[i]:.6g}" for i in order)
    fixed = ", ".join(f"{array.names[i]} = {x:.6g}" for i, x in held.items())
    cause = f"with {fixed} fixed" if held else "near the guess"
    counted = "s" if "," in left else ""
    return (
        f"no consistent start was found at t = {solver.t:g} {cause}: residual{counted} {left} "
        f"stay{'' if counted else 's'} (a prime is a time derivative: a hidden constraint). "
        + ("Fix fewer values, or other ones" if held else "Give a better guess")
        + "; structure() says what may be given"
    )


class _Solver:
    """Newton steps of least length on the derivative array."""

    def __init__(
        self,
        array: DerivativeArray,
        t: float,
        params: Array,
        free: NDArray[np.int64],
        weights: Array,
    ) -> None:
        self.array, self.t, self.p = array, t, params
        self.free, self.weights = free, weights
        self.best: tuple[Array, Array] = (np.zeros(0), np.zeros(0))
        self.target: Array | float = 0.0  # residuals aimed at, during continuation

    def residual(self, X: Array) -> Array:
        return np.asarray(self.array.residuals(self.t, X, self.p) - self.target)

    def size(self, X: Array) -> Array:
        """Sizes of the terms that cancel in the residuals, at least about 1 for each unit of X."""
        A = abs(self.array.full_jacobian(self.t, X, self.p))
        return np.asarray(A @ np.maximum(np.abs(X), 1e-3)) + 1e-3 * np.maximum(
            1e-9, np.asarray(A.max(axis=1).todense()).ravel()
        )

    def solve(self, first: Array, loose: list[int]) -> tuple[Array | None, list[str]]:
        """Return a consistent X near the first one, or None; `loose` may start elsewhere."""
        rng = np.random.default_rng(1)
        for attempt in range(TRIES):
            start = first.copy()
            if attempt:
                if not loose:
                    break
                start[loose] += rng.normal(0.0, 0.3 * 1.6**attempt, len(loose))
            X = self.newton(start)
            remarks = []
            if X is None and attempt < 2:
                X = self.continued(start)
                remarks.append("found by continuation: the residuals of the guess were faded out")
            if X is not None:
                if attempt:
                    remarks.append(
                        "the values that were not given started from random ones: from zeros there "
                        "was no way to a consistent start, and there may be others than this"
                    )
                return self.towards(X, first), remarks
        return None, []

    def newton(self, X: Array, good: float = CONSISTENT) -> Array | None:
        """Damped Newton iteration with steps of least weighted length."""
        r = self.residual(X)
        if not np.isfinite(r).all():
            self._remember(X, r)
            return None
        stalled = 0
        for _ in range(MOST_STEPS):
            scale = self.size(X)
            if not np.isfinite(scale).all():
                return None
            if np.max(np.abs(r) / scale, initial=0.0) <= ROUNDING:
                break
            step = self.least(X, -r)
            before = float(np.linalg.norm(r / scale))
            damping, found = 1.0, False
            while damping > 1e-5:
                trial = X.copy()
                trial[self.free] += damping * step
                new = self.residual(trial)
                if np.isfinite(new).all():
                    after = float(np.linalg.norm(new / scale))
                    if after <= (1.0 - 0.1 * damping) * before:
                        found = True
                        break
                damping *= 0.5
            if not found:
                break
            X, r = trial, new
            stalled = stalled + 1 if damping < 0.1 else 0
            if stalled > 12:
                break
        self._remember(X, r)
        return X if np.max(np.abs(r) / self.size(X), initial=0.0) <= good else None

    def _remember(self, X: Array, r: Array) -> None:
        """Keep the best point so far, for a message."""
        if isinstance(self.target, float) and (
            not self.best[1].size or np.linalg.norm(r) < np.linalg.norm(self.best[1])
        ):
            self.best = X, r

    def continued(self, first: Array) -> Array | None:
        """Fade out the residuals of the first point in steps."""
        origin = self.residual(first)
        if not np.isfinite(origin).all():
            return None
        X, s, length = first, 0.0, 0.25
        while s < 1.0 and length > 1e-3:
            trial = min(1.0, s + length)
            self.target = (1.0 - trial) * origin if trial < 1.0 else 0.0
            found = self.newton(X)
            if found is None:
                length /= 2
            else:
                X, s, length = found, trial, 1.5 * length
        self.target = 0.0
        return X if s >= 1.0 else None

    def towards(self, X: Array, first: Array) -> Array:
        """Move along the constraints towards the guess, while that brings it nearer."""
        w = self.weights[self.free]

        def distance(Z: Array) -> float:
            return float(np.linalg.norm((Z[self.free] - first[self.free]) / w))

        here, part = distance(X), 1.0
        for _ in range(MOST_STEPS):
            wish = first[self.free] - X[self.free]
            B = self.array.full_jacobian(self.t, X, self.p)[:, self.free]
            move = wish - self.least(X, B @ wish)
            if np.linalg.norm(move / w) <= 1e-7 * (1e-7 + here):
                break
            trial = X.copy()
            trial[self.free] += part * move
            found = self.newton(trial)
            if found is not None and distance(found) < here * (1.0 - 1e-9):
                X, here = found, distance(found)
                part = min(1.0, 2.0 * part)
            elif part > 1e-2:
                part /= 4.0
            else:
                break
        return X

    def least(self, X: Array, wanted: Array) -> Array:
        """Return the shortest weighted step of the free values that changes residuals as wanted."""
        w = self.weights[self.free]
        B = self.array.full_jacobian(self.t, X, self.p)[:, self.free].multiply(w).tocsr()
        rows = np.asarray(abs(B).max(axis=1).todense()).ravel()
        scale = 1.0 / np.where(rows > 0, rows, 1.0)
        B = B.multiply(scale[:, None]).tocsr()
        wanted = wanted * scale
        if max(B.shape) <= LARGEST_DENSE:
            from scipy.linalg import lstsq

            step = lstsq(B.toarray(), wanted, cond=RANK, lapack_driver="gelsd")[0]
        else:
            step = _sparse_least(B, wanted)
        return np.asarray(w * step)


def _sparse_least(B: Any, wanted: Array) -> Array:
    """Return the shortest x with B x = wanted, by the sparse system [I Bᵀ; B 0]."""
    from scipy.sparse import bmat, eye
    from scipy.sparse.linalg import lsqr, splu

    m, n = B.shape
    try:
        K = bmat([[eye(n), B.T], [B, None]], format="csc")
        x = splu(K).solve(np.concatenate([np.zeros(n), wanted]))[:n]
    except RuntimeError:  # singular: equations that depend on each other
        x = np.full(n, np.nan)
    if not np.isfinite(x).all() or np.linalg.norm(B @ x - wanted) > 1e-6 * np.linalg.norm(wanted):
        x = lsqr(B, wanted, atol=1e-14, btol=1e-14, iter_lim=4 * (m + n))[0]
    return np.asarray(x)
