"""``DAE``: equations F(t, y, ẏ, ÿ, …) = 0 with what their structure says and how to solve them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import suggest
from ...problem import IVP
from .converting.conversion import converted
from .derivative_array import DerivativeArray
from .equations import Equations, trace_equations
from .pattern.structure import Structure, StructureError
from .prolongation import program_values
from .roads.problem import DAEProblem
from .roads.table import make_problem
from .start import Start, consistent

__all__ = ["DAE"]

Array = NDArray[np.float64]

#: Fields of a problem that are the user's; the others follow from the equations.
FIELDS = ("exact", "invariants", "name", "references", "source")


class DAE:
    """A system of differential-algebraic equations F(t, y, ẏ, ÿ, …) = 0.

    Parameters
    ----------
    F
        ``F(t, y, d)`` or, with parameters, ``F(t, y, d, p)``: returns as many residuals as there
        are unknowns. ``d(y[0], 2)`` is ÿ₀; d takes unknowns, expressions of them and arrays. As an
        array, d is ẏ, so that a plain ``F(t, y, yp)`` is understood as well. It is traced: no
        branches on the values of t, y, d or p; ``integrators.where`` chooses between values.
    names
        Names of the unknowns.
    n
        Their number, where there are no names; they are then called y0, y1, …
    params
        Values of the parameters p.
    equations
        Names of the equations; f0, f1, … if not given.
    name
        For tables and plots.

    Examples
    --------
    A pendulum in Cartesian coordinates: index 3.

    >>> from integrators import DAE
    >>> def pendulum(t, y, d):
    ...     x, z, lam = y
    ...     return [d(x, 2) + lam * x, d(z, 2) + lam * z + 9.81, x**2 + z**2 - 1]
    >>> system = DAE(pendulum, names=["x", "z", "lambda"])
    >>> print(system.structure())
    pendulum: 3 equations, 3 unknowns
           x   z  lambda  c
      f0  2*   ·       0  0
      f1   ·   2      0*  0
      f2   0  0*       ·  2
      d    2   2       0
    structural index 3, 2 freedoms
    to be differentiated: f2 twice
    to give at the start: 1 of x, z; 1 of x', z'
    blocks: 1 (of 3) by occurrence, 1 (of 3) by leading derivatives
    >>> start = system.consistent(t=0, fixed={"x": 0.6, "x'": 0.0}, guess={"z": -1.0})
    >>> round(start["z"], 12), round(start["lambda"], 12)
    (-0.8, 7.848)
    """

    def __init__(
        self,
        F: Callable[..., Any],
        names: Sequence[str] | None = None,
        *,
        n: int | None = None,
        params: ArrayLike = (),
        equations: Sequence[str] | None = None,
        name: str = "",
    ) -> None:
        if not callable(F):
            raise TypeError(f"F must be a function F(t, y, d), got {F!r}")
        self.function = F
        if isinstance(params, Mapping):
            raise TypeError("params must be a list of numbers, p[0], p[1], …; got a dictionary")
        self.params = np.atleast_1d(np.asarray(params, dtype=float))
        if self.params.ndim != 1:
            raise ValueError(f"params must be a flat list, got shape {self.params.shape}")
        self.unknowns = _unknowns(names, n)
        self.name = name or getattr(F, "__name__", "").replace("<lambda>", "")
        self._derived: dict[Any, Any] = {}
        self._equation_names = None if equations is None else tuple(map(str, equations))

    def __reduce__(self) -> Any:
        """Pickle the traced equations: F itself may be a local function."""
        names = self.equations.names
        return _rebuilt, (_Replayed(self.equations), self.unknowns, self.params, names, self.name)

    def __repr__(self) -> str:
        return f"<DAE {self.name or 'unnamed'}: {len(self.unknowns)} unknowns>"

    @classmethod
    def from_mass_matrix(
        cls,
        mass: Any,
        f: Callable[..., Any],
        names: Sequence[str] | None = None,
        **options: Any,
    ) -> DAE:
        """Return the system M ẏ = f(t, y), where M may be singular and depend on the state.

        Parameters
        ----------
        mass
            A matrix, or a function of (t, y) or (t, y, p) that returns one.
        f
            ``f(t, y)`` or ``f(t, y, p)``.
        names, options
            As for :class:`DAE`; the size is that of a constant matrix.

        Examples
        --------
        >>> system = DAE.from_mass_matrix([[1, 0], [0, 0]], lambda t, y: [y[1], y[0] - np.sin(t)])
        >>> system.structure().index
        2
        """
        from ...problem import accepts_params

        rate = mass if callable(mass) else None
        M = None
        if rate is None:
            M = _constant_mass(mass)
            if names is None:
                options.setdefault("n", M.shape[1])

        def F(t: Any, y: Any, d: Any, p: Any = ()) -> Any:
            more = (p,) if len(p) else ()
            right = np.asarray(f(t, y, *(more if accepts_params(f) else ())))
            if M is not None:
                left = _product(M, np.asarray(d))
            else:
                assert rate is not None
                arguments = more if more and accepts_params(rate) else ()
                matrix = np.asarray(rate(t, y, *arguments))
                if matrix.ndim != 2 or matrix.shape[1] != len(y):
                    raise ValueError(
                        f"mass: expected a matrix with {len(y)} columns, got shape {matrix.shape}"
                    )
                left = matrix @ np.asarray(d)
            if left.shape != right.shape:
                raise ValueError(
                    f"M ẏ has {left.size} components, but f returned shape {right.shape}"
                )
            return left - right

        F.__name__ = getattr(f, "__name__", "f").replace("<lambda>", "")
        return cls(F, names, **options)

    @classmethod
    def from_problem(cls, problem: IVP) -> DAE:
        """Return the system behind an initial value problem M ẏ = f(t, y).

        Examples
        --------
        >>> from integrators import problems
        >>> DAE.from_problem(problems.get("pendulum_dae")).structure().index
        3
        """
        mass = np.eye(problem.n) if problem.mass is None else problem.mass
        return cls.from_mass_matrix(
            mass,
            problem.f,
            problem.state_names or None,
            params=problem.params,
            name=problem.name,
            n=problem.n,
        )

    # ------------------------------------------------------------ structure

    @cached_property
    def equations(self) -> Equations:
        """The traced equations as given."""
        return trace_equations(self.function, self.unknowns, self._equation_names, self.params.size)

    @cached_property
    def _structure(self) -> Structure:
        found = converted(self.equations, self.params.tolist())
        index = None if found.offsets is None else found.index
        return Structure(
            found.equations,
            found.sigma,
            found.offsets,
            found.done,
            self.name,
            index,
            found.singular,
        )

    def structure(self) -> Structure:
        """Return signature matrix, index, freedoms, blocks and what may be given at the start."""
        return self._structure

    @cached_property
    def array(self) -> DerivativeArray:
        """The equations with their derivatives as functions; raises for a singular structure."""
        if not self._structure.regular:
            raise StructureError(f"{self.name or 'the system'}: {self._structure.trouble}")
        if self._structure.singularity is not None:
            raise StructureError(f"{self.name or 'the system'}: {self._structure.doubt}")
        return DerivativeArray(self._structure)

    # ------------------------------------------------------------ start

    def consistent(
        self,
        t: float = 0.0,
        fixed: Any = None,
        guess: Any = None,
        *,
        params: ArrayLike | None = None,
    ) -> Start:
        """Find values that satisfy the equations and all hidden constraints.

        Parameters
        ----------
        t
            The time of the start.
        fixed
            Values that must hold, ``{"x": 1.0, "x'": 0.0}``, or a list of the unknowns.
        guess
            Values that should change as little as possible; what is given nowhere starts from 0
            and changes most easily.
        params
            Other values of the parameters.

        Returns
        -------
        Start
            With all derivatives that occur, and what is left of every equation.

        Raises
        ------
        ValueError
            If the fixed values contradict the equations, with the residuals that stay.
        """
        p = self._params(params)
        if not np.isfinite(t):
            raise ValueError(f"t: expected a finite time, got {t}")
        return consistent(self.array, float(t), fixed, guess, p)

    # ------------------------------------------------------------ roads

    def derived(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made before under a key, or make it."""
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    def problem(
        self,
        start: Start,
        t_span: Sequence[float],
        road: str | None = None,
        *,
        events: Any = (),
        **fields: Any,
    ) -> DAEProblem:
        """Make an initial value problem for ``solve``.

        Parameters
        ----------
        start
            A consistent start, from :meth:`consistent`.
        t_span
            (t0, t1); t0 is the time of the start.
        road
            "dummy", "underlying", "taylor" or "given", see ``docs/general-dae.md``; by default
            "given" for index 0 and 1 and "dummy" above.
        events
            Functions ``g(t, y)`` or :class:`Event` objects. The first components of y are the
            unknowns, whatever the road. After a reset the state is made consistent again.
        fields
            Further fields of :class:`IVP`: invariants, exact, references, name, source.

        Examples
        --------
        >>> from integrators import DAE, solve
        >>> def pendulum(t, y, d):
        ...     x, z, lam = y
        ...     return [d(x, 2) + lam * x, d(z, 2) + lam * z + 9.81, x**2 + z**2 - 1]
        >>> system = DAE(pendulum, names=["x", "z", "lambda"])
        >>> start = system.consistent(t=0, fixed={"x": 1.0, "x'": 0.0})
        >>> for road, method in [("dummy", "RADAU5"), ("underlying", "DOPRI853"),
        ...                      ("taylor", "Taylor"), ("given", "RADAU5")]:
        ...     problem = system.problem(start, (0, 1), road)
        ...     sol = solve(problem, method=method, rtol=1e-9, atol=1e-9)
        ...     print(f"{sol.y[0, -1]:.6f}")
        -0.986292
        -0.986292
        -0.986292
        -0.986292
        """
        if not isinstance(start, Start):
            raise TypeError(
                f"expected a start from system.consistent(...), got {type(start).__name__}"
            )
        if start.names != tuple(self.array.names):
            raise ValueError("the start belongs to another system: its values have other names")
        if start.t != float(t_span[0]):
            raise ValueError(
                f"the start is consistent at t = {start.t:g}, but t_span begins at {t_span[0]:g}"
            )
        for field in fields:
            if field not in FIELDS:
                raise TypeError(
                    f"problem() has no argument {field!r}{suggest(field, FIELDS)}; a DAE's problem "
                    f"may be given {', '.join(FIELDS)}"
                )
        return make_problem(self, start, t_span, road, events, fields)

    def _params(self, params: ArrayLike | None) -> Array:
        if params is None:
            return self.params
        given = np.atleast_1d(np.asarray(params, dtype=float))
        if given.shape != self.params.shape:
            raise ValueError(
                f"expected {self.params.size} parameters, got {given.size} (shape {given.shape})"
            )
        return given


