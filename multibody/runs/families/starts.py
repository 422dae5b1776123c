"""Starts of many models at once: loops closed and velocities consistent, for every row of p.

What :func:`~multibody.assemble` and :func:`~multibody.consistent_velocity` do for one model is done
here for all rows side by side: gaps, their Jacobian and the inertia are traced functions of (q, p),
evaluated on columns of numbers, and each row takes its own Gauss–Newton steps, of its own length,
until its own loops are closed. A row that does not get there in this way (whole turns to be taken
back, a loop that closes the wrong way round, quaternions) is left to ``assemble``, which tries
longer and says what is wrong. No row depends on which others are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.tracing import traced

from ...checks import Array, ArrayLike
from ...dynamics.loops.assembly import (
    CLOSED,
    MOST_STEPS,
    _listed,
    _movable,
    assemble,
    binds_positions,
    consistent_velocity,
)
from ...dynamics.loops.closed_loop import RANK_TOLERANCE, mobility, weighted
from ...dynamics.loops.constraints.gaps import closure_kernel
from ...dynamics.loops.constraints.joints import relative_pose
from ...dynamics.trees.crba import crba_kernel
from .family import FamilyRows

if TYPE_CHECKING:
    from .family import ModelFamily

__all__ = ["Starts", "closure_program", "starts"]

#: Steps shorter than this part of a Gauss–Newton step are not tried, as in ``assemble``.
SHORTEST = 1e-4

Fixed = str | int | Iterable[str | int]


@dataclass(frozen=True)
class Starts:
    """Initial states of many runs.

    Attributes
    ----------
    y0
        A state [q; v] in each row; NaN where there is none.
    p
        Rows of the problem's parameters.
    messages
        Why there is none, or ""; also for rows that have no model.
    """

    y0: Array
    p: Array
    messages: Array

    @property
    def good(self) -> Array:
        """Whether each row can be run."""
        return self.messages == ""


def starts(
    family: ModelFamily,
    rows: Any,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    *,
    positions: Mapping[str | int, ArrayLike] | None = None,
    speeds: Mapping[str | int, ArrayLike] | None = None,
    t: float = 0.0,
) -> Starts:
    """Return consistent starts for all rows of a family.

    Parameters
    ----------
    family
        The family.
    rows
        Parameters as in :meth:`ModelFamily.rows`, or what :meth:`ModelFamily.parameters` made of
        them.
    q0, v0
        Guesses: one for all (neutral and at rest if not given), or one in each row.
    positions, speeds
        Bodies whose joint has a given position or speed, which the loops must not change: a number
        (or numbers of the joint) for all rows, or one in each row.
    t
        Time, for joints that time moves.

    Examples
    --------
    >>> from multibody import ModelFamily
    >>> family = ModelFamily("four_bar", ["crank", "coupler"])
    >>> found = family.starts([[1.0, 2.0], [1.1, 2.1], [1.0, 9.0]], [0.9, -0.7, 0.8],
    ...                       positions={"crank": 0.9}, speeds={"crank": 4.0})
    >>> found.good.tolist(), found.y0[:2, 0].tolist(), found.y0[:2, 3].tolist()
    ([True, True, False], [0.9, 0.9], [4.0, 4.0])
    """
    given = rows if isinstance(rows, FamilyRows) else family.parameters(rows)
    model, m = family.base, len(given.p)
    q = _each_row(_with_own_states(model, q0), m, model.nq, "q0")
    v = _each_row(np.zeros(model.nv) if v0 is None else v0, m, model.nv, "v0")
    _set(model, positions, q, model.q_index, "positions")
    _set(model, speeds, v, model.v_index, "speeds")
    messages = given.messages.copy()
    wrong = (messages == "") & ~(np.isfinite(q).all(axis=1) & np.isfinite(v).all(axis=1))
    messages[wrong] = "the start is not finite; give finite positions and speeds"
    good = messages == ""
    q[~good], v[~good] = np.nan, np.nan
    if model.quaternion_places:
        for k in np.flatnonzero(good):
            q[k] = model.normalise(q[k])
    if model.bonds and good.any():
        at = np.flatnonzero(good)
        task = _Closing(family, given.p[at], t, list(positions or ()), list(speeds or ()))
        q[at], v[at], messages[at] = task.close(q[at], v[at])
    return Starts(np.hstack([q, v]), given.p, messages)


def _with_own_states(model: Any, q0: ArrayLike | None) -> Array:
    """Guesses of positions; own states of elements that are left out have their start values."""
    neutral = model.neutral()
    q = neutral if q0 is None else np.asarray(q0, dtype=float)
    own = neutral[model.nq - model.n_states :]
    if q.ndim and q.shape[-1] == model.nq - len(own):
        q = np.concatenate([q, np.broadcast_to(own, (*q.shape[:-1], len(own)))], axis=-1)
    return q


def _each_row(values: ArrayLike, m: int, n: int, name: str) -> Array:
    array = np.asarray(values, dtype=float)
    if array.shape not in ((n,), (m, n)):
        raise ValueError(
            f"{name}: expected {n} numbers, or a row of them for each of {m} runs, received shape "
            f"{array.shape}"
        )
    return np.array(np.broadcast_to(array, (m, n)))


def _set(model: Any, given: Any, into: Array, index: tuple[slice, ...], name: str) -> None:
    """Enter given positions or speeds of some bodies."""
    for body, value in (given or {}).items():
        place = index[model.number(body) - 1]
        size, m = place.stop - place.start, len(into)
        array = np.asarray(value, dtype=float)
        if array.shape == (m,) and (size == 1 or m != size):
            array = array[:, None]
        try:
            into[:, place] = array
        except ValueError:
            raise ValueError(
                f"{name}[{body!r}]: expected {size} numbers, or so many for each of {m} rows, "
                f"received shape {array.shape}"
            ) from None


class _Closing:
    """The loops of some rows, to be closed."""

    def __init__(
        self, family: ModelFamily, p: Array, t: float, fixed: list[Any], driven: list[Any]
    ) -> None:
        self.family, self.p, self.t = family, p, t
        self.fixed, self.driven = _listed(fixed), _listed(driven)
        model = family.base
        self.rows = family.tree.acting_rows
        self.holonomic = binds_positions(model)[self.rows]
        self.movable = _movable(model, self.fixed)
        self.free = _movable(model, self.driven)
        self.by_numbers = all(b.joint.rate_is_velocity for b in model.bodies)
        self.closure = closure_program(family)

    def _evaluate(self, q: Array, at: Array, v: Array | None = None) -> dict[str, Array]:
        """Gaps, K, ν, H and sides of some rows."""
        m, nv, r = len(at), self.family.base.nv, len(self.rows)
        state = np.hstack([q, np.zeros((m, nv)) if v is None else v])
        columns = [np.full(m, self.t), *state.T, *self.p[at].T]
        values = self.closure.graph.evaluate(columns)
        flat = np.array([np.broadcast_to(x, (m,)) for x in values]).T
        ends = np.cumsum([r, r, r * nv, nv * nv])
        delta, nu, K, H, sides = np.split(flat, ends, axis=1)
        return {
            "delta": np.where(self.holonomic, delta, 0.0),
            "nu": nu,
            "K": K.reshape(m, r, nv),
            "H": H.reshape(m, nv, nv),
            "sides": sides,
        }

    def close(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Close the loops of all rows; returns positions, velocities and messages."""
        start, m = q.copy(), len(q)
        closed = self._gauss_newton(q) if self.by_numbers else np.zeros(m, dtype=bool)
        turned = np.round((q - start) / (2.0 * np.pi)).any(axis=1)
        closed &= ~turned
        messages = np.full(m, "", dtype=object)
        every = np.arange(m)
        done = self._evaluate(q, every)
        closed &= (done["sides"] > 0.0).all(axis=1)
        for k in np.flatnonzero(~closed):
            try:
                model = self.family.model(self.p[k])
                q[k] = assemble(model, start[k], self.fixed, t=self.t).q
            except Exception as error:  # this row cannot start; others may
                messages[k] = str(error) or repr(error)
        good = np.flatnonzero(messages == "")
        v[good], ranks = self._velocities(q[good], v[good], good, messages)
        for k, rank in zip(good, ranks):
            if not messages[k] and rank < len(self.rows) and self.independent(start[0]):
                messages[k] = (
                    f"{rank} of {len(self.rows)} constraints of the loops are independent at the "
                    "start of this model, and all of them at that of the nominal one; run it by "
                    "itself, with as_ivp(family.model(row), …)"
                )
        bad = messages != ""
        q[bad], v[bad] = np.nan, np.nan
        return q, v, messages

    def independent(self, guess: Array) -> bool:
        """Whether all constraints that act are independent in the nominal model.

        Then the problem of the family solves for multipliers with next to no regularisation, which
        is not for models whose constraints are dependent. This holds for a model as a whole, so
        that any guess will do.
        """
        found = self.family.tree.traced.get("family independent")
        if found is None:
            model = self.family.base
            try:
                q = assemble(model, guess, t=self.t).q
                found = mobility(model, q, t=self.t).rank == len(self.rows)
            except Exception:
                return False
            self.family.tree.traced["family independent"] = found
        return bool(found)

    def _gauss_newton(self, q: Array) -> Array:
        """Take steps as ``assembly._close`` does, in place; whether each row closed."""
        m = len(q)
        closed, before = np.zeros(m, dtype=bool), np.full(m, np.inf)
        active = np.arange(m)
        for _ in range(MOST_STEPS):
            here = self._evaluate(q[active], active)
            gap = np.abs(here["delta"]).max(axis=1, initial=0.0)
            enough = (gap <= CLOSED) | ((gap <= 1e3 * CLOSED) & (gap >= 0.5 * before[active]))
            closed[active[enough]] = True
            going = ~enough & np.isfinite(gap)
            active, gap = active[going], gap[going]
            if not active.size:
                break
            delta, K, H = (here[name][going] for name in ("delta", "K", "H"))
            u = _smallest_changes(H, K, -delta, self.movable)
            moved = self._shortened(q[active], u, delta, active)
            arrived = np.isfinite(moved).all(axis=1)
            q[active[arrived]] = moved[arrived]
            before[active] = gap
            active = active[arrived]
        return closed

    def _shortened(self, q: Array, u: Array, delta: Array, at: Array) -> Array:
        """Positions after steps u, halved until the gaps shrink; NaN where they never do."""
        size = np.linalg.norm(delta, axis=1)
        out = np.full_like(q, np.nan)
        waiting, scale = np.arange(len(q)), 1.0
        while waiting.size and scale > SHORTEST:
            trial = q[waiting]
            trial[:, : u.shape[1]] += scale * u[waiting]  # own states of elements stay
            new = self._evaluate(trial, at[waiting])["delta"]
            better = np.linalg.norm(new, axis=1) < size[waiting]
            out[waiting[better]] = trial[better]
            waiting = waiting[~better]
            scale /= 2
        return out

    def _velocities(self, q: Array, v: Array, at: Array, messages: Array) -> tuple[Array, Array]:
        """Nearest consistent velocities, and the rank of the constraints of each row."""
        if not len(at):
            return v, np.zeros(0, dtype=int)
        here = self._evaluate(q, at, v)
        K, nu = here["K"], here["nu"]
        missing = nu - np.einsum("mrk,mk->mr", K, v)
        out = v + _smallest_changes(here["H"], K, missing, self.free)
        left = np.abs(np.einsum("mrk,mk->mr", K, out) - nu)
        torn = left.max(axis=1, initial=0.0) > 1e-8 * (1.0 + np.abs(out).max(axis=1, initial=0.0))
        for k in np.flatnonzero(torn):
            try:  # to be told why
                model = self.family.model(self.p[at[k]])
                out[k] = consistent_velocity(model, q[k], v[k], self.driven, t=self.t)
            except Exception as error:
                messages[at[k]] = str(error) or repr(error)
        return out, _ranks(here["H"], K)


