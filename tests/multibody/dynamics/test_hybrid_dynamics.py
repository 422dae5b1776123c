"""Hybrid dynamics against forward and inverse dynamics, and against the dense system.

Mechanisms drawn at random (``random_mechanisms``) with floating bases, joints of several freedoms,
reversed joints, drives, springs, dampers, stops, armature and loops; forward freedoms drawn one
by one, so that those of a joint are mixed.
"""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import traced
from integrators.kernels import compiled_first
from integrators.kernels.tiers.tiers import interpret
from multibody import hybrid_dynamics
from multibody.dynamics.functions import SingularModelError
from multibody.dynamics.hybrid.articulated import hybrid_articulated
from multibody.dynamics.hybrid.closed import hybrid_closed
from multibody.dynamics.hybrid.composite import hybrid_composite
from multibody.dynamics.hybrid.selection import hybrid_tree
from multibody.dynamics.loops.closed_loop import REGULARISATION
from multibody.dynamics.loops.multipliers import EPSILON
from multibody.dynamics.storage.workspace import HAVE_FORCES
from multibody.mechanisms.random import random_tree
from tests.multibody.random_mechanisms import draw

KERNELS = {"aba": hybrid_articulated, "crba": hybrid_composite, "loops": hybrid_closed}

#: Two algorithms, relative to the largest number. 1e-15 to 1e-14 is what trees of this size show;
#: condition numbers of H₁₁ of up to some hundred come on top.
ROUNDING = 1e-12
#: With loops; regularised multipliers are refined to (1e-9/σ²)³ only, σ down to 0.01 here.
CLOSED = 1e-8


def close(found, expected, tolerance=ROUNDING):
    scale = 1.0 + np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * scale)


def drawn(seed, chance=0.5, **options):
    """A mechanism, accelerations for all freedoms, and which of them are forward."""
    c = draw(seed, **options)
    rng = np.random.default_rng(1000 + seed)
    return c, rng.uniform(-2.0, 2.0, c.model.nv), rng.random(c.model.nv) < chance


def ranks(model, q, t, forward):
    """Rank of all columns of K, and of those of forward freedoms."""
    K = mb.constraints(model, q, t=t).K
    return tuple(np.linalg.matrix_rank(part, tol=1e-7) for part in (K, K[:, forward]))


# ---------------------------------------------------------------------- trees


@pytest.mark.parametrize("method", ["aba", "crba"])
@pytest.mark.parametrize("seed", range(16))
def test_inverse_dynamics_gives_back_all_forces(seed, method):
    c, a, forward = drawn(seed, loops=0)
    args = c.model, c.q, c.v
    places = np.flatnonzero(forward)
    found = hybrid_dynamics(*args, c.tau, a, places, c.f_ext, t=c.t, method=method)
    assert np.array_equal(found.a[~forward], a[~forward])  # what was given, to the last bit
    assert np.array_equal(found.tau[forward], c.tau[forward])
    close(mb.ID(*args, found.a, c.f_ext, t=c.t), found.tau)
    everything = hybrid_dynamics(*args, c.tau, a, range(c.model.nv), c.f_ext, t=c.t, method=method)
    close(everything.a, mb.FD(*args, c.tau, c.f_ext, t=c.t))
    nothing = hybrid_dynamics(*args, c.tau, a, [], c.f_ext, t=c.t, method=method)
    close(nothing.tau, mb.ID(*args, a, c.f_ext, t=c.t))


@pytest.mark.parametrize("method", ["aba", "crba"])
def test_every_joint_of_the_registry_in_every_place(method):
    """Trees of all registered joints: zero freedoms, quaternions, rolling, angle sequences."""
    rng = np.random.default_rng(3)
    for seed in range(12):
        model = random_tree(7, seed=seed)
        q, v = model.random(rng), rng.normal(size=model.nv)
        tau, a = rng.normal(size=model.nv), rng.normal(size=model.nv)
        forward = rng.random(model.nv) < 0.6
        found = hybrid_dynamics(model, q, v, tau, a, np.flatnonzero(forward), method=method)
        sub = mb.crba(model, q)[np.ix_(forward, forward)]
        condition = np.linalg.cond(sub) if forward.any() else 1.0
        close(mb.ID(model, q, v, found.a), found.tau, 1e-14 * max(condition, 100.0))


