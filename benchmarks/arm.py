"""Forward dynamics and whole simulations of robot arms, against Pinocchio.

    pip install -e ".[bench-pinocchio]" && python benchmarks/arm.py

The arms have revolute joints, generic geometry and generic inertias (`mechanisms.serial_arm`); the
same model is built on both sides, and results are compared before anything is timed. Everything
runs on one thread of one process; compilation is done before the clock starts and printed apart.
Ratios are Pinocchio's time divided by ours. Without Pinocchio only our own numbers are printed.
"""

import argparse
import os
import time

import numpy as np
from scipy.integrate import solve_ivp

from integrators import solve
from integrators.kernels import compiled, kernel
from integrators.kernels.pointers import call, call_lanes
from integrators.tracing.llvm.codegen import native_lanes
from multibody import FD, as_ivp, mechanisms
from multibody.dynamics.functions import forward_dynamics
from multibody.runs.ivp import traced_fd

os.environ["FEATHERSTEP_COMPILE"] = "first"  # times of interpreted kernels mean nothing

try:
    import pinocchio as pin
except ImportError:
    pin = None

STATES = 2048  # in one batch: enough to fill caches as a simulation does
REPEATS = 9
CALLS = 500
TOLERANCE = 1e-8
DURATION = 10.0
DAMPING = 0.1  # N m s; without friction the fall is chaotic, and runs cannot be compared
EARLY = 2.0  # s; while it still moves fast
SAME = 1e-5  # tolerance, and how it grows until then


