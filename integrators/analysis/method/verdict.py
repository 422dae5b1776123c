"""What an analysis of a method answers: a verdict or a number, each with its certificate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ... import catalogue
from ...methods.multistep import Multistep
from ...methods.multistep.names import find_multistep
from ...methods.user.plain_function import is_step_function, tableau_of
from ...tableau import Tableau
from ...tableau.additive import Additive
from ...tableau.exact import is_finite
from ...tableau.partitioned import Nystrom, Partitioned, Splitting
from ...tableau.rosenbrock import Rosenbrock

__all__ = [
    "Measure",
    "Verdict",
    "as_additive",
    "as_halves",
    "as_linear",
    "as_rosenbrock",
    "as_tableau",
]


@dataclass(frozen=True)
class Verdict:
    """Whether a method has a property, and why.

    A verdict is true or false in an ``if``; printed, it says the reason.

    Parameters
    ----------
    name
        The property, as an adjective: "A-stable".
    holds
        Whether the method has it.
    reason
        One sentence.
    certificate
        What proves it: polynomials, matrices, eigenvalues, the point where it fails.
    proved
        False where the digits of the coefficients, or a search, leave the answer open; ``reason``
        then says so.

    Examples
    --------
    >>> verdict = Verdict("A-stable", False, "R is a polynomial", {"R(∞)": float("inf")})
    >>> bool(verdict)
    False
    >>> print(verdict)
    A-stable: no (R is a polynomial)
    """

    name: str
    holds: bool
    reason: str
    certificate: Mapping[str, Any] = field(default_factory=dict)
    proved: bool = True

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        answer = "yes" if self.holds else "no"
        caution = "" if self.proved else "; as far as can be told"
        return f"{self.name}: {answer} ({self.reason}{caution})"


@dataclass(frozen=True)
class Measure:
    """A number that describes a method, and where it comes from.

    Parameters
    ----------
    name, unit
        What is measured, and in what: "real stability interval", "°".
    value
        The number as a double; infinite where there is no limit.
    digits
        The same number exactly, or with many digits; None where it is infinite.
    reason
        One sentence: what happens at this value.
    certificate
        The polynomial or matrix it was found from.

    Examples
    --------
    >>> length = Measure("real stability interval", 2.0, Fraction(2), "R(−2) = −1")
    >>> float(length), bool(length)
    (2.0, True)
    >>> print(length)
    real stability interval: 2 (R(−2) = −1)
    """

    name: str
    value: float
    digits: Fraction | Decimal | None
    reason: str
    certificate: Mapping[str, Any] = field(default_factory=dict)
    unit: str = ""

    def __float__(self) -> float:
        return self.value

    def __bool__(self) -> bool:
        return self.value > 0

    def __str__(self) -> str:
        return f"{self.name}: {self.text} ({self.reason})"

    @property
    def text(self) -> str:
        """The number alone, to thirteen digits."""
        if math.isinf(self.value):
            return "∞"
        return f"{self.value:.13g}{self.unit}"


def as_rosenbrock(method: Any) -> Rosenbrock | None:
    """Return the Rosenbrock method that a name, or the method itself, stands for; else None."""
    found = _named(method)
    return found if isinstance(found, Rosenbrock) else None


def as_additive(method: Any) -> Additive | None:
    """Return the additive method that a name, or the method itself, stands for; else None."""
    found = _named(method)
    return found if isinstance(found, Additive) else None


def as_halves(method: Any) -> Splitting | Nystrom | Partitioned | None:
    """Return the method for y = (q, v) that a name, or the method itself, stands for; else None."""
    found = _named(method)
    return found if isinstance(found, Splitting | Nystrom | Partitioned) else None


def _named(method: Any) -> Any:
    """The scheme of the catalogue that a name stands for; else what was given."""
    found = catalogue.find(method) if isinstance(method, str) else None
    return method if found is None else found.method


def as_linear(method: Any) -> Tableau:
    """Return the tableau that does on y' = Ay what a method does, where there is one.

    Examples
    --------
    >>> as_linear("Rodas4").is_dirk
    True
    """
    found = as_rosenbrock(method)
    return as_tableau(method) if found is None else found.linear


def as_tableau(method: Any) -> Tableau:
    """Return the tableau that a name, or a tableau itself, stands for.

    Parameters
    ----------
    method
        A :class:`~integrators.Tableau`, the name of a scheme of the catalogue, or a function
        ``step(f, t, y, h)`` that is an explicit Runge–Kutta method: its coefficients are read
        from what it does.

    Examples
    --------
    >>> as_tableau("RK4").order
    4
    """
    if isinstance(method, Multistep) or (isinstance(method, str) and _names_multistep(method)):
        raise TypeError(
            f"{getattr(method, 'name', method) or 'this'} is a multistep method and has no Butcher "
            "tableau and no R(z); analysis.multistep_report, a_alpha, root_locus and "
            "plot.stability_region examine it"
        )
    if as_additive(method) is not None:
        raise TypeError(
            f"{getattr(method, 'name', method) or 'this'} is an additive method of two tableaux; "
            "analysis.report examines both and their coupling, and the halves (method.explicit, "
            "method.implicit) can be looked at alone"
        )
    if as_halves(method) is not None:
        raise TypeError(
            f"{getattr(method, 'name', method) or 'this'} treats the halves of y = (q, v) "
            "differently and has no Butcher tableau; analysis.report, symplecticity and symmetry "
            "examine it"
        )
    if as_rosenbrock(method) is not None:
        raise TypeError(
            f"{getattr(method, 'name', method) or 'this'} is a Rosenbrock method and has no "
            "Butcher tableau; analysis.report and the functions that look at R(z) examine it"
        )
    if isinstance(method, str):
        return catalogue.get(method)
    if is_step_function(method):
        found = tableau_of(method)
        if found is None:
            raise TypeError(
                f"{method.__name__} is not an explicit Runge–Kutta method: its step is not made of "
                "sums of slopes f(t, y), so it has no coefficients to examine"
            )
        return found
    if not isinstance(method, Tableau):
        raise TypeError(
            "expected a Tableau or the name of a scheme of the catalogue, got "
            f"{type(method).__name__}: {method!r}; build one with integrators.Tableau(A, b)"
        )
    for label, numbers in (("A", sum(method.A, ())), ("b", method.b), ("c", method.c)):
        for x in numbers:
            if not is_finite(x):
                raise ValueError(f"{label} contains {x}; coefficients must be finite numbers")
    return method


def _names_multistep(name: str) -> bool:
    return name.strip().lower() != "bdf1" and find_multistep(name) is not None