@pytest.mark.parametrize("method", ["aba", "crba"])
def test_all_sets_of_a_tree_of_seven_joints(method):
    """The book's tree of Figure 9.1 and all its 128 sets, with a closed formula from H and C."""
    b = mb.ModelBuilder()
    rng = np.random.default_rng(8)
    for i, parent in enumerate([0, 1, 1, 2, 2, 3, 3]):
        axis, place = rng.normal(size=(2, 3))
        b.add_body(
            f"b{i + 1}",
            parent,
            mb.Revolute(axis),
            placement=place,
            inertia=mb.sphere(radius=0.5, mass=1.0),
        )
    model = b.build()
    q, v, tau, a = rng.normal(size=(4, 7))
    H, C = mb.crba(model, q), mb.bias_forces(model, q, v)
    for chosen in range(128):
        forward = np.array([chosen >> k & 1 for k in range(7)], dtype=bool)
        found = hybrid_dynamics(model, q, v, tau, a, np.flatnonzero(forward), method=method)
        expected = a.copy()
        rest = (tau - C - H[:, ~forward] @ a[~forward])[forward]
        expected[forward] = np.linalg.solve(H[np.ix_(forward, forward)], rest)
        close(found.a, expected)
        close(found.tau[~forward], (H @ expected + C)[~forward])


def test_a_prescribed_freedom_needs_no_inertia():
    b = mb.ModelBuilder(gravity=(0, 0, -9.81))
    b.add_body("cart", 0, mb.Prismatic("x"))  # no mass, and nothing on it moves with x alone
    b.add_body("bob", "cart", mb.Revolute("y"), inertia=mb.point_mass(2.0, (0, 0, -1.0)))
    model = b.build()
    for method in ("aba", "crba"):
        found = hybrid_dynamics(model, [0, 0.4], [0, 0], a={"cart": 3.0}, method=method)
        # ẍ cos q + q̈ + g sin q = 0 in the cart's frame
        angle = found.a[1]
        close(angle, (3.0 * np.cos(0.4) - 9.81 * np.sin(0.4)), 1e-13)


def test_a_forward_freedom_without_inertia_is_named():
    """Gimbal lock: two of three angles turn about one axis; with one prescribed all is well."""
    b = mb.ModelBuilder()
    b.add_body("top", 0, mb.AngleSequence("zyx"), inertia=mb.box((0.1, 0.2, 0.3), mass=2.0))
    model = b.build()
    q, v = np.array([0.3, np.pi / 2, 0.1]), np.zeros(3)
    for method in ("aba", "crba"):
        with pytest.raises(SingularModelError, match=r"forward freedom .*top.* moves no inertia"):
            hybrid_dynamics(model, q, v, [0.1, 0.2, 0.3], a={1: 1.0}, method=method)
        found = hybrid_dynamics(model, q, v, [0.1, 0.2, np.nan], {2: 1.0}, method=method)
        close(mb.ID(model, q, v, found.a), found.tau)


# ---------------------------------------------------------------------- loops


