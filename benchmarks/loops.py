"""Closed loops against Pinocchio's constrained dynamics: one call from Python, and a simulation.

    python benchmarks/loops.py

Both sides get the same tree and close it at the same place. Pinocchio closes with points (three
rows each) and a proximal solver; ours with a revolute joint. Accelerations are compared first.
"""

from __future__ import annotations

import os
import time

import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp

from integrators import solve
from multibody import mechanisms
from multibody.runs.ivp import as_ivp, traced_fd

os.environ["FEATHERSTEP_COMPILE"] = "first"  # times of interpreted kernels mean nothing


def pinocchio_model(model, planar):
    """Tree and loop constraints of a model with revolute joints."""
    result = pin.Model()
    result.gravity.linear = np.array(model.gravity)
    ids = {0: 0}
    for i, body in enumerate(model.bodies, 1):
        place = pin.SE3(body.placement.E.T.copy(), body.placement.r.copy())
        joint = pin.JointModelRevoluteUnaligned(*body.joint.axis)
        ids[i] = result.addJoint(ids[body.parent], joint, place, body.name)
        m, c = body.inertia.array[0], body.inertia.array[1:4] / body.inertia.array[0]
        lower = body.inertia.array[4:]
        I = np.array(
            [
                [lower[0], lower[1], lower[3]],
                [lower[1], lower[2], lower[4]],
                [lower[3], lower[4], lower[5]],
            ]
        )
        cross = pin.skew(c)
        result.appendBodyToJoint(ids[i], pin.Inertia(m, c, I + m * cross @ cross), pin.SE3(1))
    constraints = pin.StdVec_RigidConstraintModel()
    for loop in model.loops:
        # Two points on the axis close a revolute joint; one is enough in the plane.
        for along in (0.0, 1.0)[: 1 if planar else 2]:
            sides = []
            for body, X in (
                (loop.predecessor, loop.placement_predecessor),
                (loop.successor, loop.placement_successor),
            ):
                point = X.r + along * X.E.T @ loop.joint.axis
                sides += [ids[body], pin.SE3(X.E.T.copy(), point)]
            constraints.append(
                pin.RigidConstraintModel(
                    pin.ContactType.CONTACT_3D, result, *sides, pin.ReferenceFrame.LOCAL
                )
            )
    return result, constraints


def shortest_times(*functions, calls=1, repeats=9):
    """The shortest time of each, taken in turns: what disturbs one disturbs the others."""
    times = [[] for _ in functions]
    for _ in range(repeats):
        for function, taken in zip(functions, times):
            start = time.perf_counter()
            for _ in range(calls):
                function()
            taken.append((time.perf_counter() - start) / calls)
    return [min(taken) for taken in times]


def main() -> None:
    for name in ("four_bar", "bricard"):
        entry = mechanisms.entry(name)
        model = entry.model()
        q, v = entry.start(model)
        tau = np.zeros(model.nv)
        theirs, constraints = pinocchio_model(model, name == "four_bar")
        data = theirs.createData()
        datas = pin.StdVec_RigidConstraintData()
        for c in constraints:
            datas.append(c.createData())
        settings = pin.ProximalSettings(1e-12, 1e-10, 20)
        pin.initConstraintDynamics(theirs, data, constraints, datas)

        def their_call():
            return pin.constraintDynamics(theirs, data, q, v, tau, constraints, datas, settings)

        f = traced_fd(model)
        x = np.concatenate([q, v])
        ours, other = f(0.0, x, tau)[model.nq :], their_call()
        gap = np.abs(ours - other).max() / (1.0 + np.abs(ours).max())
        t_ours, t_theirs = shortest_times(lambda: f(0.0, x, tau), their_call, calls=1000)
        print(f"{name}: one call from Python")
        print(
            f"  traced                 {1e6 * t_ours:8.2f} µs   (accelerations differ by {gap:.1e})"
        )
        print(f"  pin.constraintDynamics {1e6 * t_theirs:8.2f} µs   {t_theirs / t_ours:6.1f}× ours")

        problem = as_ivp(model, q, v, (0.0, 10.0))
        options = dict(method="DOP853", rtol=1e-8, atol=1e-8)
        mine = solve(problem, **options)

        def right_hand_side(t, x):
            a = pin.constraintDynamics(
                theirs, data, x[: model.nq], x[model.nq :], tau, constraints, datas, settings
            )
            return np.concatenate([x[model.nq :], a])

        scipys = solve_ivp(right_hand_side, (0.0, 10.0), x, **options)
        t_mine, t_scipy = shortest_times(
            lambda: solve(problem, **options),
            lambda: solve_ivp(right_hand_side, (0.0, 10.0), x, **options),
        )
        print(f"{name}: 10 s, DOP853, tolerance 1e-8")
        print(f"  solve                  {1e3 * t_mine:8.2f} ms   {mine.nfev} evaluations")
        print(
            f"  SciPy over Pinocchio   {1e3 * t_scipy:8.2f} ms   {scipys.nfev} evaluations, "
            f"{t_scipy / t_mine:.1f}× ours"
        )


if __name__ == "__main__":
    main()
