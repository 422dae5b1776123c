"""From a problem and a method to what runs in lanes need: machine code and arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...methods.runge_kutta.fused import (
    fused_dense_function,
    fused_step_function,
    outputs_size,
)
from ...problem import IVP
from ...stepping.control import Controller
from ...stepping.state import ESTIMATE_DOUBLING
from ...stepping.workspace import Common, Lanes
from ...tableau import Tableau
from ...tableau.rosenbrock import Rosenbrock
from .dense_code import due_code, interpolation, values_code
from .fixed_judge import fixed_judge
from .judge import Block, judge
from .linear_code import linear_step_function
from .newton_code import KINDS, NewtonCode, newton_code, why_not
from .rows import LANES, NEXT_TIME, PLACES, T_END, NewtonBlock
from .tasks import LaneTasks, Noted

__all__ = ["LaneCode", "lane_code"]

LARGEST_AROUND = 20_000  # operations of a step around calls of f
SAME_SLOPES = 1e-6  # difference of two Jacobians, relative to entries, that differences explain
IMPLICIT = ("prepare", "iterate", "rounding", "finish", "again", "further")


@dataclass
class LaneCode:
    """Machine code in lanes: the right-hand side, a whole step, its judge and its dense output.

    `step` is the machine code of an explicit step, or the pieces of an implicit one; `dense` makes
    polynomials of steps if they are needed, of a certain degree; `kept` is the number of stages
    that an explicit step leaves behind, `fsal` whether the next step begins with the last of them;
    `linear` steps are those of Rosenbrock methods.
    """

    stages: int
    fsal: bool
    estimate_order: int
    f: Any
    step: Any
    judge: Any
    dense: Any
    interpolate: Any
    degree: int
    kept: int
    block: Block
    tasks: LaneTasks
    fixed: bool
    controller: Controller
    linear: bool = False

    @property
    def looks_at_defects(self) -> bool:
        """Whether steps are judged by what happens inside of them, too."""
        return not self.fixed and (self.newton is not None or self.linear)

    @property
    def newton(self) -> NewtonCode | None:
        """The pieces of an implicit step."""
        return self.step if isinstance(self.step, NewtonCode) else None

    def common(self, first_step: float) -> Common:
        """What all threads share."""
        found = Common()
        found.stages, found.fixed = self.stages, int(self.fixed)
        found.first_step, found.exponent = first_step, 1 / (self.estimate_order + 1)
        found.tasks, found.n_events = int(bool(self.tasks)), len(self.tasks.directions)
        found.projects = int(self.tasks.project is not None)
        found.jumps = int(self.tasks.resets is not None)
        found.looks_inside = int(self.tasks.needs_dense)
        if self.newton is not None:
            rows, size = self.newton.rows, self.block.y.stop - self.block.y.start
            found.implicit, found.unrolled = 1, int(self.newton.unrolled)
            found.max_newton, found.singular = self.newton.max_newton, rows.singular
            found.memory = rows.lane.start + PLACES["MEMORY"]
            found.dense_inverse = rows.real.start + self.newton.dense_block * size * size
        return found

    def tolerances(self, rtols: Any, atols: Any) -> dict[str, Any]:
        """Tolerances as the steps need them, from those of each run."""
        smallest = np.finfo(float).tiny
        if self.newton is None:
            atols = np.maximum(atols, smallest)
            none = np.zeros(1)
            more = dict.fromkeys(("newton_tolerances", "inside_weights", "inside_stricts"), none)
            return dict(rtols=rtols, atols=atols, **more)
        engine = self.newton.engine
        used = np.array([engine.rtol_used(float(rtol)) for rtol in rtols])
        factors = np.divide(used, rtols, out=np.ones_like(used), where=rtols > 0)[:, None]
        newton = np.array([engine.newton_tolerance(float(rtol)) for rtol in used])
        atols = np.maximum(atols * factors, smallest)
        inside = np.array([engine.inside_weight(*both) for both in zip(rtols.tolist(), used)])
        strict = factors[:, 0] * (rtols > 0)
        more = dict(newton_tolerances=newton, inside_weights=inside, inside_stricts=strict)
        return dict(rtols=used, atols=atols, **more)

    def workspace(self, constants: list[float], notes: Noted, **shared: Any) -> Lanes:
        """Return the arrays of one thread; `constants` are the rows of a lane from T_END on."""
        rows, n = self.block, shared["y0"].shape[1]
        block = np.zeros((rows.size, LANES))
        block[rows.address].view(np.int64)[0] = self.f.address
        lane = block[rows.lane]
        lane[T_END : T_END + len(constants)] = np.array(constants, dtype=np.float64)[:, None]
        results = np.zeros((outputs_size(n, self.kept) + 1, LANES))  # at the end: a defect
        polynomials = np.zeros((self.degree * n + 1, LANES))
        return Lanes(
            f=self.f.address,
            fused=0 if self.newton else self.step.address,
            judge=self.judge.address,
            dense=_address(self.dense),
            interpolate=_address(self.interpolate),
            **self._output_codes(n, shared["p0"].shape[1], shared["t_eval"].size),
            **shared,
            run=np.zeros((3, LANES), dtype=np.int64),
            block=block,
            p=block[rows.p],
            f0=block[rows.f0],
            h=block[rows.h],
            y=block[rows.y],
            lane=lane,
            judged=block[rows.changing(self.fsal)],
            results=results,
            y_new=results[1 : 1 + n],
            x=np.zeros((n, LANES)),
            dx=np.zeros((n, LANES)),
            first=np.zeros((3, LANES)),
            rtol=block[rows.rtol],
            atol=block[rows.atol],
            next_time=lane[NEXT_TIME],
            dense_results=polynomials,
            Q=polynomials[:-1],
            **self._newton_fields(n),
            **self.tasks.fields(n, notes),
        )

    def _output_codes(self, n: int, k: int, outputs: int) -> dict[str, int]:
        """Addresses of what finds values at output times, if there are any."""
        if not outputs:
            return {"due": 0, "values": 0}
        stages = 0 if self.newton else self.kept
        due, values = due_code(n, k, stages, self.fixed), values_code(n, k, self.degree)
        return {"due": _address(due), "values": _address(values)}

    def _newton_fields(self, n: int) -> dict[str, Any]:
        """Fields of implicit steps; of explicit ones, nothing."""
        code = self.newton
        if code is None:
            return _newton_arrays(n, NewtonBlock.nothing(n), None, None, {})
        return _newton_arrays(n, code.rows, code.jac, code, code.pieces)


def _is_derivative(ivp: IVP, f: Any) -> bool:
    """Whether a Jacobian that was given is what lanes take in its place: that of the traced f.

    A matrix is not, since it stays the same; of a function the value at the start tells.
    """
    if ivp.jac is None:
        return True
    if not callable(ivp.jac):
        return False
    given = ivp.bind(ivp.jac)(ivp.t_span[0], ivp.y0.copy())
    dense = given.toarray() if hasattr(given, "toarray") else np.asarray(given, dtype=np.float64)
    p = (ivp.params,) if ivp.params.size else ()
    own = np.asarray(f.jacobian()(ivp.t_span[0], ivp.y0, *p)).reshape(ivp.n, ivp.n)
    return bool(np.all(np.abs(dense - own) <= SAME_SLOPES * np.abs(own).max(initial=0.0)))


def _address(code: Any) -> int:
    return 0 if code is None else int(code.address)


def _newton_arrays(
    n: int, newton: NewtonBlock, jac: Any, code: NewtonCode | None, pieces: dict[str, Any]
) -> dict[str, Any]:
    rows = np.zeros((newton.size, LANES))
    extension = None if code is None else code.extension
    more = (np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0)))
    if extension is not None:
        more = (extension.nodes, extension.points, extension.slopes)
    room = 0 if extension is None else len(extension.weights)
    stage = np.zeros((3 * n + 4 + n * n if room else 0, LANES))
    prepared = newton.size if code is not None and code.unrolled else newton.singular
    return dict(
        **{name: _address(pieces.get(name)) for name in IMPLICIT},
        jac=_address(jac),
        newton=rows,
        prepared=rows[:prepared],
        iterated=rows[: newton.lane.stop],
        newton_aside=np.zeros_like(rows),
        J=rows[newton.J],
        J_here=np.zeros_like(rows[newton.J]),
        norm=np.zeros((2, LANES)),
        pivots=np.zeros((n if code is not None else 0, LANES), dtype=np.int64),
        real_shift=np.zeros(0) if code is None else code.engine.real_shift.copy(),
        complex_shift=np.zeros(0, complex) if code is None else code.engine.complex_shift.copy(),
        extra_c=more[0],
        extra_A=more[1],
        extra_start=more[2],
        step_rows=np.zeros((1 + room * n if room else 0, LANES)),
        stage=stage,
        stage_found=stage[: n + 4] if room else stage,
    )


def lane_code(
    ivp: IVP,
    engine: Any,
    method: Any,
    inside: bool,
    max_norm: bool,
    tasks: LaneTasks,
    fixed: bool,
    controller: Controller | None,
) -> LaneCode | str:
    """Compile what runs in lanes need; or say why the method, or its output, has no place here.

    `engine` is the method bound to a run; `inside` says whether states inside of steps are wanted.
    Raises whatever tracing or compiling f raises.
    """
    from ...tracing import traced

    n, k = ivp.n, ivp.params.size
    f: Any
    decide: Any
    dense, degree, kept, fsal = None, 0, 0, False
    if not isinstance(method, (Tableau, Rosenbrock)):
        return f"lanes are for {KINDS}"
    if isinstance(method, Rosenbrock):
        if inside:
            return f"dense output of {method.name} is looked at step by step"
        if engine.state.keeps_matrix:
            return f"{method.name} keeps its matrix for some steps"
        f = traced(ivp.f, n=n, params=k or None)
        if not _is_derivative(ivp, f):
            return "its Jacobian is another than the derivative of f"
        step = linear_step_function(f, method, k, max_norm, fixed)
        if step is None:
            return f"a step of {method.name} with {n} states is too long for machine code"
        step, chosen = step.machine_code(LANES), controller or engine.default_controller
        decide = (
            fixed_judge(n, k, 0, False)
            if fixed
            else judge(n, k, 0, False, 0, chosen.predictive, defects=True)
        )
    elif not method.is_explicit:
        reason = why_not(engine, n)
        if reason:
            return reason
        f = traced(engine.problem.f if ivp.mass is None else ivp.f, n=n, params=k or None)
        if not _is_derivative(ivp, f):
            return "its Jacobian is another than the derivative of f"
        pieces = newton_code(f, engine, k, max_norm, inside, LANES)
        chosen = controller or engine.default_controller
        decide = judge(n, k, 0, False, pieces.max_newton, chosen.predictive, defects=True)
        degree = pieces.extension.weights.shape[1] if pieces.extension is not None else 0
        dense, step = pieces.pieces.get("dense"), pieces
    else:
        if controller is not None and controller.predictive:
            return "a predictive controller looks at Newton's iterations"
        if engine.state.estimate_kind == ESTIMATE_DOUBLING:
            return f"{method.name} has no embedded error estimate"
        if engine.state.inside_weight > 0.0:
            return f"f is looked at where steps of {method.name} end"
        if inside and method.simplifying_assumptions()[1] < 1:
            return f"stages of {method.name} stand at times that are not theirs"
        f = traced(ivp.f, n=n, params=k or None)
        fsal = method.fsal
        kept = method.stages if inside else int(fsal)
        step = fused_step_function(f, method, k, max_norm, kept, around=LARGEST_AROUND)
        if step is None:
            return f"a step of {method.name} with {n} states is too long for machine code"
        step, chosen = step.machine_code(LANES), controller or Controller()
        decide = (fixed_judge if fixed else judge)(n, k, kept, fsal)
        if inside:
            function = fused_dense_function(f, method, k)
            dense, degree = function.machine_code(LANES), (function.m - 1) // n
    return LaneCode(
        method.stages,
        fsal,
        engine.estimate_order,
        f.machine_code(LANES),
        step,
        decide.machine_code(LANES),
        dense,
        interpolation(n, degree) if inside else None,
        degree,
        kept,
        Block(n, k),
        tasks,
        fixed,
        chosen,
        isinstance(method, Rosenbrock),
    )