@pytest.mark.parametrize("seed", range(24))
def test_loops_against_the_dense_system_or_refused_where_it_has_no_answer(seed):
    c, a, forward = drawn(seed, 0.75, loops=1 + seed % 2)
    if not forward.any():
        forward[0] = True
    places = np.flatnonzero(forward)
    whole, part = ranks(c.model, c.q, c.t, forward)
    args = (c.model, c.q, c.v, c.tau, a, places, c.f_ext)
    if part < whole:
        with pytest.raises(ValueError, match=r"loops .* determine what"):
            hybrid_dynamics(*args, t=c.t)
        return
    found = hybrid_dynamics(*args, t=c.t)
    # Unknowns v̇₁, τ₂, λ at once, by least squares because of redundant constraints.
    H, C = mb.crba(c.model, c.q, t=c.t), mb.bias_forces(c.model, c.q, c.v, c.f_ext, t=c.t)
    k = mb.constraints(c.model, c.q, c.v, t=c.t)
    n, m = c.model.nv, len(k.gamma)
    system = np.zeros((n + m, n + m))
    system[:n, :n][:, forward] = H[:, forward]
    system[:n, :n][:, ~forward] = -np.eye(n)[:, ~forward]
    system[:n, n:] = -k.K.T
    system[n:, :n][:, forward] = k.K[:, forward]
    known = H[:, ~forward] @ a[~forward]
    target = k.gamma - k.K[:, ~forward] @ a[~forward]
    right = np.concatenate([np.where(forward, c.tau, 0.0) - C - known, target])
    x = np.linalg.lstsq(system, right, rcond=1e-10)[0]
    assert np.abs(system @ x - right).max() < 1e-8 * (1 + np.abs(right).max())
    close(found.a, np.where(forward, x[:n], a), CLOSED)
    close(found.tau, np.where(forward, c.tau, x[:n]), CLOSED)
    # Under these forces the mechanism accelerates as prescribed.
    close(mb.FD(c.model, c.q, c.v, found.tau, c.f_ext, t=c.t), found.a, CLOSED)


def test_a_driven_crank_and_its_torque():
    entry = mb.mechanisms.entry("four_bar")
    model = entry.model()
    q, v = entry.start(model)
    found = hybrid_dynamics(model, q, v, a={"crank": 2.0})
    assert found.a[0] == 2.0
    assert found.tau[1] == found.tau[2] == 0.0
    crank = mb.closed_loop_inverse_dynamics(model, q, v, found.a, ["crank"])
    close(found.tau[0], crank.forces[0], 1e-10)
    with pytest.raises(ValueError, match="closed_loop_inverse_dynamics"):
        hybrid_dynamics(model, q, v, a=found.a, forward=[])
    with pytest.raises(ValueError, match="leave some of them forward"):
        hybrid_dynamics(model, q, v, a=dict.fromkeys([0, 2], 1.0))
    with pytest.raises(ValueError, match="method"):
        hybrid_dynamics(model, q, v, a={"crank": 2.0}, method="aba")


# ---------------------------------------------------------------------- tiers


@pytest.mark.parametrize("method", KERNELS)
def test_interpreted_is_compiled_is_traced(method):
    c, a, _ = drawn(5, loops=int(method == "loops"), floating=True, elements=True, driven=False)
    model = c.model
    forward = np.ones(model.nv, dtype=bool)
    forward[[1, 4, model.nv - 1]] = False
    if method == "loops":
        whole, part = ranks(model, c.q, c.t, forward)
        assert whole == part
    places = np.flatnonzero(forward)
    with compiled_first():
        found = hybrid_dynamics(model, c.q, c.v, c.tau, a, places, c.f_ext, t=c.t, method=method)

    w = hybrid_tree(model).workspace(forward)
    w.f_ext[:] = c.f_ext  # springs have added theirs
    interpret(KERNELS[method], w)
    assert np.array_equal([w.a_q, w.tau], found)  # to the last bit

    def run(t, x, p=()):
        w = hybrid_tree(model).symbolic(forward)
        w.t[0], w.q[:], w.v[:] = t, x[: model.nq], x[model.nq :]
        w.tau_known[:] = np.where(forward, c.tau, 0.0)
        w.a_known[:] = np.where(forward, 0.0, a)
        w.f_ext[:], w.switches[HAVE_FORCES] = c.f_ext, 1
        w.stabilise[EPSILON] = REGULARISATION
        KERNELS[method](w)
        return np.concatenate([w.a_q, w.tau])

    x = np.concatenate([c.q, c.v])
    expected = np.concatenate([found.a, found.tau])
    tolerance = CLOSED if method == "loops" else ROUNDING
    close(np.array(run(c.t, x), dtype=float), expected, tolerance)
    code = traced(run, n=len(x), outputs=2 * model.nv)
    close(code(c.t, x), expected, tolerance)


