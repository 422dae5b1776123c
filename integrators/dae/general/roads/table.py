"""The roads from a DAE and a consistent start to a problem that ``solve`` takes.

==============  =================================================================================
``dummy``       dummy derivatives: index 1, for implicit methods (:mod:`.dummy`)
``underlying``  the underlying ordinary differential equation, for any method, with projection
                onto all constraints after each step (:mod:`.underlying`)
``taylor``      the same, with Taylor coefficients of the DAE itself for the Taylor methods
``given``       the equations as they are, for index 1, and for index 2 and 3 with methods that
                are stiffly accurate (:mod:`.given`)
==============  =================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import suggest
from ....tracing import GraphTooLargeError, Traced
from ..derivative_array import LARGEST_TRACED
from ..elimination import row_scales
from ..start import Start
from .dummy import DummyDerivatives, DummyProjection
from .given import AsGiven
from .problem import Completed, DAEProblem, common_fields, state_names
from .projection import Projection
from .restored import Restored
from .underlying import Rates, SeriesODE

if TYPE_CHECKING:
    from ..system import DAE

__all__ = ["ROADS", "make_problem"]

ROADS = ("dummy", "underlying", "taylor", "given")
# Unknowns and operations of a system whose underlying ODE becomes machine code.
LARGEST_SYSTEM = 300
LARGEST_UNDERLYING = 20_000


def make_problem(
    system: DAE, start: Start, t_span: Any, road: str | None, events: Any, fields: dict[str, Any]
) -> DAEProblem:
    """Make a problem of a system; see :meth:`integrators.DAE.problem`."""
    if road is None:
        road = "given" if system.structure().index <= 1 else "dummy"
    if road not in ROADS:
        raise ValueError(
            f"there is no road {road!r}{suggest(str(road), ROADS)}; known are {', '.join(ROADS)}"
        )
    if road in ("underlying", "taylor"):
        return _underlying(system, start, t_span, road, events, fields)
    if road == "dummy":
        return _dummy(system, start, t_span, events, fields)
    return _given(system, start, t_span, events, fields)


def _underlying(
    system: DAE, start: Start, t_span: Any, road: str, events: Any, fields: dict[str, Any]
) -> DAEProblem:
    array = system.array
    projection = system.derived("projection", lambda: Projection(array))
    entries = array.entries(start.t, start.X, start.params)
    scales = row_scales(array.system_jacobian.rows, entries, array.n)
    n, k = len(array.state_keys), array.k

    def make() -> Traced:
        rates = Rates(array, scales)
        return SeriesODE(rates, n, k) if road == "taylor" else Traced(rates, n=n, params=k)

    too_large = array.n > LARGEST_SYSTEM
    if not too_large:
        try:
            f = system.derived((road, tuple(scales)), make)
            too_large = len(f.graph) > LARGEST_UNDERLYING
        except GraphTooLargeError:
            too_large = True
    if too_large:
        raise ValueError(
            f"the underlying ODE of {system.name or 'the system'} ({array.n} unknowns) is too "
            "large for a graph: its blocks are eliminated symbolically; take road='dummy' or "
            "'given', which use sparse linear algebra"
        )
    return DAEProblem(
        f,
        start.X[array.state_places],
        t_span,
        start.params,
        project=projection,
        state_names=state_names(array, array.state_keys),
        road=road,
        derivatives=projection.all_derivatives,
        **common_fields(
            system,
            start,
            events,
            Completed(array, array.state_places, projection.state, start.params),
            fields,
        ),
    )


def _dummy(
    system: DAE, start: Start, t_span: Any, events: Any, fields: dict[str, Any]
) -> DAEProblem:
    array = system.array
    dummy = system.derived("dummy", lambda: DummyDerivatives(array))
    f: Any = dummy
    small = dummy.size <= LARGEST_TRACED
    if small:
        f = system.derived("dummy traced", lambda: Traced(dummy, n=dummy.size, params=array.k))
    completed = Completed(array, np.arange(array.size), dummy.start, start.params)
    return DAEProblem(
        f,
        dummy.start(start.t, start.X, start.params),
        t_span,
        start.params,
        mass=dummy.mass(),
        jac=None if small else dummy.jacobian,
        project=DummyProjection(dummy),
        state_names=dummy.names,
        road="dummy",
        derivatives=dummy.derivatives,
        chosen_from=array.size + dummy.count if dummy.count else None,
        **common_fields(system, start, events, completed, fields),
    )


def _given(
    system: DAE, start: Start, t_span: Any, events: Any, fields: dict[str, Any]
) -> DAEProblem:
    array = system.array
    given = system.derived("given", lambda: AsGiven(array, system.equations))
    completed = Completed(array, given.in_array, given.state, start.params)
    higher = given.index is not None and completed.by_stages
    return DAEProblem(
        given.rhs,
        given.state(start.t, start.X),
        t_span,
        start.params,
        mass=given.mass,
        jac=given.jac,
        index=given.index,
        project=Restored(completed) if higher else None,
        state_names=given.names,
        road="given",
        derivatives=completed.derivatives,
        **common_fields(system, start, events, completed, fields),
    )
