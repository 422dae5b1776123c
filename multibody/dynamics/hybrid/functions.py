"""Hybrid dynamics of a model, as users call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from integrators.kernels import OnWorkspace

from ...checks import Array, ArrayLike, one_of, real_array
from ..functions import SingularModelError
from ..loops.closed_loop import RANK_TOLERANCE, REGULARISATION, loaded_constraints
from ..loops.independent import velocity_places
from ..loops.multipliers import ALPHA, BETA, EPSILON
from ..storage.loading import ForcesLike, load_forces, load_given, loaded_inertia
from .articulated import hybrid_articulated
from .closed import hybrid_closed
from .composite import hybrid_composite
from .selection import HybridWorkspace, hybrid_tree

if TYPE_CHECKING:
    from ...model import Model
    from ..storage.workspace import TreeWorkspace

__all__ = ["HybridResult", "freedoms_named", "hybrid_along", "hybrid_dynamics"]

_RUN = {
    "aba": OnWorkspace(hybrid_articulated, HybridWorkspace, returns=True),
    "crba": OnWorkspace(hybrid_composite, HybridWorkspace, returns=True),
    "loops": OnWorkspace(hybrid_closed, HybridWorkspace, returns=True),
}


class HybridResult(NamedTuple):
    """Accelerations and joint forces of all freedoms, known and found.

    Attributes
    ----------
    a
        v̇, nv numbers; those of prescribed freedoms are the given ones.
    tau
        Joint forces, nv numbers; those of forward freedoms are the given ones.
    """

    a: Array
    tau: Array


def hybrid_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | Mapping[str | int, ArrayLike] | None = None,
    a: ArrayLike | Mapping[str | int, ArrayLike] | None = None,
    forward: Sequence[str | int] | str | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    method: str | None = None,
) -> HybridResult:
    """Hybrid dynamics: accelerations of some freedoms and forces of the others, both unknown.

    Each freedom is either *forward* (its force is known, its acceleration wanted) or *prescribed*
    (its acceleration is known, the force that causes it wanted). With all freedoms forward this
    is :func:`~multibody.FD`, with none of them :func:`~multibody.ID`.

    Parameters
    ----------
    model, q, v, f_ext, t
        As in :func:`~multibody.FD`. Loops are kept closed. Springs, dampers, stops and armature
        act; the forces found are those of the drives alone, as in :func:`~multibody.ID`.
    tau
        Forces of the forward freedoms: nv numbers, of which those for prescribed freedoms are not
        read and may be NaN; or a dictionary by bodies, variables or places in v. What is not
        given is zero.
    a
        Accelerations v̇ of the prescribed freedoms, in the same two forms. What is not given is
        zero: the freedom keeps its velocity.
    forward
        The forward freedoms: names of bodies (all freedoms of their joints), names of variables as
        in ``model.v_names``, or places in v. If it is left out, all that `a` does not name.
    method
        For trees "aba" (articulated bodies, the default) or "crba" (inertia matrix of the
        forward freedoms). "loops" is the only one for models with loops.

    Returns
    -------
    HybridResult
        ``a`` and ``tau`` of all freedoms.

    Raises
    ------
    SingularModelError
        Where some forward freedom moves no inertia.
    ValueError
        Among others, where loops leave prescribed freedoms no choice, so that their forces are not
        determined.

    Examples
    --------
    A double pendulum whose first link is driven at constant speed, the second one swinging:

    >>> from multibody import mechanisms
    >>> model = mechanisms.double_pendulum()
    >>> found = hybrid_dynamics(model, [0.3, 0.5], [1.0, 2.0], a={"upper": 0.0})
    >>> found.a.round(3), found.tau.round(3)
    (array([ 0.   , -7.517]), array([-5.113,  0.   ]))
    """
    _check_model(model)
    is_forward = _forward_freedoms(model, forward, a)
    ways = ("loops",) if model.bonds else ("aba", "crba")
    way = ways[0] if method is None else one_of(method, "method", ways)
    base = load_given(model, q, v, t)
    w = hybrid_tree(model).workspace(is_forward)
    w.q[:], w.v[:], w.t[0] = base.q, base.v, base.t[0]
    w.tau_known[:] = _known(model, "tau", tau, is_forward, "forward")
    w.a_known[:] = _known(model, "a", a, ~is_forward, "prescribed")
    load_forces(model, w, f_ext)
    w.stabilise[ALPHA], w.stabilise[BETA], w.stabilise[EPSILON] = 0.0, 0.0, REGULARISATION
    total = _RUN[way](w)
    found = HybridResult(w.a_q.copy(), w.tau.copy())
    if way == "loops":
        _check_determined(model, w, base)
    if total - total != 0.0:
        _explain(model, w)
    return found


def hybrid_along(
    model: Model, forward: Array, t: float, q: Array, v: Array, tau: Array, a: Array, f_ext: Any
) -> Array:
    """Joint forces of all freedoms at a state of a run, unchecked; `forward` by truth values."""
    w = hybrid_tree(model).workspace(forward)
    w.q[:], w.v[:], w.t[0] = q, v, t
    w.tau_known[:], w.a_known[:] = tau, a
    load_forces(model, w, f_ext)
    w.stabilise[ALPHA], w.stabilise[BETA], w.stabilise[EPSILON] = 0.0, 0.0, REGULARISATION
    _RUN["loops" if len(w.rows) else "aba"](w)
    return w.tau.copy()


def _check_model(model: Any) -> None:
    from ...model import Model

    if not isinstance(model, Model):
        remedy = ""
        if hasattr(model, "model"):  # a loop-closure function, such as `gears` returns
            remedy = (
                "; gears are constraints of a model: give with_gears(model, ratios), or a model "
                "with ModelBuilder.add_gear"
            )
        raise TypeError(f"model: expected a Model, received {type(model).__name__}{remedy}")


# ---------------------------------------------------------------------- what is given


def _forward_freedoms(model: Model, forward: Any, a: Any) -> Array:
    """A truth value for each freedom."""
    chosen = np.zeros(model.nv, dtype=bool)
    if forward is None:
        if a is not None and not isinstance(a, Mapping):
            raise ValueError(
                "forward: which freedoms does `a` prescribe? Name the others by forward=…, or give "
                "the accelerations as a dictionary, a={body: …}"
            )
        chosen[freedoms_named(model, list(a or ()))] = True
        return ~chosen
    if isinstance(forward, int | np.integer):
        forward = [forward]
    chosen[freedoms_named(model, forward)] = True
    return chosen


def freedoms_named(model: Model, chosen: Sequence[str | int]) -> list[int]:
    """Places in v; joints without freedom have none, and the base is no joint."""
    for item in [chosen] if isinstance(chosen, str) else chosen:
        if isinstance(item, str) and item not in model.v_names and model.number(item) == 0:
            raise ValueError(f"{item!r} is the base, which has no joint; name bodies or variables")
    return velocity_places(model, chosen)


def _known(model: Model, name: str, value: Any, wanted: Array, kind: str) -> Array:
    """Numbers for the freedoms that are wanted, zero for others and for what is not given."""
    out = np.zeros(model.nv)
    if value is None:
        return out
    if isinstance(value, Mapping):
        seen: set[int] = set()
        for key, numbers in value.items():
            places = freedoms_named(model, [key])
            if wrong := [k for k in places if not wanted[k]]:
                raise ValueError(
                    f"{name}[{key!r}]: {model.v_names[wrong[0]]} is not {kind}, so this is what is "
                    "to be found; leave it out, or change `forward`"
                )
            if twice := seen.intersection(places):
                raise ValueError(f"{name}: {model.v_names[min(twice)]} is given twice")
            seen.update(places)
            given = np.atleast_1d(real_array(numbers, f"{name}[{key!r}]"))
            if given.shape != (len(places),):
                names = ", ".join(model.v_names[k] for k in places)
                raise ValueError(
                    f"{name}[{key!r}]: expected {len(places)} numbers ({names}), received shape "
                    f"{np.shape(numbers)}"
                )
            out[places] = given
    else:
        given = np.atleast_1d(np.asarray(value))
        if given.shape == wanted.shape and given.dtype.kind == "f":
            given = np.where(wanted, given, 0.0)  # NaN is as good as anything where not read
        out[wanted] = model.check(name, given)[wanted]
    bad = np.flatnonzero(~np.isfinite(out))
    if bad.size:
        raise ValueError(
            f"{name}: expected finite numbers, received {out[bad[0]]} for {model.v_names[bad[0]]}"
        )
    return out


# ---------------------------------------------------------------------- what goes wrong


def _check_determined(model: Model, w: HybridWorkspace, base: TreeWorkspace) -> None:
    """Raise if some combination of constraints acts on prescribed freedoms only.

    Then what these do is no longer free, and forces among them change nothing.
    """
    rows = w.rows
    is_forward = w.is_forward.astype(bool)
    if not len(rows) or is_forward.all():
        return
    inertia = np.diag(w.H)[is_forward]
    if not ((inertia > 0.0).all() and np.isfinite(w.K).all()):
        return  # which the result tells
    weighted = w.Y[: len(rows)][:, is_forward] / np.sqrt(inertia)
    left, sizes, _ = np.linalg.svd(weighted, full_matrices=True)
    # With all freedoms forward constraints move no less; what is small beside that is rounding.
    masses, every = np.diag(loaded_inertia(base)), loaded_constraints(model).K[rows]
    alone = np.linalg.norm(every, axis=0)[masses > 0.0] / np.sqrt(masses[masses > 0.0])
    largest = max(float(sizes.max(initial=0.0)), float(alone.max(initial=0.0)))
    rank = int(np.sum(sizes > RANK_TOLERANCE * largest))
    K = every[:, ~is_forward]
    # A column of K belongs to one freedom and has its unit.
    parts = np.linalg.norm(left[:, rank:].T @ K, axis=0)
    bound = parts > RANK_TOLERANCE * np.linalg.norm(K, axis=0)
    if bound.any():
        places = np.flatnonzero(~is_forward)[bound]
        names = ", ".join(model.v_names[k] for k in places)
        remedy = (
            "leave some of them forward"
            if is_forward.any()
            else "leave others forward, or use closed_loop_inverse_dynamics, which says what "
            "actuators must do"
        )
        raise ValueError(
            f"at this position the loops of {model.name!r} determine what prescribed freedoms do "
            f"({names}): their accelerations cannot be chosen, and their forces are not "
            f"determined; {remedy}"
        )


def _explain(model: Model, w: HybridWorkspace) -> None:
    """Raise with the reason why a result is not finite."""
    if model.tree.error is not None:
        error, model.tree.error = model.tree.error, None
        raise error
    for name in ("q", "v"):
        names = model.q_names if name == "q" else model.v_names
        for text, x in zip(names, getattr(w, name)):
            if not np.isfinite(x):
                raise ValueError(f"{name}: expected finite numbers, received {x} for {text}")
    if model.springs:
        from ..book.base_view import element_forces

        element_forces(model, w.q.copy(), w.v.copy(), float(w.t[0]))  # names one that is to blame
    load_forces(model, w, None)
    with np.errstate(all="ignore"):
        _RUN["aba"](w)
    bad = np.flatnonzero((w.is_forward == 1) & ~np.isfinite(w.D_inverse))
    if bad.size:
        raise SingularModelError(
            f"the forward freedom {model.v_names[bad[-1]]} moves no inertia at this position; give "
            "its body mass or an armature, or prescribe it"
        )
    raise ValueError("hybrid dynamics: not finite; look for huge numbers in q, v, tau, a or f_ext")
