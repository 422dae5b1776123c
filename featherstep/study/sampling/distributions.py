"""How a parameter is spread: each law maps even numbers between 0 and 1 to values.

A law is its quantile function, the inverse of its distribution function. So every way of filling
the unit cube (:mod:`.design`: at random, Sobol's sequence, Latin hypercubes)
serves every law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Choice",
    "Distribution",
    "LogNormal",
    "LogUniform",
    "Normal",
    "Triangular",
    "TruncatedNormal",
    "Uniform",
    "distribution_of",
]

Array = NDArray[np.float64]


class Distribution:
    """A law by which a parameter varies."""

    kind: ClassVar[str]

    def quantile(self, u: Array) -> Array:
        """Values below which the parts u of all runs lie."""
        raise TypeError(f"{type(self).__name__} has no quantiles; use one of {sorted(LAWS)}")

    def plain(self) -> dict[str, Any]:
        """The law as it stands in a file: its kind, and its numbers."""
        return {self.kind: [getattr(self, field.name) for field in fields(self)]}  # type: ignore[arg-type]

    @property
    def middle(self) -> float:
        """The median; 0 where it differs from that by rounding only."""
        low, middle, high = self.quantile(np.array([0.05, 0.5, 0.95]))
        return 0.0 if abs(middle) < 1e-9 * (high - low) else float(middle)


def _numbers(law: Distribution, **values: Any) -> None:
    """Check that the arguments of a law are finite numbers, and make them floats."""
    for name, value in values.items():
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number) or isinstance(value, str | bool):
            raise ValueError(
                f"{type(law).__name__}: expected a finite number for {name}, received {value!r}"
            )
        object.__setattr__(law, name, number)


def _order(law: Distribution, *names: str) -> None:
    values = [getattr(law, name) for name in names]
    if any(a >= b for a, b in pairwise(values)):
        raise ValueError(
            f"{type(law).__name__}: expected {' < '.join(names)}, received "
            f"{', '.join(f'{value:g}' for value in values)}"
        )


def _positive(law: Distribution, name: str) -> None:
    if not getattr(law, name) > 0.0:
        raise ValueError(
            f"{type(law).__name__}: expected {name} > 0, received {getattr(law, name):g}"
        )


@dataclass(frozen=True)
class Normal(Distribution):
    """Gauss's bell curve.

    Examples
    --------
    >>> Normal(1.0, 0.05).quantile(np.array([0.5, 0.975])).round(4)
    array([1.   , 1.098])
    """

    mean: float
    deviation: float
    kind: ClassVar[str] = "normal"

    def __post_init__(self) -> None:
        _numbers(self, mean=self.mean, deviation=self.deviation)
        _positive(self, "deviation")

    def quantile(self, u: Array) -> Array:
        """Values below which the parts u of all runs lie."""
        from scipy.special import ndtri

        return self.mean + self.deviation * np.asarray(ndtri(u))


@dataclass(frozen=True)
class TruncatedNormal(Distribution):
    """A bell curve of which only what lies between two limits is kept: parts that were sorted.

    Examples
    --------
    >>> law = TruncatedNormal(1.0, 0.05, 0.95, 1.05)
    >>> law.quantile(np.array([1e-12, 0.5, 1 - 1e-12])).round(6)
    array([0.95, 1.  , 1.05])
    """

    mean: float
    deviation: float
    low: float
    high: float
    kind: ClassVar[str] = "truncated_normal"

    def __post_init__(self) -> None:
        _numbers(self, mean=self.mean, deviation=self.deviation, low=self.low, high=self.high)
        _positive(self, "deviation")
        _order(self, "low", "high")

    def quantile(self, u: Array) -> Array:
        """Values below which the parts u of all runs lie."""
        from scipy.special import ndtr, ndtri

        a, b = (ndtr((limit - self.mean) / self.deviation) for limit in (self.low, self.high))
        value = self.mean + self.deviation * np.asarray(ndtri(a + u * (b - a)))
        return np.clip(value, self.low, self.high)


@dataclass(frozen=True)
class LogNormal(Distribution):
    """A value whose logarithm is normal: `median`, and the factor of one standard deviation.

    Examples
    --------
    >>> LogNormal(2.0, 1.5).quantile(np.array([0.5, 0.8413447460685429])).round(6)
    array([2., 3.])
    """

    median: float
    factor: float
    kind: ClassVar[str] = "log_normal"

    def __post_init__(self) -> None:
        _numbers(self, median=self.median, factor=self.factor)
        _positive(self, "median")
        if not self.factor > 1.0:
            raise ValueError(f"LogNormal: expected factor > 1, received {self.factor:g}")

    def quantile(self, u: Array) -> Array:
        """Values below which the parts u of all runs lie."""
        from scipy.special import ndtri

        return np.asarray(self.median * np.exp(np.log(self.factor) * ndtri(u)))


@dataclass(frozen=True)
class Uniform(Distribution):
    """All values between two limits, equally likely.

    Examples
    --------
    >>> Uniform(1.0, 3.0).quantile(np.array([0.25]))
    array([1.5])
    """

    low: float
    high: float
    kind: ClassVar[str] = "uniform"

    def __post_init__(self) -> None:
        _numbers(self, low=self.low, high=self.high)
        _order(self, "low", "high")

    def quantile(self, u: Array) -> Array:
        """Values below which the parts u of all runs lie."""
        return self.low + (self.high - self.low) * u


@dataclass(frozen=True)
class LogUniform(Distribution):
    """All orders of magnitude between two positive limits, equally likely.

    Examples
    --------
    >>> LogUniform(1e-3, 1e3).quantile(np.array([0.5])).round(12)
    array([1.])
    """

    low: float
    high: float
    kind: ClassVar[str] = "log_uniform"

    def __post_init__(self) -> None:
        _numbers(self, low=self.low, high=self.high)
        _positive(self, "low")
        _order(self, "low", "high")

    def quantile(self, u: Array) -> Array:
        """Values below which the parts u of all runs lie."""
        return np.asarray(self.low * (self.high / self.low) ** u)


@dataclass(frozen=True)
class Triangular(Distribution):
    """Most likely at the peak, and less so towards the limits.

    Examples
    --------
    >>> Triangular(0.0, 1.0, 2.0).quantile(np.array([0.125, 0.5, 0.875]))
    array([0.5, 1. , 1.5])
    """

    low: float
    peak: float
    high: float
    kind: ClassVar[str] = "triangular"

    def __post_init__(self) -> None:
        _numbers(self, low=self.low, peak=self.peak, high=self.high)
        _order(self, "low", "peak", "high")

    def quantile(self, u: Array) -> Array:
        """Values below which the parts u of all runs lie."""
        a, c, b = self.low, self.peak, self.high
        left = a + np.sqrt(u * (b - a) * (c - a))
        right = b - np.sqrt((1.0 - u) * (b - a) * (b - c))
        return np.where(u < (c - a) / (b - a), left, right)


@dataclass(frozen=True)
class Choice(Distribution):
    """One of several numbers, equally likely or with given weights.

    Examples
    --------
    >>> Choice([1.0, 2.0, 5.0]).quantile(np.array([0.1, 0.5, 0.9]))
    array([1., 2., 5.])
    >>> Choice([1.0, 2.0], weights=[9, 1]).quantile(np.array([0.89, 0.91]))
    array([1., 2.])
    """

    values: Sequence[float]
    weights: Sequence[float] | None = None
    kind: ClassVar[str] = "choice"

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        weights = np.ones(values.shape) if self.weights is None else np.asarray(self.weights, float)
        if values.ndim != 1 or not values.size or not np.isfinite(values).all():
            raise ValueError(f"Choice: expected a list of finite numbers, received {self.values!r}")
        good = weights.shape == values.shape and np.isfinite(weights).all() and (weights >= 0).all()
        if not good or not weights.sum() > 0.0:
            raise ValueError(
                f"Choice: expected {values.size} weights ≥ 0, not all 0, received {self.weights!r}"
            )
        object.__setattr__(self, "values", tuple(values.tolist()))
        if self.weights is not None:
            object.__setattr__(self, "weights", tuple(weights.tolist()))

    def quantile(self, u: Array) -> Array:
        """Values below which the parts u of all runs lie."""
        weights = np.ones(len(self.values)) if self.weights is None else np.array(self.weights)
        edges = np.cumsum(weights) / weights.sum()
        return np.array(self.values)[np.searchsorted(edges[:-1], u, side="right")]

    def plain(self) -> dict[str, Any]:
        """The law as it stands in a file."""
        plain: dict[str, Any] = {"choice": list(self.values)}
        if self.weights is not None:
            plain["weights"] = list(self.weights)
        return plain


LAWS: dict[str, type[Distribution]] = {
    law.kind: law
    for law in (Normal, TruncatedNormal, LogNormal, Uniform, LogUniform, Triangular, Choice)
}


def distribution_of(plain: Mapping[str, Any]) -> Distribution:
    """Law from its plain form, as a file has it.

    Examples
    --------
    >>> distribution_of({"normal": [1.0, 0.05]})
    Normal(mean=1.0, deviation=0.05)
    >>> distribution_of({"normal": [1.0]})
    Traceback (most recent call last):
        ...
    ValueError: normal: expected [mean, deviation], received [1.0]
    """
    from integrators.errors import suggest

    kinds = [key for key in plain if key != "weights"]
    if len(kinds) != 1 or kinds[0] not in LAWS:
        hint = suggest(kinds[0], LAWS) if kinds else ""
        raise ValueError(
            f"expected one of {', '.join(LAWS)}, such as {{uniform = [1.0, 1.1]}}, received "
            f"{dict(plain)!r}{hint}"
        )
    (kind,) = kinds
    law = LAWS[kind]
    if law is Choice:
        return Choice(plain["choice"], plain.get("weights"))
    wanted = [field.name for field in fields(law)]  # type: ignore[arg-type]
    given = plain[kind]
    if "weights" in plain or not isinstance(given, list | tuple) or len(given) != len(wanted):
        raise ValueError(f"{kind}: expected [{', '.join(wanted)}], received {given!r}")
    return law(*given)
