"""A right-hand side in two parts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ...problem import accepts_params

__all__ = ["Split"]


class Split:
    """f = f_E + f_I: a right-hand side whose stiff part is known.

    Additive methods (``method="ARK436IMEX"`` and its like) treat the second part implicitly and
    the first explicitly; all other methods see the sum. If both parts are traced, so is the sum.

    Parameters
    ----------
    explicit, implicit
        Functions f(t, y) or f(t, y, p).
    jac
        Jacobian of the implicit part, a function or a constant matrix; by default it is found from
        the trace, or by differences.

    Examples
    --------
    >>> from integrators import solve
    >>> f = Split(lambda t, y: np.cos(t) + 0 * y, lambda t, y: -1000.0 * y)
    >>> sol = solve(f, (0, 1), [1.0], method="ARK324IMEX")
    >>> sol.success, bool(abs(sol.y[0, -1] - (1000 * np.cos(1) + np.sin(1)) / 1000001) < 1e-6)
    (True, True)
    """

    def __init__(
        self, explicit: Callable[..., Any], implicit: Callable[..., Any], jac: Any = None
    ) -> None:
        for what, part in (("explicit", explicit), ("implicit", implicit)):
            if not callable(part):
                raise TypeError(
                    f"the {what} part must be a function f(t, y), got {type(part).__name__}"
                )
        self.explicit, self.implicit, self.jac = explicit, implicit, jac
        self.takes_parameters = accepts_params(explicit) or accepts_params(implicit)
        names = ("t", "y", "p") if self.takes_parameters else ("t", "y")
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
        )
        self.total: Any = None
        if hasattr(explicit, "machine_code") and hasattr(implicit, "machine_code"):
            self.total = self._traced_sum()

    def _traced_sum(self) -> Any:
        from ...tracing import traced

        first, second = self.explicit, self.implicit

        def of_both(t: Any, y: Any) -> Any:
            return np.asarray(first(t, y)) + np.asarray(second(t, y))

        def with_parameters(t: Any, y: Any, p: Any) -> Any:
            return np.asarray(_called(first, t, y, p)) + np.asarray(_called(second, t, y, p))

        n = getattr(first, "_size", None) or getattr(second, "_size", None)
        if not self.takes_parameters:
            return traced(of_both, n=n)
        counts = [getattr(part, "_parameters", None) for part in (first, second)]
        return traced(with_parameters, n=n, params=max(filter(None, counts), default=None))

    def __call__(self, t: Any, y: Any, *p: Any) -> Any:
        """Return the sum of both parts."""
        if self.total is not None:
            return self.total(t, y, *p)
        parts = [_called(part, t, y, *p) for part in (self.explicit, self.implicit)]
        return np.asarray(parts[0]) + np.asarray(parts[1])

    def with_parameters(self, count: int) -> Split:
        """Return the same function as one of parameters as well, if it is traced and takes none."""
        if not count or self.takes_parameters or self.total is None:
            return self
        explicit: Any = self.explicit
        implicit: Any = self.implicit
        return Split(explicit.with_parameters(count), implicit.with_parameters(count), self.jac)

    def __getattr__(self, name: str) -> Any:
        """What a traced function has, the sum has as well, if it is traced."""
        if name.startswith("__") or name == "total" or self.__dict__.get("total") is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.total, name)

    def __reduce__(self) -> Any:
        return Split, (self.explicit, self.implicit, self.jac)

    def __repr__(self) -> str:
        names = (getattr(f, "__name__", repr(f)) for f in (self.explicit, self.implicit))
        return "Split({} + {})".format(*names)


def _called(part: Callable[..., Any], t: Any, y: Any, *p: Any) -> Any:
    return part(t, y, *p) if p and accepts_params(part) else part(t, y)
