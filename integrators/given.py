"""What ``solve`` was given, made into the problem that it solves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .hybrid import Hybrid
from .options import Settings
from .problem import IVP, in_order
from .runs.mistakes import warn_of_swapped

__all__ = ["as_hybrid", "as_problem", "as_switched", "by_own_method", "for_many_digits"]

TAKEN_WITH_MANY_DIGITS = (
    *("method", "step", "rtol", "atol", "t_eval", "tstops", "max_steps", "callback"),
    *("norm", "progress", "preconditioner"),  # which change nothing there
)


def as_problem(
    problem: Any, t_span: Sequence[float] | None, y0: Any, changes: dict[str, Any]
) -> IVP:
    """The problem that solve was given, with what it was given in place of its own."""
    given = {
        name: value for name, value in changes.items() if value is not None and _is_given(value)
    }
    if isinstance(problem, IVP):
        if t_span is not None:
            given["t_span"] = t_span
        if y0 is not None:
            given["y0"] = y0
        return problem.with_(**given) if given else problem
    if not callable(problem):
        hint = f"; problems.get({problem!r}) gets one of the library" * isinstance(problem, str)
        raise TypeError(f"expected an IVP or a function f(t, y), got {problem!r}{hint}")
    if t_span is None or y0 is None:
        raise TypeError("solve(f, t_span, y0) needs the interval and the initial state")
    warn_of_swapped(problem)
    interval, start = in_order(t_span, y0)
    return IVP(problem, start, interval, **given)


def for_many_digits(
    problem: Any, t_span: Any, y0: Any, how: Settings, others: dict[str, Any]
) -> tuple[IVP, dict[str, Any]]:
    """The problem of a run with many digits, and its numbers that doubles do not hold."""
    from .methods.precise import exact_numbers

    if isinstance(problem, Hybrid):
        raise TypeError(
            "runs with many digits take no modes, transitions or contacts; leave out precision"
        )
    names = [name for name in how.named() if name not in TAKEN_WITH_MANY_DIGITS]
    names += [
        name
        for name, value in others.items()
        if name not in ("params", "events") and _is_given(value)
    ]
    asked: dict[str, Any] = {}
    if y0 is not None:
        asked["y0"] = exact_numbers(y0)
        y0 = [float(x) for x in asked["y0"]]
    if t_span is not None:
        asked["t_span"] = exact_numbers(t_span)
        t_span = tuple(float(x) for x in asked["t_span"])
    taken = {name: others[name] for name in ("params", "events")}
    ivp = as_problem(problem, t_span, y0, taken)
    own = dict(project=ivp.project, manifold=ivp.manifold, mass=ivp.mass)
    names += [name for name, value in own.items() if _is_given(value)]
    if ivp.nonnegative.size:
        names.append("nonnegative")
    if names:
        raise ValueError(
            f"runs with many digits take no {', '.join(sorted(set(names)))}; leave that out (of a "
            "problem by problem.with_), or leave out precision"
        )
    return ivp, asked


def by_own_method(problem: Hybrid, how: Settings) -> tuple[Hybrid, Settings]:
    """The problem and method that stand for a scheme that only this kind of problem has.

    Such a problem has ``whole(ivp)``: itself, as the solution is to know it.
    """
    own = getattr(problem, "by_own_method", None)
    replaced = own(how.method) if own is not None and isinstance(how.method, str) else None
    if replaced is None:
        return problem, how
    if how.step is None:
        raise ValueError(f"{how.method} has no error estimate; give a fixed step, step=h")
    return replaced[0], how._replace(method=replaced[1])


def as_hybrid(
    problem: Hybrid,
    t_span: Sequence[float] | None,
    y0: Any,
    changes: dict[str, Any],
    check: str | None,
    kinks: str | None,
) -> Hybrid:
    """The hybrid problem with what solve was given in place of its own."""
    given = {
        name: value for name, value in {"t_span": t_span, "y0": y0}.items() if value is not None
    }
    for name, value in changes.items():
        if not _is_given(value):
            continue
        if name not in ("params", "events"):
            raise ValueError(
                f"{name} belongs to one problem, and a Hybrid has one in each mode; give it to "
                "the IVP of the mode"
            )
        given[name] = value
    if check is not None:
        raise ValueError(
            "check='global' compares states at equal times, which means nothing near a jump whose "
            "time differs; solve the Hybrid again with a tighter rtol and compare what matters"
        )
    if kinks is not None:
        raise ValueError("kinks belongs to one right-hand side; give it to the Mode that has it")
    return problem.with_(**given) if given else problem


def as_switched(ivp: IVP, kinks: str | None) -> IVP | Hybrid:
    """The modes of a right-hand side that is a Switch, or whose kinks are to be located.

    Any other problem is returned as it is.
    """
    if kinks not in (None, "locate"):
        raise ValueError(f"kinks must be 'locate' or None, got {kinks!r}")
    if kinks is None and not getattr(ivp.f, "is_piecewise", False):
        return ivp
    from .hybrid.filippov import switched

    return switched(ivp, kinks is not None) or ivp


def _is_given(value: Any) -> bool:
    return not (value is None or value is False or (isinstance(value, tuple) and value == ()))