def best_time(run, repeats=REPEATS):
    """The shortest of several runs, which other programs have disturbed least."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def seconds(run):
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def report(label, ours, peer=None, unit=1e6, name="µs"):
    ratio = f"{peer / ours:8.2f}×" if peer else ""
    print(f"  {label:44} {ours * unit:10.3f} {name} {ratio}", flush=True)


# ---------------------------------------------------------------------- the peer


def pinocchio_model(model):
    """The same arm for Pinocchio: revolute joints about z."""
    peer = pin.Model()
    peer.gravity.linear = np.array(model.gravity)
    numbers = [0]
    for body in model.bodies:
        place = pin.SE3(body.placement.E.T.copy(), body.placement.r.copy())
        numbers.append(peer.addJoint(numbers[body.parent], pin.JointModelRZ(), place, body.name))
        inertia = pin.Inertia(
            body.inertia.mass, np.array(body.inertia.centre), np.array(body.inertia.central)
        )
        peer.appendBodyToJoint(numbers[-1], inertia, pin.SE3.Identity())
    return peer


def pinocchio_batch(peer, q, v, tau):
    """A function that computes all accelerations in one C++ loop, and where it puts them."""
    columns = [np.asfortranarray(x.T) for x in (q, v, tau)]
    out = np.zeros_like(columns[1], order="F")
    pool = pin.ModelPool(peer, 1)
    return (lambda: pin.abaInParallel(1, pool, *columns, out)), out


# ---------------------------------------------------------------------- our loops


@kernel
def traced_loop(f, x, p, out):
    for i in range(x.shape[0]):
        call(f, 0.0, x[i], p[i], out[i])


@kernel
def lanes_loop(f, t, x, p, out):
    for i in range(x.shape[0]):
        call_lanes(f, t, x[i], p[i], out[i])


@kernel
def generic_loop(w, q, v, tau, out):
    for i in range(q.shape[0]):
        for k in range(q.shape[1]):
            w.q[k] = q[i, k]
            w.v[k] = v[i, k]
            w.tau[k] = tau[i, k]
        forward_dynamics(w)
        for k in range(q.shape[1]):
            out[i, k] = w.a_q[k]


def batch(n, states=STATES, seed=1):
    rng = np.random.default_rng(seed)
    q, v, tau = rng.normal(size=(3, states, n))
    return q, v, tau


def check(label, found, expected):
    gap = np.abs(found - expected).max() / np.abs(expected).max()
    assert gap < 1e-10, f"{label} differs by {gap}"


# ---------------------------------------------------------------------- what is measured


def forward_dynamics_of(n):
    print(f"\nForward dynamics, {n} joints, time for one state")
    model = mechanisms.serial_arm(n)
    q, v, tau = batch(n)
    peer_time = call_time = expected = None
    if pin:
        peer = pinocchio_model(model)
        run, out = pinocchio_batch(peer, q, v, tau)
        peer_time = best_time(run) / STATES
        expected = out.T.copy()
        data = peer.createData()
        calls = lambda: [pin.aba(peer, data, q[k], v[k], tau[k]) for k in range(CALLS)]  # noqa: E731
        call_time = best_time(calls) / CALLS
        report("Pinocchio, C++ loop (abaInParallel)", peer_time)
        report("Pinocchio, one call from Python (pin.aba)", call_time)

    ours = best_time(lambda: [FD(model, q[k], v[k], tau[k]) for k in range(CALLS)]) / CALLS
    report("FD(model, …), one call from Python", ours, call_time)

    found = np.empty_like(v)
    generic = compiled(generic_loop)
    w = model.tree.workspace
    ours = best_time(lambda: generic(w, q, v, tau, found)) / STATES
    if pin:
        check("generic", found, expected)
    report("generic kernel", ours, peer_time)

    f = traced_fd(model)
    x = np.hstack([q, v])
    scalar_time, scalar = seconds(f.machine_code)
    out = np.empty((STATES, 2 * n))
    loop = compiled(traced_loop)
    ours = best_time(lambda: loop(scalar.address, x, tau, out)) / STATES
    check("traced", out[:, n:], found)
    report("traced", ours, peer_time)

    width = native_lanes()
    lanes_time, vector = seconds(lambda: f.machine_code(lanes=width))
    groups = [a.reshape(STATES // width, width, -1).transpose(0, 2, 1) for a in (x, tau)]
    packed = [np.ascontiguousarray(group) for group in groups]
    result = np.empty((STATES // width, 2 * n, width))
    loop = compiled(lanes_loop)
    t = np.zeros(width)
    ours = best_time(lambda: loop(vector.address, t, *packed, result)) / STATES
    check("lanes", result.transpose(0, 2, 1).reshape(STATES, -1)[:, n:], found)
    report(f"traced, {width} lanes", ours, peer_time)
    print(
        f"  (machine code made, or found in the cache, in {scalar_time:.2f} s, {lanes_time:.2f} s)"
    )


def whole_simulation():
    """Two arms: one built like common robots, one in which nothing can be simplified."""
    arms = {
        "Lightweight arm of 7 joints": mechanisms.lightweight_arm(damping=DAMPING),
        "Generic arm of 7 joints": mechanisms.serial_arm(7, damping=DAMPING),
    }
    for label, model in arms.items():
        simulate(label, model)


def simulate(label, model):
    print(f"\n{label}, with friction, falls for {DURATION:g} s, tolerance {TOLERANCE:g}")
    n = model.nv
    q0, v0 = np.full(n, 0.3), np.zeros(n)
    x0 = np.concatenate([q0, v0])
    options = dict(method="DOP853", rtol=TOLERANCE, atol=TOLERANCE)
    trace_time, problem = seconds(lambda: as_ivp(model, q0, v0, (0.0, DURATION), traced=True))
    first_time, solution = seconds(lambda: solve(problem, **options))
    ours = best_time(lambda: solve(problem, **options), repeats=50)
    report("DOP853, traced", ours, unit=1e3, name="ms")
    print(f"    {solution.nfev} evaluations, {ours / solution.nfev * 1e6:.2f} µs each")
    print(f"    {trace_time:.2f} s to trace; first run {first_time:.2f} s, with compilation")
    if not pin:
        return
    peer = pinocchio_model(model)
    data = peer.createData()

    def f(t, x):
        v = x[n:]
        return np.concatenate([v, pin.aba(peer, data, x[:n], v, -DAMPING * v)])

    theirs = best_time(lambda: solve_ivp(f, (0.0, DURATION), x0, **options))
    found = solve_ivp(f, (0.0, DURATION), x0, **options)
    report("SciPy's DOP853 over pin.aba", theirs, unit=1e3, name="ms")
    print(f"    {found.nfev} evaluations, {theirs / found.nfev * 1e6:.2f} µs each")
    ends = [
        solve(problem, t_span=(0.0, EARLY), **options).y[:, -1],
        solve_ivp(f, (0.0, EARLY), x0, **options).y[:, -1],
    ]
    gap = np.abs(ends[0] - ends[1]).max()
    assert gap < SAME, f"after {EARLY} s the runs are {gap} apart"
    print(f"    after {EARLY:g} s the runs are {gap:.0e} apart")
    print(f"  SciPy over Pinocchio takes {theirs / ours:.1f} times as long")


def growth():
    print("\nCost of the generic kernel for each body, chains of revolute joints")
    generic = compiled(generic_loop)
    first = None
    for n in (10, 30, 100, 300, 1000):
        build_time, model = seconds(lambda: mechanisms.serial_arm(n))
        states = max(4, 4000 // n)
        q, v, tau = batch(n, states)
        found = np.empty_like(v)
        w = model.tree.workspace
        each = best_time(lambda: generic(w, q, v, tau, found)) / states / n
        first = first or each
        peer_each = None
        if pin and n <= 300:  # its workspace grows with n³: ten gigabytes for 1000 joints
            run, _ = pinocchio_batch(pinocchio_model(model), q, v, tau)
            peer_each = best_time(run) / states / n
        report(f"{n:5} bodies ({each / first:.2f} of the shortest)", each, peer_each, 1e9, "ns")
        if build_time > 1.0:
            print(f"    (model built in {build_time:.1f} s)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("dynamics", "simulation", "growth"))
    only = parser.parse_args().only
    if pin is None:
        print("Pinocchio is not installed; pip install pin")
    if only in (None, "dynamics"):
        for joints in (7, 36):
            forward_dynamics_of(joints)
    if only in (None, "simulation"):
        whole_simulation()
    if only in (None, "growth"):
        growth()