# ---------------------------------------------------------------------- arguments


def test_freedoms_by_name_by_place_and_as_a_mixture():
    model = random_tree(4, 2, ["spherical", "revolute"], root="free")
    rng = np.random.default_rng(0)
    q, v = model.random(rng), rng.normal(size=model.nv)
    body = model.bodies[1].name
    place = model.v_index[1]
    rest = [k for k in range(model.nv) if not place.start <= k < place.stop]
    a = rng.normal(size=model.nv)
    tau = np.where(np.isin(np.arange(model.nv), rest), rng.normal(size=model.nv), np.nan)
    expected = hybrid_dynamics(model, q, v, tau, a, rest)
    names = [model.v_names[k] for k in rest]
    others = [b.name for b in model.bodies if b.name != body]
    by_body = {b.name: tau[i] for b, i in zip(model.bodies, model.v_index) if b.name != body}
    for found in (
        hybrid_dynamics(model, q, v, tau, a, names),
        hybrid_dynamics(model, q, v, tau, a, others),
        hybrid_dynamics(model, q, v, by_body, {body: a[place]}),
        hybrid_dynamics(model, q, v, tau, {k: a[k] for k in range(place.start, place.stop)}),
    ):
        assert np.array_equal(found, expected)
    last = hybrid_dynamics(model, q, v, forward=model.nv - 1)
    assert np.flatnonzero(last.a).tolist() == [model.nv - 1]  # all others keep their velocity
    by_name = {body: [0, 0, 0, 1, 2, 3]}
    rows = np.zeros((4, 6))
    rows[1, 3:] = 1, 2, 3
    for found in zip(
        hybrid_dynamics(model, q, v, a={0: 1.0}, f_ext=by_name),
        hybrid_dynamics(model, q, v, a={0: 1.0}, f_ext=rows),
    ):
        assert np.array_equal(*found)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"a": [1.0, 2.0]}, ValueError, "which freedoms does `a` prescribe"),
        ({"a": {"upper": 1.0}, "tau": {"upper": 1.0}}, ValueError, "upper.* is not forward"),
        ({"a": {"upper": 1.0}, "forward": ["upper"]}, ValueError, "is not prescribed"),
        ({"a": {"upper": 1.0, 0: 2.0}}, ValueError, "expected different"),
        ({"a": {"upper": [1.0, 2.0]}}, ValueError, "expected 1 numbers"),
        ({"a": {"upper": np.nan}}, ValueError, "finite numbers"),
        ({"tau": [0.0, np.inf], "forward": [1]}, ValueError, "finite numbers"),
        ({"tau": [0.0, 1.0, 2.0], "forward": [1]}, ValueError, "expected 2 numbers"),
        ({"forward": ["elbow"]}, ValueError, "elbow"),
        ({"forward": ["base"]}, ValueError, "is the base"),
        ({"forward": [2]}, ValueError, "no velocity variable has place 2"),
        ({"forward": [True]}, TypeError, "places in v or names"),
        ({"method": "loops"}, ValueError, "method"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        hybrid_dynamics(mb.mechanisms.double_pendulum(), [0.1, 0.2], [0.0, 0.0], **given)


def test_gears_are_refused_with_a_remedy():
    closure = mb.gears(mb.mechanisms.n_pendulum(3), {"link3": {"link1": -2.0}})
    with pytest.raises(TypeError, match=r"with_gears\(model, ratios\)"):
        hybrid_dynamics(closure, [0, 0], [0, 0])


def test_numbers_that_are_not_finite_are_named():
    model = mb.mechanisms.double_pendulum()
    with pytest.raises(ValueError, match="q: expected finite numbers, received nan for upper"):
        hybrid_dynamics(model, np.array([np.nan, 0.2]), [0.0, 0.0], a={"upper": 0.0})
    bars = mb.mechanisms.four_bar()
    with pytest.raises(ValueError, match="v: expected finite numbers, received inf for d"):
        hybrid_dynamics(bars, np.zeros(3), np.array([0.0, np.inf, 0.0]), a={"crank": 0.0})
