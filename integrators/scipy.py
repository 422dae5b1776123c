"""Our methods behind SciPy's door: ``solve_ivp(f, t_span, y0, method=integrators.scipy.RADAU5)``.

Every method of the catalogue, and every method object, is a class of SciPy's ``OdeSolver`` here:
programs that call ``solve_ivp`` keep their code and change one argument. Options are SciPy's, with
its defaults.

>>> from scipy.integrate import solve_ivp
>>> import integrators.scipy
>>> run = solve_ivp(lambda t, y: -y, (0, 1), [1.0], method=integrators.scipy.RADAU5)
>>> print(f"{run.y[0, -1]:.4f}")
0.3679
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import DenseOutput, OdeSolver

from .errors import IntegrationError
from .methods.names import method_name
from .problem import IVP
from .stepwise import stepper

__all__ = ["CatalogueSolver", "solver"]


def solver(method: Any) -> type[OdeSolver]:
    """Return a method as a class for the argument ``method`` of SciPy's ``solve_ivp``.

    Parameters
    ----------
    method
        A name, a tableau, ``Taylor(20)``, …: whatever ``integrators.solve`` takes.

    Examples
    --------
    >>> from scipy.integrate import solve_ivp
    >>> run = solve_ivp(lambda t, y: -y, (0, 1), [1.0], method=solver("Verner98"), rtol=1e-10)
    >>> run.status, run.nfev < 200
    (0, True)
    """
    return _named(method) if isinstance(method, str) else _made(method)


@cache
def _named(name: str) -> type[OdeSolver]:
    from .methods.names import named_method

    named_method(name)  # complains about a name that is none
    return _made(name)


def _made(method: Any) -> type[OdeSolver]:
    name = method_name(method)
    doc = f"{name} as a solver of SciPy's solve_ivp."
    return type(name, (CatalogueSolver,), {"method": method, "__doc__": doc})


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return solver(name)
    except (KeyError, ValueError) as error:
        raise AttributeError(f"integrators.scipy has no method {name!r}: {error}") from None


class CatalogueSolver(OdeSolver):
    """A method of ours that takes its steps when SciPy asks for them; see :func:`solver`.

    Parameters
    ----------
    fun, t0, y0, t_bound, vectorized
        As SciPy hands them over. A traced function is used at full speed.
    rtol, atol, max_step, first_step, jac, jac_sparsity
        SciPy's options.
    step
        Length of fixed steps, which symplectic methods need; rtol and atol then say nothing of
        their errors.
    **extraneous
        Further options are warned of, as SciPy's own solvers do.
    """

    method: Any = "DOPRI5"

    def __init__(
        self,
        fun: Any,
        t0: float,
        y0: NDArray[Any],
        t_bound: float,
        vectorized: bool = False,
        rtol: Any = 1e-3,
        atol: Any = 1e-6,
        max_step: float = np.inf,
        first_step: float | None = None,
        jac: Any = None,
        jac_sparsity: Any = None,
        step: float | None = None,
        **extraneous: Any,
    ) -> None:
        if extraneous:
            warnings.warn(
                "The following arguments have no effect for a chosen solver: "
                f"{', '.join(f'`{name}`' for name in extraneous)}.",
                stacklevel=2,
            )
        super().__init__(fun, t0, y0, t_bound, vectorized, support_complex=True)
        f = self.fun_single if vectorized else fun
        self._run = None
        if t0 != t_bound:
            problem = IVP(f, self.y, (t0, t_bound), jac=jac, jac_sparsity=jac_sparsity)
            self._run = stepper(
                problem,
                method=type(self).method,
                rtol=rtol,
                atol=atol,
                max_step=max_step,
                first_step=first_step,
                step=step,
            )
            self._count()

    def _count(self) -> None:
        assert self._run is not None
        statistics = self._run.statistics
        self.nfev, self.njev, self.nlu = (statistics[name] for name in ("nfev", "njev", "nlu"))

    def _step_impl(self) -> tuple[bool, str | None]:
        assert self._run is not None
        try:
            self._run.step()
        except IntegrationError as error:
            if error.__cause__ is not None:  # what f raised is the caller's own
                raise error.__cause__ from None
            return False, str(error)
        finally:
            self._count()
        self.t, self.y = self._run.t, self._run.y
        return True, None

    def _dense_output_impl(self) -> DenseOutput:
        assert self._run is not None
        return _Step(self._run.last_step)


class _Step(DenseOutput):
    """One step, as SciPy knows dense output."""

    def __init__(self, polynomial: Any) -> None:
        super().__init__(float(polynomial.t[0]), polynomial.end)
        self._polynomial = polynomial

    def _call_impl(self, t: Any) -> Any:
        times = np.atleast_1d(t)
        values = self._polynomial._evaluate(times)  # SciPy also asks a little outside
        return values[0] if np.ndim(t) == 0 else values.T