def _ranks(H: Array, K: Array) -> Array:
    sizes = np.linalg.svd(weighted(H, K)[1], compute_uv=False)
    return np.sum(sizes > RANK_TOLERANCE * sizes.max(axis=1, initial=0.0, keepdims=True), axis=1)


def _smallest_changes(H: Array, K: Array, target: Array, movable: Array) -> Array:
    """u with K u = target (in least squares), uᵀHu smallest, and u = 0 where not movable."""
    u = np.zeros((len(K), K.shape[2]))
    at = np.flatnonzero(movable)
    if not at.size or not K.shape[1]:
        return u
    C, Y = weighted(H[:, at][:, :, at], K[:, :, at])
    y = np.linalg.pinv(Y.mT, rcond=RANK_TOLERANCE) @ target[..., None]
    u[:, at] = np.linalg.solve(C.mT, y)[..., 0]
    return u


def closure_program(family: ModelFamily) -> Any:
    """δ, ν, K of the acting constraints, H, and the sides of the loops, of (t, [q; v], p)."""
    model, tree = family.base, family.tree
    kept = tree.traced.get("family closure")
    if kept is not None:
        return kept
    nq, nv, rows = model.nq, model.nv, tree.acting_rows

    def closure(t: Any, x: Any, p: Any) -> Any:
        with family.symbols(p):
            w = tree.symbolic()
        w.t[0], w.q[:], w.v[:] = t, x[:nq], x[nq:]
        closure_kernel(w)
        found = [*w.delta[rows], *w.nu[rows], *w.K[rows].ravel()]
        sides = [
            loop.joint.closure_side(t, relative_pose(w, k)[0]) for k, loop in enumerate(model.loops)
        ]
        crba_kernel(w)
        return np.array([*found, *w.H.ravel(), *sides])

    size = len(rows) * (2 + nv) + nv * nv + len(model.loops)
    kept = traced(closure, n=nq + nv, params=family.size, outputs=size)
    tree.traced["family closure"] = kept
    return kept
