"""M − γJ solved by GMRES, with J as a matrix or as a function v → J·v."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...kernels.pointers import SingularMatrixError
from .choice import IncompleteLU
from .direct import Patterned
from .krylov import gmres
from .pattern import Pattern
from .preconditioners import Built, Complete, built_preconditioner

__all__ = ["Directional", "KrylovSolver", "RunScale"]

Array = NDArray[Any]
Solver = Callable[[Array], Array]

SHARE = 0.05  # of Newton's tolerance that GMRES may leave
REDUCTION = 1e-3  # of the first residual: more than that, Newton's iteration sees to
TO_ROUND_OFF = 1e-12  # … with fixed steps, which have no tolerance
KEPT = 0.3  # relative change of γ for which a preconditioner is kept


class RunScale(Protocol):
    """What GMRES has to know of a run: sizes that matter, and when to stop."""

    def weights(self) -> Array:
        """Tolerance of each component."""

    def limit(self) -> float:
        """How far Newton's iteration goes, in tolerances; 0 for fixed steps."""

    def where(self) -> tuple[float, Array]:
        """Time and state where the Jacobian was asked for."""


class Directional:
    """A Jacobian that is known by its products J·v only."""

    def __init__(self, product: Callable[[Array], Array]) -> None:
        self.product = product

    def __matmul__(self, v: Array) -> Array:
        if v.dtype.kind == "c":
            return self.product(v.real.copy()) + 1j * self.product(v.imag.copy())
        return self.product(v)


class KrylovSolver(Patterned):
    """GMRES with a preconditioner: one that was asked for, else ILU(0) if the pattern is known.

    Where ILU(0) does not do, unasked, an LU takes its place.
    """

    def __init__(self, mass: Any, n: int, scale: RunScale, preconditioner: Any) -> None:
        super().__init__(mass, n)
        self.scale, self.wanted = scale, preconditioner
        self.built: Built | None = None
        self.J: Any = None
        self.kept: list[tuple[complex, Solver]] = []

    @property
    def name(self) -> str:
        """What it does, in words."""
        how = "without preconditioner"
        if self.built is not None:
            how = f"preconditioned by {self.built.name}"
        elif callable(self.wanted):
            how = "with the preconditioner given"
        return f"GMRES {how}"

    def use(self, J: Any) -> None:
        """Take a new Jacobian, sparse, dense or by its products."""
        by_products = isinstance(J, Directional | np.ndarray)
        self.kept = []
        if not by_products:
            super().use(J)
            self.J = J.tocsr()
            return
        self.J = J

    def _learn(self, pattern: Pattern) -> None:
        assert self.summed is not None
        if self.wanted is not None and not callable(self.wanted):
            wanted = IncompleteLU() if self.wanted == "auto" else self.wanted
            self.built = built_preconditioner(wanted, self.summed)

    def solver(self, shift: Any) -> Solver:
        """Prepare for M − shift·J; returns what solves with it."""
        J, mass = self.J, self.mass
        precondition = self._preconditioner(shift)

        def apply(v: Array) -> Array:
            moved = J @ v
            moved *= -shift
            moved += v if mass is None else mass @ v
            return np.asarray(moved)

        def solve(rhs: Array) -> Array:
            nonlocal precondition
            limit, weights = self.scale.limit(), self.scale.weights()
            reduction = REDUCTION if limit > 0 else TO_ROUND_OFF
            x, done = gmres(apply, precondition, rhs, weights, SHARE * limit, reduction)
            if not done and self._factorise_instead():
                precondition = self._preconditioner(shift)
                x, _ = gmres(apply, precondition, rhs, weights, SHARE * limit, reduction)
            return x

        return solve

    def _factorise_instead(self) -> bool:
        """Take an LU in place of an incomplete one that nobody asked for."""
        if self.wanted != "auto" or self.summed is None or isinstance(self.built, Complete):
            return False
        self.built, self.kept = Complete(self.summed), []
        return True

    def _preconditioner(self, shift: Any) -> Solver:
        """For this γ, or one that is near enough."""
        if self.built is None and not callable(self.wanted):
            return lambda r: r
        for known, made in self.kept:
            if abs(shift - known) <= KEPT * abs(known):
                return made
        if self.built is not None:
            try:
                made = self.built.made(self.data, shift)
            except SingularMatrixError:
                if not self._factorise_instead():
                    raise
                made = self.built.made(self.data, shift)
        else:
            made = _as_function(self.wanted(*self.scale.where(), shift))
        self.kept = [*self.kept[-3:], (shift, made)]
        return made


def _as_function(given: Any) -> Solver:
    """What a user's preconditioner returned: a function, or an object with `solve` or `matvec`."""
    for name in ("solve", "matvec"):
        if hasattr(given, name):
            return getattr(given, name)
    if not callable(given):
        raise TypeError(
            "preconditioner(t, y, gamma) must return a function r → z, or an object with such a "
            f"method `solve` or `matvec`; got {given!r}"
        )
    return given
