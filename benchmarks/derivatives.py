"""Derivatives of forward dynamics: how long they take beside Pinocchio's, in one process.

    pip install -e ".[bench]"
    python benchmarks/derivatives.py

Serial arms of 7, 30 and 100 joints. `FD_derivatives` is the compiled recursion that serves every
model, `traced` the same recursion as machine code for the one model, both called from Python, as is
Pinocchio's `computeABADerivatives`. Times are the least of many; a ratio above 1 means that we are
faster. Then the same of closed loops, beside `computeConstraintDynamicsDerivatives`; accelerations
of Pinocchio come with them, as they do with ours, and disagreement is that of ∂v̇/∂τ: the others
depend on how a constraint is stated, for states that tear the loop apart. (Where constraints are
redundant, as Bricard's, Pinocchio's ∂v̇/∂τ is not that of its own accelerations.) The last lines
are a first step of RADAU5, from building the model.
"""

from __future__ import annotations

import os
import time
import timeit

import numpy as np

from integrators import solve
from multibody import FD_derivatives, as_ivp, mechanisms
from multibody.runs.derivatives import traced_derivatives

os.environ["FEATHERSTEP_COMPILE"] = "first"  # times of interpreted kernels mean nothing

TRACED_JOINTS = 7


def shortest(run, repeat: int = 30) -> float:
    """Least time of one call, in microseconds."""
    run()
    number = max(1, int(2e-3 / max(timeit.timeit(run, number=3) / 3, 1e-7)))
    return min(timeit.repeat(run, number=number, repeat=repeat)) / number * 1e6


def pinocchio_times(model, q, v, tau):
    """Time of Pinocchio and its matrices; None if it is not installed."""
    try:
        import pinocchio as pin
        from agree_pinocchio import pinocchio_of
    except ImportError:
        return None
    theirs = pinocchio_of(model)
    data = theirs.createData()
    taken = shortest(lambda: pin.computeABADerivatives(theirs, data, q, v, tau))
    pin.computeABADerivatives(theirs, data, q, v, tau)
    inverse = np.triu(data.Minv) + np.triu(data.Minv, 1).T
    return taken, (data.ddq_dq.copy(), data.ddq_dv.copy(), inverse)


def closed_loops(name: str, rng) -> None:
    """One line of a mechanism with loops."""
    import pinocchio as pin
    from loops import pinocchio_model

    entry = mechanisms.entry(name)
    model = entry.model()
    q, v = entry.start(model)
    tau = rng.normal(size=model.nv)
    theirs, constraints = pinocchio_model(model, name == "four_bar")
    data, datas = theirs.createData(), pin.StdVec_RigidConstraintData()
    for c in constraints:
        datas.append(c.createData())
    settings = pin.ProximalSettings(1e-12, 1e-10, 20)
    pin.initConstraintDynamics(theirs, data, constraints, datas)

    def peer():
        pin.constraintDynamics(theirs, data, q, v, tau, constraints, datas, settings)
        pin.computeConstraintDynamicsDerivatives(theirs, data, constraints, datas, settings)

    f, x = traced_derivatives(model), np.concatenate([q, v])
    taken = shortest(peer)
    generic = shortest(lambda: FD_derivatives(model, q, v, tau))
    special = shortest(lambda: f(0.0, x, tau))
    ours, b = FD_derivatives(model, q, v, tau)[2], data.ddq_dtau
    off = np.abs(ours - b).max() / np.abs(ours).max()
    ratios = f"{taken / generic:8.2f} {taken / special:8.2f}"
    print(f"{name:>10} {generic:7.2f} µs {special:7.2f} µs {taken:7.2f} µs {ratios} {off:22.1e}")


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    print("joints   generic     traced  Pinocchio   ratios generic, traced   disagreement")
    for n in (7, 30, 100):
        model = mechanisms.serial_arm(n)
        q, v, tau = rng.normal(size=(3, n))
        generic = shortest(lambda: FD_derivatives(model, q, v, tau))
        special = float("nan")
        if n <= TRACED_JOINTS:
            f, x = traced_derivatives(model), np.concatenate([q, v])
            special = shortest(lambda: f(0.0, x, tau))
        peer = pinocchio_times(model, q, v, tau)
        line = f"{n:6d} {generic:7.2f} µs {special:7.2f} µs"
        if peer is None:
            print(line, "  (Pinocchio is not installed)")
            continue
        ours = FD_derivatives(model, q, v, tau)
        off = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(ours, peer[1]))
        ratios = f"{peer[0] / generic:8.2f} {peer[0] / special:8.2f}"
        print(f"{line} {peer[0]:7.2f} µs {ratios} {off:22.1e}")
    for name in ("four_bar", "bricard"):
        try:
            closed_loops(name, rng)
        except ImportError:
            print(f"{name:>10}   (Pinocchio is not installed)")
    for n in (20, 50, 100):
        start = time.perf_counter()
        model = mechanisms.serial_arm(n, seed=n)
        problem = as_ivp(model, np.full(n, 0.1), t_span=(0.0, 1e-4))
        run = solve(problem, method="RADAU5", first_step=1e-4)
        taken = time.perf_counter() - start
        print(f"RADAU5, {n} joints: model, problem and first step {taken:.2f} s, {run.nfev} of f")


if __name__ == "__main__":
    main()