def _constant_mass(mass: Any) -> Any:
    """Return a constant mass matrix as a sparse one."""
    from scipy.sparse import csr_matrix, issparse

    matrix = csr_matrix(mass if issparse(mass) else np.atleast_2d(np.asarray(mass, dtype=float)))
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"mass: expected a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix.data).all():
        raise ValueError("mass: expected finite entries, got NaN or infinity")
    return matrix


def _product(M: Any, d: Any) -> Any:
    """M ẏ, where ẏ may be symbols: entry by entry of a sparse matrix."""
    out = np.zeros(M.shape[0], dtype=object)
    for i in range(M.shape[0]):
        for k in range(M.indptr[i], M.indptr[i + 1]):
            out[i] = out[i] + float(M.data[k]) * d[M.indices[k]]
    return out


class _Replayed:
    """Traced equations in the place of the function that they were traced from."""

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.__name__ = "F"

    def __call__(self, t: Any, y: Any, d: Any, p: Any = ()) -> Any:
        """Return the residuals."""
        symbols = [d(y[j], order) for j, order in self.equations.symbols]
        return program_values(self.equations.program, t, symbols, list(p))


def _unknowns(names: Sequence[str] | None, n: int | None) -> tuple[str, ...]:
    if names is None and n is None:
        raise TypeError(
            "how many unknowns are there? Give their names, DAE(F, names=['x', 'z']), or n=2"
        )
    if names is None:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n must be the number of unknowns, at least 1; got {n!r}")
        return tuple(f"y{j}" for j in range(n))
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    found = tuple(str(name) for name in names)
    if n is not None and n != len(found):
        raise ValueError(f"n = {n}, but there are {len(found)} names")
    if not found:
        raise ValueError("names is empty; expected at least one unknown")
    for name in found:
        if not name or "'" in name or name != name.strip():
            raise ValueError(
                f"{name!r} cannot be the name of an unknown: a prime stands for a derivative"
            )
    if len(set(found)) != len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise ValueError(f"two unknowns have the name {twice!r}")
    return found


def _rebuilt(function: Any, names: Any, params: Any, equations: Any, name: str) -> DAE:
    return DAE(function, names, params=params, equations=equations, name=name)
