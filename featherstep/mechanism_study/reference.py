"""What positions of a mechanism are compared with, and how far that can be trusted.

Where a loop-closure function q = γ(y) is known, the motion follows from minimal coordinates, in
which nothing can drift and singular positions do not exist. Else it is computed with tight
tolerances by two formulations and two methods that have little in common; how far their results
are apart is the uncertainty. Where that is larger than the runs to be judged allow, or one of them
does not reach the end, further ones are tried, and the two count that agree best. If all contradict
each other, no run can be judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from multibody.checks import Array, real_array
from multibody.pictures.skeleton import skeleton

if TYPE_CHECKING:
    from multibody.model import Model

__all__ = ["KNOWN", "Known", "Measure", "ReferenceMotion", "reference_motion"]

#: Formulations and methods for a computed reference, in the order in which they are tried; the
#: first two that agree as well as is wanted count, or else those that agree best. An explicit and
#: an implicit one, so that stiffness is no obstacle; eliminated multipliers, and multipliers as
#: unknowns.
LOOPS = (
    ("projected", "DOP853", 1e-12),
    ("ggl", "RadauIIA5", 1e-11),
    ("index2", "RadauIIA5", 1e-11),
    ("minimal", "DOP853", 1e-12),
    ("baumgarte", "RadauIIA5", 1e-12),
)
TREES = (
    ("ode", "DOP853", 1e-13),
    ("ode", "RadauIIA5", 1e-12),
    ("ode", "RadauIIA9", 1e-13),
    ("ode", "DOP853", 1e-11),
)
ATOL_OVER_RTOL = 0.1
MOST_STEPS = 50_000


@dataclass(frozen=True)
class Known:
    """What is known of a mechanism of the catalogue beyond its model.

    Attributes
    ----------
    closure
        From the model and its start: (γ, y0, ẏ0) of a loop-closure function.
    """

    closure: Callable[[Model, Array, Array], tuple[Any, Any, Any]] | None = None


def _parallelogram(model: Model, q0: Array, v0: Array) -> tuple[Any, Any, Any]:
    """N-four-bar on the branch on which it starts: all verticals stay parallel."""
    n = len(model.loops)
    return lambda y: [y[0]] * (n + 1) + [-y[0]] * n, q0[:1], v0[:1]


KNOWN: dict[str, Known] = {"n_four_bar": Known(closure=_parallelogram)}


# ---------------------------------------------------------------------- what is measured


@dataclass(frozen=True)
class Measure:
    """What the error of a run is the error of.

    Attributes
    ----------
    label
        In words.
    unit
        "m", or "" for coordinates.
    values
        From (t, q) to numbers in rows: points (k, 3), or coordinates (k, 1).
    """

    label: str
    unit: str
    values: Callable[[float, Array], Array]

    @classmethod
    def of(cls, choice: Any, model: Model) -> Measure:
        """Return the measure that a user means; see :func:`multibody.compare`.

        Examples
        --------
        >>> from multibody import mechanisms
        >>> Measure.of("rocker:1.5,0,0", mechanisms.four_bar()).label
        'position of point (1.5, 0, 0) of rocker'
        """
        if isinstance(choice, cls):
            return choice
        if choice is None or choice == "points":
            return cls("positions of the bodies' points", "m", _skeleton_points(model))
        if choice == "coordinates":
            return cls("joint coordinates", "", lambda t, q: np.asarray(q)[:, None])
        body, point = choice, (0.0, 0.0, 0.0)
        if isinstance(choice, str) and ":" in choice:
            body, _, text = choice.rpartition(":")
            try:
                point = tuple(float(x) for x in text.split(","))  # type: ignore[assignment]
            except ValueError:
                raise ValueError(
                    f"measure: expected BODY:x,y,z with three numbers, received {choice!r}"
                ) from None
        elif isinstance(choice, tuple) and len(choice) == 2:
            body, point = choice
        elif not isinstance(choice, str | int):
            raise TypeError(
                "measure: expected 'points', 'coordinates', a body or (body, point), received "
                f"{choice!r}"
            )
        place = real_array(point, "point", (3,))
        i = model.number(body)
        name = model.bodies[i - 1].name if i else "base"
        where = "({})".format(", ".join(f"{x:g}" for x in place))
        what = f"point {where} of {name}" if place.any() else f"the origin of {name}"
        return cls(f"position of {what}", "m", _point(model, i, place))

    def distance(self, a: Array, b: Array) -> float:
        """Largest distance between two sets of values."""
        return float(np.linalg.norm(a - b, axis=1).max())


def _skeleton_points(model: Model) -> Callable[[float, Array], Array]:
    drawn = skeleton(model)
    moving = np.array([body > 0 for body, _ in drawn.points])

    def points(t: float, q: Array) -> Array:
        return np.asarray(drawn.places(model, _snapshot(model, t, q))[0][moving])

    return points


def _point(model: Model, i: int, place: Array) -> Callable[[float, Array], Array]:
    from multibody.runs.simulate import positions

    return lambda t, q: positions(model, _snapshot(model, t, q), i, place).T


def _snapshot(model: Model, t: float, q: Array) -> Any:
    state = np.concatenate([model.normalise(q), np.zeros(model.nv)])
    return SimpleNamespace(t=np.array([t]), y=state[:, None])


# ---------------------------------------------------------------------- the reference


@dataclass(frozen=True)
class ReferenceMotion:
    """Where a mechanism is at the end, and how that is known.

    Attributes
    ----------
    values
        In the measure chosen; None if nothing could be found.
    origin
        In words.
    uncertainty
        How far it may be off, in the measure's unit.
    """

    values: Array | None
    origin: str
    uncertainty: float = 0.0


def reference_motion(
    formulated: Callable[[str], Any],
    measure: Measure,
    loops: bool,
    minimal: Any = None,
    wanted: float = 0.0,
) -> ReferenceMotion:
    """Compute a reference.

    Parameters
    ----------
    formulated
        Returns (problem, split) for the name of a formulation; ``split(t, y)`` gives (q, v).
    measure
        What is compared.
    loops
        Whether the mechanism has loops.
    minimal
        (problem, split) in minimal coordinates by a known loop-closure function, or None.
    wanted
        Uncertainty, in the measure's unit, with which to be content; with 0 the first two that
        reach the end count.
    """
    if minimal is not None:
        ends = [_end(minimal, "DOP853", rtol, measure) for rtol in (1e-13, 1e-12)]
        if all(end is not None for end in ends):
            doubt = measure.distance(ends[0], ends[1])  # type: ignore[arg-type]
            return ReferenceMotion(ends[0], "minimal coordinates of a known closure", doubt)
    found: list[tuple[str, Array]] = []
    best: tuple[float, int, int] | None = None
    for formulation, method, rtol in LOOPS if loops else TREES:
        end = _end(formulated(formulation), method, rtol, measure)
        if end is None:
            continue
        label = method if formulation == "ode" else f"{formulation} by {method}"
        found.append((f"{label} (rtol {rtol:g})", end))
        k = len(found) - 1
        pairs = [(measure.distance(found[j][1], end), j, k) for j in range(k)]
        best = min([*pairs, *([best] if best else [])], default=None)
        if best is not None and (wanted == 0.0 or best[0] <= wanted):
            break
    if not found:
        return ReferenceMotion(None, "no formulation reached the end with a tight tolerance")
    if best is None:
        return ReferenceMotion(
            found[0][1], f"{found[0][0]} alone, which nothing confirms", float("nan")
        )
    doubt, first, second = best
    return ReferenceMotion(found[first][1], f"{found[first][0]}, beside {found[second][0]}", doubt)


def _end(made: Any, method: str, rtol: float, measure: Measure) -> Array | None:
    """Values at the end of a tight run; None if it failed."""
    from integrators import solve

    if made is None:
        return None
    problem, split = made
    options: dict[str, Any] = {"rtol": rtol, "atol": ATOL_OVER_RTOL * rtol, "max_steps": MOST_STEPS}
    try:
        with np.errstate(all="ignore"):
            solution = solve(problem, method=method, **options)
    except (ValueError, ArithmeticError):  # this way is closed; others are tried
        return None
    if not solution.success:
        return None
    t = float(solution.t[-1])
    return measure.values(t, split(t, solution.y[:, -1])[0])
