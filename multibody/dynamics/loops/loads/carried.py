"""Elements that feel the reaction in a joint: friction of bearings, resistance of loaded wheels.

Such an element acts s times as it would for a load of one, and s = felt(R) where R is the reaction
in its joint. Reactions are affine in all s, R = R₀ + Σ Bⱼ sⱼ, because accelerations are: one state
of reactions for each element, and one without any, tell R. What is left are as many equations as
there are such elements, sᵢ = feltᵢ(R(s)), solved by Newton's method with differences.

On symbols the same is written down with a fixed number of iterations. Which constraints are
redundant cannot be looked at there: it is decided once, where the loops are closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.tracing import TracingError, traced, where

from ....checks import Array
from ...acting import CARRY, acting
from ...functions import FD, tree_joint_forces
from ...storage.loading import load_given
from ...storage.workspace import HAVE_ELEMENTS, HAVE_FORCES
from ...trees.rnea import rnea_kernel
from ...with_elements import forward_dynamics, joint_force_elements
from ..assembly import assemble
from ..closed_loop import REGULARISATION_INDEPENDENT, _row_names, mobility
from ..multipliers import ALPHA, BETA, EPSILON, constrained_kernel
from .reactions import _on_bodies, _to_joints, joint_reactions

if TYPE_CHECKING:
    from ....model import Model

__all__ = ["carry"]

MOST_ITERATIONS = 50
SETTLED = 1e-12  # change of the loads, in parts of the largest
DIFFERENCE = 1e-7
#: The same on symbols: loads are equations of a cone, nearly linear, and few iterations settle
#: them; where they do not, there is no solution or it is far away, and the run ends.
ITERATIONS, SOLVED = 10, 1e-9
#: Evaluations on numbers after which it is worth while to let machine code find the loads.
OFTEN = 30


def carry(model: Model, t: Any, q: Any, v: Any, carried: Any, parts: Any) -> None:
    """Multiply what the elements `carried` do with the loads that belong to it.

    Where there are none (friction would lock the mechanism) forces are NaN, and a run ends there.
    """
    symbolic = any(np.asarray(x).dtype == object for x in (t, q, v))
    found: Any = None if symbolic else _by_machine_code(model, t, q, v, carried)
    if found is not None:
        s, gain = found[:-1], found[-1]
    elif symbolic or (np.isfinite(q).all() and np.isfinite(v).all()):
        s, gain = _loads(model, t, q, v, carried, parts, symbolic)
    else:  # of a step that has failed already
        s, gain = np.full(len(carried), np.nan), 0.0
    for x, (here, _) in zip(s, carried):
        part = here._part
        if part.tau is not None:
            part.tau = x * part.tau
        part.wrenches = {i: x * w for i, w in part.wrenches.items()}
        part.outputs["load"], part.gain = x, gain


def _by_machine_code(model: Model, t: float, q: Array, v: Array, carried: Any) -> Array | None:
    """Loads and gain at a state of numbers; None where they have to be found one by one."""
    kept, nq = model.tree.traced, model.nq
    count = kept["loads asked for"] = kept.get("loads asked for", 0) + 1
    if count == OFTEN:
        names = [here._named.name for here, _ in carried]

        def loads(t: Any, x: Any) -> Any:
            parts = acting(model, t, x[:nq], x[nq:]).parts
            return np.array([*(parts[k].outputs["load"] for k in names), parts[names[0]].gain])

        try:
            kept["loads"] = traced(loads, n=nq + model.nv, outputs=len(names) + 1)
        except (TracingError, ValueError):  # an element of one's own that branches, say
            kept["loads"] = None
    if kept.get("loads") is None:
        return None
    found = np.asarray(kept["loads"](t, np.concatenate([q, v])))
    return found if np.isfinite(found).all() else None


def _loads(model: Model, t: Any, q: Any, v: Any, carried: Any, parts: Any, symbolic: bool) -> Any:
    """What each action is multiplied by, and how much of a load its own friction adds."""
    joints = [element.carried_by for _, element in carried]
    own = {here._named.name for here, _ in carried}
    dtype: Any = object if symbolic else float
    tau, rows = np.zeros(model.nv, dtype), np.zeros((model.n_bodies, 6), dtype)
    for name, part in parts.items():
        if name not in own:
            _add(part, tau, rows)
    reactions = (_on_symbols if symbolic else _on_numbers)(model, t, q, v, joints)

    def loaded(extra: Any) -> Any:
        force, wrenches = tau.copy(), rows.copy()
        if extra is not None:
            _add(extra, force, wrenches)
        return reactions(force, wrenches)

    without = loaded(None)
    slope = [loaded(here._part) - without for here, _ in carried]

    def felt(s: Any) -> Any:
        at = without + sum(x * b for x, b in zip(s, slope))
        return np.array([e.felt(w, here) for (here, e), w in zip(carried, at)])

    s = (_settled_on_symbols if symbolic else _settled)(felt, len(carried))
    slope_of_s = _differences(felt, s if symbolic else np.nan_to_num(s))
    gain: Any = 0.0
    for row in slope_of_s:
        gain = np.maximum(gain, sum(abs(x) for x in row))
    return s, gain


def _differences(felt: Any, s: Any) -> Any:
    """∂felt/∂s, of numbers or of symbols."""
    value, step = felt(s), DIFFERENCE * (1.0 + sum(abs(x) for x in s))
    return np.array([(felt(s + step * e) - value) / step for e in np.eye(len(s))]).T


def _settled(felt: Any, n: int) -> Array:
    """s with s = felt(s); NaN if there is none."""
    s = felt(np.zeros(n))
    for _ in range(MOST_ITERATIONS):
        try:
            change = np.linalg.solve(np.eye(n) - _differences(felt, s), felt(s) - s)
        except np.linalg.LinAlgError:
            break
        s = s + change
        if np.abs(change).max() <= SETTLED * max(float(np.abs(s).max()), 1e-300):
            break
    if not (np.isfinite(s).all() and s.min() >= 0.0 and np.allclose(felt(s), s, rtol=1e-9)):
        return np.full(n, np.nan)
    return np.asarray(s)


def _settled_on_symbols(felt: Any, n: int) -> Any:
    s = felt(np.zeros(n))
    for _ in range(ITERATIONS):
        s = s + np.linalg.solve(np.eye(n) - _differences(felt, s), felt(s) - s)
    most = SOLVED * sum(abs(x) for x in s) + SOLVED * DIFFERENCE
    for left in abs(felt(s) - s):
        s = np.array([where((left <= most) & (x >= 0.0), x, np.nan) for x in s])
    return s


def _on_numbers(model: Model, t: float, q: Array, v: Array, joints: Any) -> Any:
    """Reactions in some joints, in base coordinates, as a function of the forces that act."""
    if model.bonds:

        def of_loops(tau: Array, rows: Array) -> Array:
            found = joint_reactions(model, q, v, tau, rows, t=t, coordinates="base")
            return np.array([found[joint] for joint in joints])

        return of_loops
    X = _to_joints(model, q, t)  # only the joints that are asked for, placed once
    places = [(i - 1, X[i - 1].inverse().force_matrix()) for i in map(model.number, joints)]

    def of_tree(tau: Array, rows: Array) -> Array:
        a = FD(model, q, v, tau, rows, t=t)
        passed = tree_joint_forces(model, load_given(model, q, v, t), a, rows)
        return np.array([matrix @ passed[i] for i, matrix in places])

    return of_tree


# ---------------------------------------------------------------------- on symbols


def _on_symbols(model: Model, t: Any, q: Any, v: Any, joints: Any) -> Any:
    """The same on symbols."""
    independent: Any = None
    rest: Any = ()
    if model.bonds:
        independent, rest = _split_rows(model)
    names = [body.name for body in model.bodies] + [loop.name for loop in model.loops]
    chosen = [names.index(joint) for joint in joints]
    nb = model.n_bodies

    def state(tau: Any, rows: Any) -> Any:
        w = model.tree.symbolic(independent)
        w.t[0], w.q[:], w.v[:], w.tau[:], w.f_ext[:] = t, q, v, tau, rows
        w.switches[HAVE_FORCES] = 1
        return w

    def passed(a: Any, rows: Any) -> Any:
        """What joints of the tree pass on, in base coordinates."""
        w = state(0.0, rows)
        w.a_q[:] = a
        if w.switches[HAVE_ELEMENTS]:
            joint_force_elements(w)
        rnea_kernel(w)
        return [_moved(w.E_0[i].T @ w.force[i][:3], w.E_0[i].T @ w.force[i][3:], w.r_0[i])
                for i in range(nb)]  # fmt: skip

    def reactions(tau: Any, rows: Any) -> Any:
        w = state(tau, rows)
        if not model.bonds:
            forward_dynamics(w)
            return np.array(passed(w.a_q, rows))[chosen]
        w.stabilise[ALPHA], w.stabilise[BETA] = 0.0, 0.0
        w.stabilise[EPSILON] = REGULARISATION_INDEPENDENT
        constrained_kernel(w)
        in_loops = _of_loops(model, w, w.lam)
        wrenches = passed(w.a_q, rows + _on_bodies(model, in_loops))
        wrenches = np.array([*wrenches, *in_loops])
        if len(rest):
            wrenches = wrenches - _smallest(model, w, wrenches, independent, rest)
        return wrenches[chosen]

    return reactions


def _split_rows(model: Model) -> tuple[Array, Array]:
    """Constraints that are independent where the loops are closed, and those that follow."""
    kept = model.tree.traced
    if "carried rows" not in kept:
        if any(c.points for c in model.constraints):
            raise TracingError("constraints at points have no reactions on symbols")
        rng, found = np.random.default_rng(0), []
        for size in (0.0, 0.1, 0.3):  # some positions, one of which may be singular
            q = model.neutral()
            moved = q + size * rng.standard_normal(model.nq)
            try:
                found.append(mobility(model, assemble(model, model.normalise(moved)).q))
            except (ValueError, ArithmeticError):
                continue
        if not found:
            raise TracingError("no position was found in which the loops are closed")
        redundant = max(found, key=lambda report: report.rank).redundant
        acting, names = model.tree.acting_rows, _row_names(model)
        follows = np.array([names[r] in redundant for r in acting], dtype=bool)
        kept["carried rows"] = acting[~follows], acting[follows]
    rows: tuple[Array, Array] = kept["carried rows"]
    return rows


def _of_loops(model: Model, w: Any, multipliers: Any) -> Any:
    """Wrenches in loop joints, in base coordinates, from multipliers."""
    at = model.tree.arrays["loop_at"]
    return [
        sum((multipliers[r] * w.T_0[r] for r in range(at[k], at[k + 1])), np.zeros(6))
        for k in range(len(model.loops))
    ]


def _smallest(model: Model, w: Any, wrenches: Any, independent: Array, rest: Array) -> Any:
    """What is to be taken off wrenches, so that Σ |w|² about the joints is smallest.

    A redundant row is a combination of independent ones, K_r = Σ x_i K_i: multipliers 1 and −x_i
    hold each other.
    """
    places = [w.r_0[i] for i in range(model.n_bodies)]
    for k in range(len(model.loops)):
        s = w.loop_s[k]
        r = w.loop_r_S[k]
        places.append(r if s < 0 else w.r_0[s] + w.E_0[s].T @ r)
    K = w.K[independent]
    X = np.linalg.solve(K @ K.T, K @ w.K[rest].T)
    stress = []
    for column, row in zip(X.T, rest):
        multipliers = np.zeros(len(w.K), dtype=object)
        multipliers[independent], multipliers[row] = -column, 1.0
        in_loops = _of_loops(model, w, multipliers)
        held = -_on_bodies(model, in_loops)
        for i in range(model.n_bodies - 1, -1, -1):
            if model.bodies[i].parent:
                held[model.bodies[i].parent - 1] = held[model.bodies[i].parent - 1] + held[i]
        stress.append(np.array([*held, *in_loops]))

    def about(wrench: Any) -> Any:
        return np.concatenate([_moved(x[:3], x[3:], -p) for x, p in zip(wrench, places)])

    A = np.array([about(s) for s in stress])
    share = np.linalg.solve(A @ A.T, A @ about(wrenches))
    return sum(x * s for x, s in zip(share, stress))


def _moved(couple: Any, force: Any, r: Any) -> Any:
    """A wrench about another point, from which the first is at r."""
    x, y, z = force
    turned = [r[1] * z - r[2] * y, r[2] * x - r[0] * z, r[0] * y - r[1] * x]
    return np.concatenate([couple + np.array(turned), force])


def _add(part: Any, tau: Array, rows: Array) -> None:
    if part.tau is not None:
        tau[:] = tau + part.tau
    for i, wrench in part.wrenches.items():
        rows[i - 1] = rows[i - 1] + wrench


CARRY.append(carry)
