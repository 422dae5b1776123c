"""From a problem and a method to what runs in lanes need: machine code and arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..methods.runge_kutta.fused import fused_step_function, outputs_size
from ..problem import IVP
from ..stepping.workspace import Common, Lanes
from ..tableau import ContinuousExtension, Tableau
from ..tableau.extension import dense_extension, in_powers
from .fixed_judge import fixed_judge
from .judge import Block, judge
from .lane_rows import LANES, T_END
from .lane_tasks import LaneTasks, Noted

__all__ = ["LaneCode", "lane_code"]

LARGEST_AROUND = 20_000  # operations of a step around calls of f


@dataclass
class LaneCode:
    """Machine code in lanes: the right-hand side, a whole step, and its judge.

    `dense` is the continuous extension, if it is needed; `kept` is the number of stages that a
    step leaves behind.
    """

    tableau: Tableau
    f: Any
    fused: Any
    judge: Any
    dense: ContinuousExtension | None
    kept: int
    block: Block
    tasks: LaneTasks
    fixed: bool

    @property
    def estimate_order(self) -> int:
        """Order of the error estimate; of the method if there is none."""
        order, embedded = self.tableau.order, self.tableau.embedded_order
        if embedded is None:
            return order
        return order - 1 if self.tableau.low_error_weights is not None else min(order, embedded)

    def common(self, first_step: float) -> Common:
        """What all threads share."""
        found = Common()
        found.stages, found.fixed = self.tableau.stages, int(self.fixed)
        found.first_step, found.exponent = first_step, 1 / (self.estimate_order + 1)
        found.tasks, found.n_events = int(bool(self.tasks)), len(self.tasks.directions)
        found.projects = int(self.tasks.project is not None)
        return found

    def workspace(self, constants: list[float], notes: Noted, **shared: Any) -> Lanes:
        """Return the arrays of one thread; `constants` are the rows of a lane from T_END on."""
        tableau, rows, kept = self.tableau, self.block, self.kept
        A, _, c = tableau.arrays
        n, s = shared["y0"].shape[1], tableau.stages
        block = np.zeros((rows.size, LANES))
        block[rows.address].view(np.int64)[0] = self.f.address
        lane = block[rows.lane]
        lane[T_END:] = np.array(constants, dtype=np.float64)[:, None]
        P = np.zeros((0, 0))
        if self.dense is not None:
            P, extra = self.dense.P, len(self.dense.c_extra)
            A = np.pad(A, (0, extra))
            for i, row in enumerate(self.dense.A_extra):
                A[s + i, : len(row)] = row
            c = np.append(c, self.dense.c_extra)
        room = max(kept, len(P))  # for the slopes that dense output adds, behind the others
        results = np.zeros((outputs_size(n, room), LANES))
        return Lanes(
            f=self.f.address,
            fused=self.fused.address,
            judge=self.judge.address,
            A=A.copy(),
            c=c.copy(),
            P=P,
            **shared,
            run=np.zeros((3, LANES), dtype=np.int64),
            block=block,
            p=block[rows.p],
            f0=block[rows.f0],
            h=block[rows.h],
            y=block[rows.y],
            lane=lane,
            judged=block[rows.changing(tableau.fsal)],
            results=results,
            y_new=results[1 : 1 + n],
            K=results[1 + n :].reshape(room, n, LANES),
            x=np.zeros((n, LANES)),
            dx=np.zeros((n, LANES)),
            first=np.zeros((3, LANES)),
            rtol=block[rows.rtol],
            atol=block[rows.atol],
            basis=in_powers(P.shape[1]),
            Q=np.zeros((P.shape[1], n, LANES)),
            one=np.zeros((P.shape[1], n)),
            sums=np.zeros(n),
            **self.tasks.fields(n, notes),
        )


def lane_code(
    ivp: IVP, method: Any, inside: bool, max_norm: bool, tasks: LaneTasks, fixed: bool
) -> LaneCode | str:
    """Compile what runs in lanes need; or say why the method, or its output, has no place here.

    `inside` says whether states inside of steps are wanted. Raises whatever tracing or compiling f
    raises.
    """
    from ..tracing import traced

    if not isinstance(method, Tableau) or not method.is_explicit:
        return "lanes are for explicit tableaux"
    if method.b_hat is None and not fixed:
        return f"{method.name} has no embedded error estimate"
    if inside and method.simplifying_assumptions()[1] < 1:
        return f"stages of {method.name} stand at times that are not theirs"
    n, k = ivp.n, ivp.params.size
    f = traced(ivp.f, n=n, params=k or None)
    kept = method.stages if inside else int(method.fsal)
    step = fused_step_function(f, method, k, max_norm, kept, around=LARGEST_AROUND)
    if step is None:
        return f"a step of {method.name} with {n} states is too long for machine code"
    return LaneCode(
        method,
        f.machine_code(LANES),
        step.code_alone(LANES),
        (fixed_judge if fixed else judge)(n, k, kept, method.fsal).machine_code(LANES),
        dense_extension(method) if inside else None,
        kept,
        Block(n, k),
        tasks,
        fixed,
    )
