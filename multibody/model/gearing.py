"""Gears as constraints: q_b = γ(t, q), one joint's position from others' (book, §9.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..checks import exact_array, number
from .constraints import Constraint

__all__ = ["LinearGear", "gear_constraint"]


class LinearGear:
    """φ = q_b − Σ ρ q_a − q₀, of joints with one variable each; p = [ρ …, q₀].

    One driver makes a pair of wheels, two or more a differential or a planetary gear. The ratio of
    a harmonic drive is one of many to one, as any other.
    """

    def __init__(self, driven: str, drivers: tuple[str, ...]) -> None:
        self.driven, self.drivers = driven, drivers

    def __call__(self, t: Any, q: Any, p: Any) -> Any:
        """What is left of the driven position."""
        total = _single(q, self.driven) - p[-1]
        for ratio, name in zip(p, self.drivers):
            total = total - ratio * _single(q, name)
        return total


class FunctionGear:
    """φ = q_b − γ(t, q)."""

    def __init__(self, driven: str, gamma: Callable[..., Any], takes: int) -> None:
        self.driven, self.gamma, self.takes = driven, gamma, takes

    def __call__(self, t: Any, q: Any, p: Any) -> Any:
        """What is left of the driven position."""
        given = (q,) if self.takes == 1 else (t, q) if self.takes == 2 else (t, q, p)
        return _single(q, self.driven) - self.gamma(*given)


def _single(q: Any, name: str) -> Any:
    """Position of a joint of one variable."""
    found = q[name]
    if np.ndim(found):
        raise ValueError(
            f"a gear takes joints of one variable, received {name!r} with {len(found)}; name one "
            "of its variables, as in model.q_names"
        )
    return found


def gear_constraint(
    name: str,
    driven: str,
    ratios: Mapping[str, Any] | None,
    offset: Any,
    gamma: Callable[..., Any] | None,
    parameters: Any,
) -> Constraint:
    """The constraint of a gear, by ratios or by a function."""
    from .constraints import _arguments

    where = f"gear {name!r}"
    if (ratios is None) == (gamma is None):
        raise TypeError(f"{where}: give either ratios={{body: ratio, …}} or gamma=γ(q), γ(t, q)")
    if gamma is not None:
        if not callable(gamma):
            raise TypeError(f"{where}: expected γ(q), γ(t, q) or γ(t, q, p), received {gamma!r}")
        takes = _arguments(gamma)
        if takes not in (1, 2, 3):
            raise TypeError(
                f"{where}: expected γ(q), γ(t, q) or γ(t, q, p), received {takes} arguments"
            )
        said = f"{driven} follows a function"
        return Constraint(name, FunctionGear(driven, gamma, takes), parameters, description=said)
    assert ratios is not None
    if not isinstance(ratios, Mapping) or not ratios:
        raise TypeError(f"{where}: expected ratios such as {{'link': 100.0}}, received {ratios!r}")
    if driven in ratios:
        raise ValueError(f"{where}: {driven!r} cannot drive itself; name other bodies")
    numbers = [number(exact_array(x, f"{where}: ratio of {o!r}", ())) for o, x in ratios.items()]
    numbers.append(number(exact_array(offset, f"{where}: offset", ())))
    terms = " + ".join(f"{x} {other}" for x, other in zip(numbers, ratios))
    rest = f" + {numbers[-1]}" if numbers[-1] != 0.0 else ""
    return Constraint(
        name,
        LinearGear(driven, tuple(ratios)),
        tuple(numbers),
        description=f"{driven} = {terms}{rest}",
        recipe={"driven": driven, "ratios": dict(zip(ratios, numbers)), "offset": numbers[-1]},
    )
