"""One time step: motion without contact, then impulses that let Coulomb's law hold at its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from integrators.kernels import OnWorkspace

from ...checks import Array
from ...dynamics.acting import own_rates
from ...dynamics.loops.closed_loop import REGULARISATION
from ...dynamics.loops.multipliers import ALPHA, BETA, EPSILON
from ...dynamics.storage.loading import load, load_forces
from ..accelerations import CLOSED_SPEED
from ..cones import coulomb
from ..impacts import ENERGY_ROUNDING, exchange
from ..lcp import LCPError, solve_lcp
from ..workspace import contacts_of
from .motion import begin, carry, half_way, moved, next_velocity
from .rows import approach, closed_contacts, rows_of_active
from .sweeps import ACCURACY, FEW, OF_MANY, impulses_by_sweeps, velocities_after
from .workspace import StepWorkspace, dense_rows, make_room, step_workspace

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["Stepped", "TimeStepper"]

_begin = OnWorkspace(begin, StepWorkspace)
_half_way = OnWorkspace(half_way, StepWorkspace)
_next_velocity = OnWorkspace(next_velocity, StepWorkspace, returns=True)
_moved = OnWorkspace(moved, StepWorkspace)
_closed = OnWorkspace(closed_contacts, StepWorkspace)
_approach = OnWorkspace(approach, StepWorkspace)
_rows = OnWorkspace(rows_of_active, StepWorkspace)
_sweeps = OnWorkspace(impulses_by_sweeps, StepWorkspace, returns=True)
_carry = OnWorkspace(carry, StepWorkspace)
_after = OnWorkspace(velocities_after, StepWorkspace)

#: Velocities between impacts are found when they change by less than this part of themselves, own
#: states of elements by less than this part of themselves or of one.
FOUND = 1e-13
ITERATIONS = 100

#: Sweeps that end nowhere are followed by the exact algorithm up to so many points, …
EXACT = 8
#: … at more they are repeated so often, until the law lacks no more than this part of the largest
#: speed: arches in a heap are nearly singular.
PATIENCE, ENOUGH = 20, 3e-3


class Stepped(NamedTuple):
    """What a step has found; `approach` are the rates of the gaps of the contacts before it."""

    q: Array
    v: Array
    contacts: Array
    approach: Array
    impulses: Array
    sweeps: int


class TimeStepper:
    """Takes steps with a model; a thread has one to itself."""

    def __init__(
        self,
        model: Model,
        forces: Callable[..., tuple[Any, Any]] | None = None,
        law: str = "newton",
    ) -> None:
        self.model, self.forces, self.law = model, forces, law
        self._local = threading.local()

    @property
    def workspace(self) -> StepWorkspace:
        """Workspace of the calling thread."""
        tree = self.model.tree.workspace
        found: StepWorkspace | None = getattr(self._local, "workspace", None)
        if found is None or found.q is not tree.q:
            found = self._local.workspace = step_workspace(contacts_of(self.model))
        return found

    def step(self, t: float, q: Array, v: Array, h: float, p: Any = ()) -> Stepped:
        """State after a step."""
        w = self.workspace
        self._between_impacts(w, t, q, v, h, p)
        _half_way(w)
        _closed(w)
        n = int(w.counts[0])
        make_room(w, n)
        _moved(w)
        w.counts[1] = 0
        if n:
            w.t[0] = t + h
            _approach(w)
            _rows(w)
            bounced = self._impacts(w, n)
            self._impulses(w, n)
            w.impulse[: 3 * n] += bounced
            _after(w)
            _carry(w)
            w.t[0] = t + 0.5 * h
            _moved(w)
        else:
            w.kept[:] = 0.0
        if self.model.n_states:
            _half_way(w)
            own = self._own_states(w, h)
            _moved(w)
            w.q[-len(own) :] = own
        return Stepped(
            w.q.copy(),
            w.v_end.copy(),
            w.active[:n].copy(),
            w.before[: 3 * n : 3].copy(),
            w.impulse[: 3 * n].reshape(n, 3).copy(),
            int(w.counts[1]),
        )

    def _between_impacts(
        self, w: StepWorkspace, t: float, q: Array, v: Array, h: float, p: Any
    ) -> None:
        """v_end and q_middle without contact."""
        model = self.model
        load(model, q, v, t)
        _begin(w)
        w.span[0], w.t[0] = h, t + 0.5 * h
        w.given_tau[:] = 0.0
        if model.bonds:
            w.stabilise[ALPHA], w.stabilise[BETA], w.stabilise[EPSILON] = 0.0, 0.0, REGULARISATION
        f_ext, late = None, 0.0
        for _ in range(ITERATIONS):
            _half_way(w)
            if model.n_states:
                own = self._own_states(w, 0.5 * h)
                middle = w.q_middle[-len(own) :]
                late = np.max(np.abs(own - middle) / np.maximum(np.abs(own), 1.0))
                w.q[-len(own) :] = middle[:] = own
            if self.forces is not None:
                tau, f_ext = self.forces(t + 0.5 * h, w.q.copy(), w.v.copy(), p)
                w.given_tau[:] = 0.0 if tau is None else tau
            load_forces(model, model.tree.workspace, f_ext)
            change = np.maximum(_next_velocity(w), late)
            if change <= FOUND:
                return
            if not change < np.inf:
                break
        raise ArithmeticError(
            f"MoreauJean: the motion between impacts from t = {t:.6g} was not found; step = {h:g} "
            "is too long for how fast bodies turn, or for stiff springs and dampers: take a "
            "shorter one"
        )

    def _own_states(self, w: StepWorkspace, span: float) -> Array:
        """Own states of elements after a time, with the rates that they have half way."""
        model = self.model
        q, v = w.q.copy(), w.v.copy()
        rates = own_rates(model, float(w.t[0]), q, v)
        w.q[:], w.v[:] = q, v
        return np.asarray(w.q_start[model.nq - model.n_states :] + span * rates)

    def _impacts(self, w: StepWorkspace, n: int) -> Array:
        """Impulses where points come in that rebound, as at an instant; `free_speed` after them.

        Speeds that rebounds leave are those that the points are to have at the end of the step.
        """
        contacts = contacts_of(self.model)
        taking = w.active[:n]
        u, free, e = w.before[: 3 * n], w.free_speed[: 3 * n], contacts.restitution[taking]
        lacks = ACCURACY if n <= FEW else ENOUGH
        limit = max(CLOSED_SPEED * contacts.speed, lacks * max(np.abs(u).max(), np.abs(free).max()))
        if not (e[u[::3] < -limit] > 0.0).any():
            return np.zeros(3 * n)
        Y, mu = dense_rows(w), contacts.friction[taking]
        names = [contacts.names[c] for c in taking]
        quickly = (lambda some, b: _some_impulses(w, n, some, b)) if mu.any() else None
        rounding = ENERGY_ROUNDING if n <= FEW else ENOUGH  # of the law that sweeps leave
        r, after, _ = exchange(Y, Y.T, u, mu, e, self.law, limit, names, quickly, rounding)
        free += after - u
        free[::3] -= np.where(r[::3] > 0.0, np.maximum(after[::3], 0.0), 0.0)
        return r

    def _impulses(self, w: StepWorkspace, n: int) -> None:
        """Impulses of the points that take part, in `impulse`; nothing rebounds."""
        b, mu = w.free_speed[: 3 * n], w.rough[:n]
        if not mu.any():
            Y = dense_rows(w)[::3]
            found = solve_lcp(Y @ Y.T, b[::3].copy(), start=w.impulse[: 3 * n : 3] > 0.0)
            w.impulse[: 3 * n] = 0.0
            w.impulse[: 3 * n : 3] = found.z
            return
        lacks = _sweeps(w)
        if lacks > ACCURACY and n <= EXACT:
            rows = dense_rows(w)
            try:
                w.impulse[: 3 * n] = coulomb(rows @ rows.T, b.copy(), mu.copy()).r.ravel()
                return
            except LCPError:
                pass
        again, enough = 0, ENOUGH if n > FEW else OF_MANY
        while lacks > enough and again < PATIENCE:
            lacks, again = _sweeps(w), again + 1
        if not lacks <= ENOUGH:
            raise LCPError(
                f"no impulses of Coulomb friction at the {n} contacts were found (the law lacks "
                f"{lacks:.1e} of the largest speed); take a shorter step, or less friction"
            )


def _some_impulses(w: StepWorkspace, n: int, some: Array, b: Array) -> Array | None:
    """Impulses at some of the n points by sweeps, with speeds b; None if they end nowhere."""
    own, free = w.own[:n].copy(), w.free_speed[: 3 * n].copy()
    w.own[:n][~some] = 0.0  # a point that answers nothing is passed over
    w.free_speed[: 3 * n], kept = b, w.impulse[: 3 * n].copy()
    w.impulse[: 3 * n] = 0.0
    found = _sweeps(w) <= (ACCURACY if n <= FEW else OF_MANY)
    impulses = w.impulse[: 3 * n].copy() if found else None
    w.own[:n], w.free_speed[: 3 * n], w.impulse[: 3 * n] = own, free, kept
    return impulses
