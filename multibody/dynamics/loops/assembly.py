"""Closing loops: consistent positions and velocities of mechanisms with loop joints.

Positions are found by Gauss–Newton steps on the gaps δ(q), each the smallest in the sense of the
inertia, Σ uᵀHu; so the mechanism moves as it would if it were released. Velocities are corrected
by an impulse: v − H⁻¹Kᵀ(KH⁻¹Kᵀ)⁺(Kv − ν). K, which comes along the tree, stands for ∂δ: it differs
from that by no more than the size of the gap, so that steps converge as fast as with the exact one.

The gap of two orientations vanishes at half a turn, too, and from beyond a quarter turn the steps
lead there. Loops that closed the wrong way round are therefore turned over, along the axis and
by the angle that is missing, and closed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.orientation.quaternions import from_matrix
from ...checks import Array, ArrayLike, real_scalar
from ..functions import crba
from ..motion import run_forward
from ..storage.loading import load_given
from .closed_loop import RANK_TOLERANCE, constraints, need_loops
from .constraints.joints import relative_pose

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["Assembly", "AssemblyError", "assemble", "consistent_velocity", "project_state"]

#: Gaps below this (metres, radians) count as closed.
CLOSED = 1e-12
#: Larger tolerances would call loops closed that anybody sees open.
MOST_OPEN = 1e-2
MOST_STEPS = 100
#: Further starts, away from the guess, if a loop does not close or closes the wrong way round.
RESTARTS = 24
#: Turning a loop over: most steps, and the angle of each.
TURNS, TURN = 30, 0.3


class AssemblyError(ValueError):
    """A loop cannot be closed from where the search started."""


@dataclass(frozen=True)
class Assembly:
    """A consistent position, and how it was found.

    Attributes
    ----------
    q
        Position with all loops closed.
    gap
        Largest |δ| that is left.
    iterations
        Gauss–Newton steps taken.
    moved
        Largest change of a coordinate from the guess.
    branch
        +1 or −1: sign of the determinant of the dependent columns of K. It changes only at
        singular positions, so two positions with different signs lie on different branches.
    """

    q: Array
    gap: float
    iterations: int
    moved: float
    branch: int


def assemble(
    model: Model,
    guess: ArrayLike | None = None,
    fixed: str | int | Iterable[str | int] = (),
    *,
    t: float = 0.0,
    tolerance: float = CLOSED,
) -> Assembly:
    """Close the loops of a model.

    Angles end within half a turn of the guess, where whole turns make no difference.

    Parameters
    ----------
    model
        A model with loops.
    guess
        Position to start from; neutral if not given.
    fixed
        Bodies (names or numbers) whose joints keep their positions; a single one as it is.
    t
        Time, for joints that time moves.
    tolerance
        Largest gap that counts as closed, at most 0.01.

    Raises
    ------
    AssemblyError
        If the loops do not close, with the loop, its gap, and what to try.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.four_bar()
    >>> found = assemble(model, [0.9, -0.7, 0.8], fixed=["crank"])
    >>> float(found.q[0]), found.gap < 1e-12
    (0.9, True)
    """
    need_loops(model)
    start = model.neutral() if guess is None else model.check("q", guess)
    limit = real_scalar(tolerance, "tolerance")
    if not 0.0 < limit <= MOST_OPEN:
        raise ValueError(
            f"tolerance: expected a gap above 0 and up to {MOST_OPEN:g} (m, rad), received "
            f"{tolerance!r}; leave it out for {CLOSED:g}"
        )
    fixed = _listed(fixed)
    movable = _movable(model, fixed)
    rng = np.random.default_rng(0)
    origin, failure = start, None
    for attempt in range(RESTARTS + 1):
        try:
            q, gap, steps = _close(model, origin, movable, fixed, t, tolerance)
            wrong = wrong_way_round(model, q, t)
            if wrong is not None:
                for k in range(len(model.loops)):
                    q = _turned_over(model, q, k, movable, t)
                q, gap, steps = _close(model, q, movable, fixed, t, tolerance)
                wrong = wrong_way_round(model, q, t)
            if wrong is None:
                q, gap = _unwound(model, q, gap, start, t, tolerance)
                moved = float(np.abs(q - start).max(initial=0.0))
                return Assembly(q, gap, steps, moved, branch(model, q, t=t))
            failure = failure or AssemblyError(
                f"{model.name}: the loop {wrong!r} closes only the wrong way round (axes "
                "antiparallel, or half a turn off) from this guess; start nearer, or turn one of "
                "its placements"
            )
        except AssemblyError as error:
            failure = failure or error
        # Near the guess first, then anywhere.
        reach = 1.0 if attempt < RESTARTS // 3 else np.pi
        step = reach * rng.standard_normal(model.nv)
        origin = model.normalise(model.integrate(start, np.where(movable, step, 0.0)))
    assert failure is not None
    raise failure


def _unwound(
    model: Model, q: Array, gap: float, start: Array, t: float, tolerance: float
) -> tuple[Array, float]:
    """Position without the whole turns that the search made, and its gap.

    A turn is one if the joint's pose is the same without it: the angle of a screw is not.
    """
    holonomic = binds_positions(model)
    for body, place in zip(model.bodies, model.q_index):
        turns = np.round((q[place] - start[place]) / (2.0 * np.pi))
        for k in np.flatnonzero(turns):
            trial = q.copy()
            trial[place.start + k] -= 2.0 * np.pi * turns[k]
            before, after = (body.joint.motion(x[place], None, t).X for x in (q, trial))
            if not (np.allclose(before.E, after.E) and np.allclose(before.r, after.r)):
                continue
            delta = np.where(holonomic, constraints(model, trial, t=t).delta, 0.0)
            left = float(np.abs(delta).max(initial=0.0))
            if left <= 2.0 * max(gap, tolerance):  # apart from rounding, nothing has moved
                q, gap = trial, left
    return q, gap


def wrong_way_round(model: Model, q: Array, t: float) -> str | None:
    """Name of the first loop whose frames meet the wrong way round."""
    w = load_given(model, q, None, t)
    run_forward(w)
    for k, loop in enumerate(model.loops):
        if not loop.joint.closure_side(t, relative_pose(w, k)[0]) > 0.0:
            return loop.name
    return None


def _turned_over(model: Model, q: Array, k: int, movable: Array, t: float) -> Array:
    """Position in which the frames of loop k are as nearly the right way round as joints allow."""
    joint = model.loops[k].joint
    if joint.closure_side(t, np.diag([1.0, -1.0, -1.0])) > 0.0:
        return q  # no side of it is wrong
    for _ in range(TURNS):
        E = _orientation(model, q, k, t)
        turn = _missing_turn(joint.closure_side, t, E)
        angle = float(np.linalg.norm(turn))
        if angle < TURN:
            break
        J = np.zeros((3, model.nv))
        for j in np.flatnonzero(movable):
            step = np.zeros(model.nv)
            step[j] = 1e-6
            change = _orientation(model, model.integrate(q, step), k, t) @ E.T  # 1 − ω×
            J[:, j] = np.array([change[1, 2], change[2, 0], change[0, 1]]) / 1e-6
        u = _smallest(model, q, J, turn * (TURN / angle), movable, t)
        q = model.normalise(model.integrate(q, u))
    return q


def _orientation(model: Model, q: Array, k: int, t: float) -> Array:
    """Rotation E of loop k, from predecessor to successor coordinates."""
    w = load_given(model, q, None, t)
    run_forward(w)
    return np.array(relative_pose(w, k)[0])


def _missing_turn(side: Callable[[float, Array], Any], t: float, E: Array) -> Array:
    """Rotation vector, in successor axes, that brings the successor the right way round.

    A joint that turns about z does not mind a half turn about it, and wants its z axes aligned;
    others want E = 1.
    """
    if side(t, np.diag([-1.0, -1.0, 1.0])) > 0.0:
        z = E[:, 2]  # the predecessor's axis in successor coordinates
        axis = np.array([-z[1], z[0], 0.0])  # e_z × z
        sine = float(np.linalg.norm(axis))
        axis = axis / sine if sine > 1e-8 else np.array([1.0, 0.0, 0.0])
        return axis * np.arctan2(sine, z[2])
    p = from_matrix(E.T)
    p = p if p[0] >= 0.0 else -p
    sine = float(np.linalg.norm(p[1:]))
    return -p[1:] * (2.0 * np.arctan2(sine, p[0]) / sine if sine > 1e-12 else 0.0)


def _close(
    model: Model,
    start: Array,
    movable: Array,
    fixed: Iterable[str | int],
    t: float,
    tolerance: float,
) -> tuple[Array, float, int]:
    """Position with closed loops, the gap that is left, and how many steps it took."""
    holonomic = binds_positions(model)
    q, before = start, np.inf
    step = 0
    for step in range(MOST_STEPS):
        c = constraints(model, q, t=t)
        delta = np.where(holonomic, c.delta, 0.0)
        gap = float(np.abs(delta).max(initial=0.0))
        if gap <= tolerance or (gap <= 1e3 * tolerance and gap >= 0.5 * before):
            break
        u = _smallest(model, q, c.K, -delta, movable, t)
        # A step that makes the gap larger is halved; far from closing they overshoot.
        scale = 1.0
        while scale > 1e-4:
            trial = model.integrate(q, u, scale)
            new = np.where(holonomic, constraints(model, trial, t=t).delta, 0.0)
            if np.linalg.norm(new) < np.linalg.norm(delta):
                break
            scale /= 2
        else:
            _refuse(model, c.names, delta, step, fixed)
        q, before = model.normalise(trial), gap
    else:
        _refuse(model, c.names, delta, step, fixed)
    return q, gap, step


def _refuse(
    model: Model, names: tuple[str, ...], delta: Array, steps: int, fixed: Iterable[str | int]
) -> None:
    worst = int(np.argmax(np.abs(delta)))
    hint = "let more joints move (fixed=…), start from another guess, or check the lengths"
    raise AssemblyError(
        f"{model.name}: the loop constraint {names[worst]} stays open by {abs(delta[worst]):.3g} "
        f"after {steps} steps (fixed: {list(fixed) or 'none'}); {hint}"
    )


def branch(model: Model, q: ArrayLike, *, t: float = 0.0) -> int:
    """Sign of the determinant of the dependent part of K; see :class:`Assembly`."""
    import scipy.linalg

    K = constraints(model, q, t=t).K
    if not K.size:
        return 1
    sizes = np.linalg.svd(K, compute_uv=False)
    rank = int(np.sum(sizes > RANK_TOLERANCE * sizes.max(initial=0.0)))
    rows = np.sort(scipy.linalg.qr(K.T, mode="r", pivoting=True)[1][:rank])
    columns = np.sort(scipy.linalg.qr(K, mode="r", pivoting=True)[1][:rank])
    return int(np.sign(np.linalg.det(K[np.ix_(rows, columns)]))) or 1


def consistent_velocity(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    fixed: str | int | Iterable[str | int] = (),
    *,
    t: float = 0.0,
) -> Array:
    """Velocity nearest to v, in the sense of kinetic energy, with which the loops stay closed.

    Raises
    ------
    AssemblyError
        If velocities that must not change contradict the loops.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.four_bar()
    >>> q = assemble(model, [0.9, -0.7, 0.8], fixed=["crank"]).q
    >>> v = consistent_velocity(model, q, [1.0, 0.0, 0.0], fixed=["crank"])
    >>> float(v[0])
    1.0
    """
    need_loops(model)
    q, v = model.check("q", q), model.check("v", v)
    c = constraints(model, q, v, t=t)
    movable = _movable(model, _listed(fixed))
    correction = _smallest(model, q, c.K, c.nu - c.K @ v, movable, t)
    result = v + correction
    left = np.abs(c.K @ result - c.nu)
    # A velocity that satisfies the loops leaves rounding only.
    if left.max(initial=0.0) > 1e-8 * (1.0 + np.abs(result).max(initial=0.0)):
        worst = int(np.argmax(left))
        raise AssemblyError(
            f"{model.name}: the loop constraint {c.names[worst]} is violated by {left[worst]:.3g} "
            f"(per second), whatever the other velocities are; let more joints move (fixed=…)"
        )
    return result


def project_state(
    model: Model, q: Array, v: Array, *, t: float = 0.0, steps: int = 5
) -> tuple[Array, Array]:
    """Position and velocity on the constraints, by the smallest change in the sense of inertia.

    For use after each step of an integration: it starts near, and a few Newton steps suffice.
    """
    holonomic = binds_positions(model)
    movable = np.ones(model.nv, dtype=bool)
    for _ in range(steps):
        c = constraints(model, q, t=t)
        delta = np.where(holonomic, c.delta, 0.0)
        if np.abs(delta).max(initial=0.0) <= 1e-14:
            break
        q = model.integrate(q, _smallest(model, q, c.K, -delta, movable, t))
    c = constraints(model, q, v, t=t)
    return q, v + _smallest(model, q, c.K, c.nu - c.K @ v, movable, t)


def _smallest(model: Model, q: Array, K: Array, target: Array, movable: Array, t: float) -> Array:
    """u with K u = target (in least squares), uᵀHu smallest, and u = 0 where not movable."""
    H = crba(model, q, t=t)[np.ix_(movable, movable)]
    u = np.zeros(model.nv)
    if not H.size or not K.size:
        return u
    L = np.linalg.cholesky(H)
    weighted = np.linalg.solve(L, K[:, movable].T).T  # K L⁻ᵀ
    sizes = np.linalg.svd(weighted, compute_uv=False)
    if sizes.max(initial=0.0) == 0.0:
        return u
    y = np.linalg.lstsq(weighted, target, rcond=RANK_TOLERANCE)[0]
    u[movable] = np.linalg.solve(L.T, y)
    return u


def _listed(fixed: Any) -> list[str | int]:
    """Bodies as a list; one alone is a list of one."""
    if isinstance(fixed, str | int | np.integer):
        return [fixed if isinstance(fixed, str) else int(fixed)]
    try:
        return list(fixed)
    except TypeError:
        raise TypeError(f"fixed: expected names or numbers of bodies, received {fixed!r}") from None


def _movable(model: Model, fixed: Iterable[str | int]) -> Array:
    movable = np.ones(model.nv, dtype=bool)
    for body in fixed:
        i = model.number(body)
        if i == 0:
            raise ValueError("fixed: the base does not move; name bodies whose joints stay")
        movable[model.v_index[i - 1]] = False
    return movable


def binds_positions(model: Model) -> Array:
    """Which constraints come from positions."""
    flags: list[bool] = []
    for loop in model.loops:
        joint = loop.joint
        p = np.asarray(joint.parameters, dtype=float)
        gap = joint.closure(0.0, np.eye(3), np.zeros(3), p) or []
        rates = joint.closure_rates(0.0, np.eye(3), np.zeros(3), np.zeros(6), p)
        flags += [True] * len(gap) + [False] * len(rates)
    for constraint in model.constraints:
        flags += [not constraint.of_velocities] * constraint.count
    return np.array(flags, dtype=bool)
