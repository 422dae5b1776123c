"""The reference problems are right: every one in the registry goes through the same checks.

A right-hand side is run on truncated polynomials in nilpotent variables. They have no truth value
and no conversion to float, so this shows that f can be traced, and it differentiates f exactly.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import solve_ivp

from integrators import problems
from integrators.problem import IVP
from integrators.problems.andrews import _force, constraint_jacobian, constraints, mass_matrix
from integrators.problems.constrained import _crank_state
from integrators.problems.oscillators import pendulum_angle
from integrators.problems.rigid import bounce_times
from integrators.tableau.trees import rooted_trees

EPS = np.finfo(float).eps
NAMES = problems.names()
with_exact = [n for n in NAMES if problems.get(n).exact is not None]
with_jacobian = [n for n in NAMES if problems.get(n).jac is not None]
daes = [n for n in NAMES if problems.get(n).mass is not None]


class Nilpotent:
    """Σ c_S ε_S over subsets S of k variables with εᵢ² = 0, the subset S being a bit mask."""

    def __init__(self, coefficients):
        self.c = np.asarray(coefficients, dtype=float)

    def _lift(self, other):
        if isinstance(other, Nilpotent):
            return other
        c = np.zeros_like(self.c)
        c[0] = float(other)
        return Nilpotent(c)

    def __add__(self, other):
        return Nilpotent(self.c + self._lift(other).c)

    __radd__ = __add__

    def __neg__(self):
        return Nilpotent(-self.c)

    def __sub__(self, other):
        return Nilpotent(self.c - self._lift(other).c)

    def __rsub__(self, other):
        return Nilpotent(self._lift(other).c - self.c)

    def __mul__(self, other):
        a, b = self.c, self._lift(other).c
        out = np.zeros_like(a)
        for i in np.flatnonzero(a):
            for j in np.flatnonzero(b):
                if i & j == 0:
                    out[i | j] += a[i] * b[j]
        return Nilpotent(out)

    __rmul__ = __mul__

    def compose(self, derivatives):
        """g(x₀ + r) = Σ g⁽ʲ⁾(x₀) rʲ/j!, finite as r is nilpotent."""
        r = Nilpotent(self.c.copy())
        r.c[0] = 0.0
        out, power = self._lift(derivatives[0]), self._lift(1.0)
        for j in range(1, self.c.size.bit_length()):
            power = power * r
            out = out + power * (derivatives[j] / math.factorial(j))
        return out

    def __pow__(self, a):
        if isinstance(a, int) and a >= 0:
            out = self._lift(1.0)
            for _ in range(a):
                out = out * self
            return out
        x = self.c[0]
        return self.compose([math.prod(a - i for i in range(j)) * x ** (a - j) for j in range(8)])

    def __truediv__(self, other):
        return self * self._lift(other) ** -1.0

    def __rtruediv__(self, other):
        return self._lift(other) * self**-1.0

    def __abs__(self):
        return self if self.c[0] >= 0 else -self

    def sqrt(self):
        return self**0.5

    def exp(self):
        return self.compose([math.exp(self.c[0])] * 8)

    def sin(self):
        return self.compose([math.sin(self.c[0] + j * math.pi / 2) for j in range(8)])

    def cos(self):
        return self.compose([math.cos(self.c[0] + j * math.pi / 2) for j in range(8)])

    def log(self):
        x = self.c[0]
        tail = [(-1) ** (j - 1) * math.factorial(j - 1) / x**j for j in range(1, 8)]
        return self.compose([math.log(x), *tail])

    def __bool__(self):
        raise TypeError("a branch on the state cannot be traced")

    __float__ = __lt__ = __gt__ = __le__ = __ge__ = __bool__


def nilpotents(y, directions):
    """The state y + Σ εᵢ vᵢ as an object array."""
    k = len(directions)
    out = np.empty(len(y), dtype=object)
    for i in range(len(y)):
        c = np.zeros(2**k)
        c[0] = y[i]
        for j, v in enumerate(directions):
            c[1 << j] = v[i]
        out[i] = Nilpotent(c)
    return out


def part(value, mask):
    return value.c[mask] if isinstance(value, Nilpotent) else (float(value) if mask == 0 else 0.0)


def derivative(f, y, directions):
    """The k-th derivative of f at y in k directions."""
    values = f(nilpotents(y, directions))
    mask = 2 ** len(directions) - 1
    return np.array([part(v, mask) for v in values])


def jacobian(problem, t, y):
    f = problem.bind(problem.f)
    return np.stack([derivative(lambda s: f(t, s), y, [e]) for e in np.eye(len(y))], axis=1)


def small(name):
    """The problem in a size for tests."""
    return problems.get(name, n=8) if name == "brusselator_1d" else problems.get(name)


def mass(problem):
    return np.eye(problem.n) if problem.mass is None else np.asarray(problem.mass)


def states(problem, name):
    """A few seeded states near the solution, where f is smooth."""
    rng = np.random.default_rng(17)
    scale = 0.05 * (np.abs(problem.y0) + 1.0)
    if name == "andrews":
        scale = 0.01 * np.where(np.arange(27) < 7, 1.0, 100.0)
    return [problem.y0 + scale * rng.uniform(0.1, 1.0, problem.n) for _ in range(3)]


# --- the registry ---------------------------------------------------------------------------------


def test_names_forgive_spelling():
    for name in ("van_der_pol", "VDP", "van der Pol", "Van-der-Pol"):
        assert problems.get(name).name == "van_der_pol"
    assert problems.get("vdp", mu=1000).t_span == (0.0, 2000.0)
    assert problems.get("vdp1000").params[0] == 1000.0


def test_unknown_names_and_parameters_are_explained():
    with pytest.raises(ValueError, match="did you mean robertson"):
        problems.get("robertsen")
    with pytest.raises(ValueError, match="choose one of"):
        problems.get("zzzzzz")
    with pytest.raises(TypeError, match=r"no parameter 'nu'; it takes mu, t_end"):
        problems.get("vdp", nu=3)


def test_one_function_makes_a_problem(monkeypatch):
    from integrators.problems import registry

    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    monkeypatch.setattr(registry, "_KEYS", dict(registry._KEYS))

    @problems.register("mine too", stiff=True)
    def my_own(rate: float = 2.0) -> IVP:
        """Decay of my own."""
        return IVP(lambda t, y: -rate * y, [1.0], (0.0, 1.0), source="me")

    assert problems.get("Mine-Too", rate=3.0).rhs(0.0, [1.0]) == -3.0
    assert problems.entry("my own").description == "Decay of my own"
    with pytest.raises(ValueError, match="'mine-too' is taken by 'my_own'"):
        problems.register("mine-too")(problems.lorenz)


@pytest.mark.parametrize("name", NAMES)
def test_table_line_is_complete(name):
    line = problems.entry(name)
    assert line.dimension == line.problem().n
    assert line.kind in ("ODE", "DAE index 1", "DAE index 2", "DAE index 3")
    assert line.reference in ("exact", "none") or line.reference.endswith("digits")
    assert 10 < len(line.description) < 110
    assert line.source
    assert line.problem().name in (name, line.build.__name__)
    assert line.problem(t_end=0.5).t_span[1] == 0.5


# --- right-hand sides -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_rhs_is_finite_and_of_the_right_shape(name):
    p = problems.get(name)
    value = p.rhs(p.t_span[0], p.y0)
    assert value.shape == (p.n,)
    assert value.dtype == p.y0.dtype
    assert np.all(np.isfinite(value))
    assert p.n == problems.entry(name).dimension


@pytest.mark.parametrize("name", NAMES)
def test_rhs_runs_on_symbols_and_depends_on_nothing_else(name):
    p = small(name)
    f = p.bind(p.f)
    if getattr(p.f, "is_piecewise", False):  # these numbers know no order; one of its sides does
        f = p.bind(p.f.field((1,)))
        p = p.with_(f=p.f.field((1,)))
    for y in states(p, name):
        before = y.copy()
        plain = p.rhs(0.3, y)
        symbolic = [part(v, 0) for v in f(Nilpotent([0.3, 1.0]), nilpotents(y, [0 * y]))]
        np.testing.assert_allclose(symbolic, plain, rtol=1e-11, atol=1e-11 * np.abs(plain).max())
        np.testing.assert_array_equal(y, before)
        np.testing.assert_array_equal(p.rhs(0.3, y), plain)


@pytest.mark.parametrize("name", with_jacobian)
def test_jacobian_is_the_derivative(name):
    p = small(name)
    for y in states(p, name):
        given = p.bind(p.jac)(0.3, y)
        given = given.toarray() if sparse.issparse(given) else np.asarray(given)
        expected = jacobian(p, 0.3, y)
        np.testing.assert_allclose(
            given, expected, rtol=1e-12, atol=1e-13 * max(1.0, np.abs(expected).max())
        )
        if p.jac_sparsity is not None:
            assert not np.any(expected[p.jac_sparsity.toarray() == 0])


@pytest.mark.parametrize("name", ["order_rational", "order_trigonometric", "order_exponential"])
def test_every_rooted_tree_matters(name):
    """Elementary differentials of the trees of each order up to 6 are independent.

    Then no error term of a method can hide by cancellation. Independent: the smallest singular
    value of the normalised vectors, sampled along the solution, is far above their rounding
    error of about 1e-13.
    """
    p = problems.get(name)
    orders = range(1, 7)
    samples: dict[int, list] = {n: [] for n in orders}

    def autonomous(s):
        return np.array([*p.f(s[-1], s[:-1]), 1.0], dtype=object)

    for t in np.linspace(0.05, 1.95, 30):
        s = np.array([*p.exact(t), t])
        known: dict = {}

        def differential(tree, s=s, known=known):
            if tree not in known:
                known[tree] = derivative(autonomous, s, [differential(c) for c in tree])
            return known[tree]

        for n in orders:
            samples[n].append(np.array([differential(tree)[:-1] for tree in rooted_trees(n)]))
    for n in orders:
        matrix = np.hstack(samples[n])
        sizes = np.linalg.norm(matrix, axis=1)
        assert sizes.min() > 1.0
        assert np.linalg.svd(matrix / sizes[:, None], compute_uv=False)[-1] > 1e-6


# --- solutions ------------------------------------------------------------------------------------

# Central differences of order 8: weights of y(t + jh) − y(t − jh).
CENTRAL = (4 / 5, -1 / 5, 4 / 105, -1 / 280)


@pytest.mark.parametrize("name", with_exact)
def test_exact_solution_satisfies_the_equation(name):
    """M y' = f at points inside the interval, y' by differences with the best of several h."""
    p = problems.get(name)
    t0, t1 = p.t_span
    M = mass(p)
    for t in t0 + (t1 - t0) * np.array([0.05, 0.137, 0.5, 0.71, 0.95]):
        y = np.asarray(p.exact(t))
        rhs = p.rhs(t, y)
        residuals = []
        for h in np.array([0.03, 0.01, 3e-3, 1e-3, 3e-4]) * min(1.0, t1 - t0):
            dy = sum(
                w * (np.asarray(p.exact(t + j * h)) - np.asarray(p.exact(t - j * h)))
                for j, w in enumerate(CENTRAL, 1)
            )
            residuals.append(np.abs(M @ dy / h - rhs).max())
        # A stiff f magnifies the rounding of y by the size of its Jacobian.
        stiffness = 1.0 if p.jac is None else np.abs(p.bind(p.jac)(t, y)).max()
        scale = 1.0 + np.abs(rhs).max() + 1e-6 * stiffness * np.abs(y).max()
        assert min(residuals) < 1e-9 * scale


@pytest.mark.parametrize("name", with_exact)
def test_exact_solution_starts_at_the_initial_value(name):
    p = problems.get(name)
    np.testing.assert_allclose(p.exact(p.t_span[0]), p.y0, rtol=4 * EPS, atol=2e-15)


def test_dahlquist_takes_complex_rates():
    p = problems.get("dahlquist", lam=-1 + 3j)
    assert p.y0.dtype == complex
    t, h = 0.7, 1e-5
    slope = (p.exact(t + h) - p.exact(t - h)) / (2 * h)
    np.testing.assert_allclose(slope, p.rhs(t, p.exact(t)), rtol=1e-8)


def test_order_problems_work_in_extended_precision():
    for name in ("order_rational", "order_trigonometric", "order_exponential"):
        p = problems.get(name)
        t = np.longdouble(1) / 3
        y = p.exact(t)
        assert y.dtype == np.longdouble
        assert p.f(t, y).dtype == np.longdouble


def test_nonunique_solutions():
    p = problems.get("square_root")
    for t in (0.5, 1.0, 2.0):
        assert p.rhs(t, [t * t / 4])[0] == t / 2  # the other solution has slope t/2
    assert p.rhs(0.0, p.y0)[0] == 0.0
    q = problems.get("square_root", y0=0.25)
    h = 1e-4
    slope = (q.exact(1 + h) - q.exact(1 - h)) / (2 * h)
    np.testing.assert_allclose(slope, q.rhs(1.0, q.exact(1.0)), rtol=1e-9)


# Closed form in multiple precision, 25 digits: (g, t): (x, y).
PENDULUM = {
    (9.81, 1.0): (-0.986291751131875319355639, -0.1650108531255411687524991),
    (9.81, 2.0): (0.7935661953433217469924858, -0.608483930443791514627198),
    (9.81, 5.0): (0.9423054350437573354968575, -0.3347543384140005807887011),
    (9.81, 10.0): (0.2750874625761168600543914, -0.9614192050991250642651351),
    (9.81, 30.0): (-0.7133859304651921364500736, -0.7007713708580795397413642),
    (1.0, 1.0): (0.879548132411889154622902, -0.4758099229427207970900191),
    (1.0, 10.0): (-0.8115864461913038342742343, -0.5842323513453957010628697),
    (1.0, 30.0): (0.9984300927552368948670788, -0.05601205121015521764761252),
    (13.750371636040745654980191559621114, 30.0): (1.0, 0.0),
}


@pytest.mark.parametrize(("g", "t"), PENDULUM)
def test_pendulum_matches_the_published_digits(g, t):
    theta, rate = pendulum_angle(t, np.pi / 2, g, 1.0)
    x, y = PENDULUM[g, t]
    # The argument √g t of the elliptic functions is rounded; the solution moves with speed rate.
    tolerance = 20 * EPS * (1 + np.sqrt(2 * g) * t)
    np.testing.assert_allclose([np.sin(theta), -np.cos(theta)], [x, y], atol=tolerance)
    lam = problems.get("pendulum_dae", g=g).exact(t)[4]
    np.testing.assert_allclose(lam, -3 * g * y, atol=10 * g * tolerance)
    assert problems.get("pendulum_ggl", g=g).exact(t)[5] == 0.0
    np.testing.assert_allclose(rate**2, -2 * g * y, atol=10 * g * tolerance)


@pytest.mark.parametrize("theta0", [-3.0, 0.1, 3.1])
def test_pendulum_from_other_angles(theta0):
    p = problems.get("pendulum", theta0=theta0, g=2.0, length=0.7)
    end = solve_ivp(p.bind(p.f), (0, 3), p.y0, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(p.exact(3.0), end, atol=1e-10)


def test_bounces_are_at_their_times():
    p = problems.get("bouncing_ball")
    times = bounce_times(8)
    for t in times:
        assert abs(p.exact(t)[0]) < 1e-14
    h = 1e-9
    before, after = p.exact(times[2] - h)[1], p.exact(times[2] + h)[1]
    assert after / before == pytest.approx(-0.9, rel=1e-7)
    assert np.all(p.exact(9.0) == 0.0)  # after the bounces have accumulated
    event = p.events[0]
    assert event.direction == -1
    np.testing.assert_allclose(event.reset(0.0, np.array([0.0, -2.0])), [0.0, 1.8])


# --- references: what SciPy finds, from the last reference before ---------------------------------

# Errors of SciPy at rtol 1e-11 and less are below 1e-8 where the problem does not magnify them;
# Arenstorf's orbits magnify by 1e3, the Lorenz equations by e^(0.9 t).
TOLERANCE = {"arenstorf": 1e-6, "arenstorf_3": 1e-6, "lorenz": 1e-5, "lorenz_111": 1e-5}
LONGEST = {"lorenz": 20.0, "lorenz_111": 20.0}
STIFF_RTOL = 1e-9  # of Radau; it is slow below
referenced = [n for n in NAMES if problems.get(n).references and n not in daes]


def scipy_end(p, t, y, t_end, stiff, atol=1e-12):
    options = {"method": "DOP853", "rtol": 1e-12, "atol": atol}
    if stiff:
        options = {"method": "Radau", "rtol": STIFF_RTOL, "atol": atol, "jac": p.bind(p.jac)}
    run = solve_ivp(p.bind(p.f), (t, t_end), y, **options)
    assert run.success
    return run.y[:, -1]


@pytest.mark.parametrize("name", referenced)
def test_references_are_reproduced(name):
    p = problems.get(name)
    stiff = problems.entry(name).stiff
    t, y = p.t_span[0], p.y0
    for t_end, reference in sorted(p.references.items()):
        if t_end > LONGEST.get(name, np.inf):
            break
        atol = 1e-20 if name == "robertson" else 1e-13
        end = scipy_end(p, t, y, t_end, stiff, atol)
        tolerance = 2e-6 if stiff else TOLERANCE.get(name, 1e-8)
        error = np.abs(end - reference)
        if name == "robertson":  # componentwise: y₂ is 1e-13
            assert np.all(error <= tolerance * np.abs(reference))
        else:
            assert error.max() <= tolerance * np.abs(reference).max()
        t, y = t_end, reference


@pytest.mark.parametrize("name", [n for n in NAMES if problems.get(n).references])
def test_invariants_agree_between_start_and_references(name):
    p = problems.get(name)
    # Rounding of a reference to doubles, magnified by the gradient of the invariant.
    for key, invariant in p.invariants.items():
        g0 = invariant(p.t_span[0], p.y0)
        for t, y in p.references.items():
            assert invariant(t, y) == pytest.approx(g0, rel=1e-11, abs=1e-12), (key, t)


@pytest.mark.parametrize("name", [n for n in NAMES if problems.get(n).invariants])
def test_invariants_have_zero_rate(name):
    """∇g·y' = 0 at the start and along the exact solution or at the references."""
    p = problems.get(name)
    points = list(p.references.items())
    if p.exact is not None:
        points = [(t, p.exact(t)) for t in np.linspace(*p.t_span, 7)]
    M = mass(p)
    for t, y in [(p.t_span[0], p.y0), *points]:
        dy = p.rhs(t, y) * np.diag(M)  # algebraic components do not enter invariants
        for key, g in p.invariants.items():
            size = np.abs(dy).max() + np.abs(g(t, y)) + 1e-3
            rate = part(g(t, nilpotents(y, [dy])), 1)
            assert abs(rate) < 1e-10 * size * (1 + np.abs(y).max()), key


# --- differential-algebraic problems --------------------------------------------------------------


@pytest.mark.parametrize("name", daes)
def test_dae_starts_consistently(name):
    """Rows of f without derivatives vanish at the start and at the references."""
    p = problems.get(name)
    algebraic = ~mass(p).any(axis=1)
    assert algebraic.any()
    for t, y in [(p.t_span[0], p.y0), *p.references.items()]:
        residual = np.abs(p.rhs(t, y)[algebraic])
        # The state is rounded to doubles: |δf| ≤ |J| |y| ε.
        allowed = 4 * EPS * (np.abs(jacobian(p, t, y)) @ (np.abs(y) + EPS))[algebraic]
        assert np.all(residual <= allowed + 4 * EPS)


@pytest.mark.parametrize("name", daes)
def test_dae_index_is_as_declared(name):
    """With D = diag of h^(1 − index), index-scaled, M − hJ is regular in the limit h → 0.

    Scaling columns by h^(1−index) and rows by as many powers as a Hessenberg form needs makes the
    iteration matrix of an implicit method regular exactly if the indices are right; it is enough
    to see that the determinant falls like h to the number of powers taken out.
    """
    p = problems.get(name)
    y = p.y0 if p.exact is None else p.exact(0.3)
    if name == "robertson_dae":
        y = p.references[40.0]
    J = jacobian(p, 0.3, y)
    M = mass(p)
    hs = 10.0 ** -np.arange(3.0, 5.0) if name != "andrews" else 10.0 ** -np.arange(5.0, 7.0)
    if name == "robertson_dae":
        hs = np.array([1e-7, 1e-8])  # smaller than the fastest rate 1e4
    logs = [np.linalg.slogdet(M - h * J)[1] for h in hs]
    slope = (logs[1] - logs[0]) / (np.log(hs[1]) - np.log(hs[0]))
    expected = {
        "robertson_dae": 1,  # h for the algebraic row
        "pendulum_index1": 1,
        "pendulum_index2": 2,
        "pendulum_dae": 3,
        "pendulum_ggl": 4,  # two constraints of index 2
        "jay": 3,
        "slider_crank": 8,  # four constraints of index 2
        "andrews": 6 * 3 + 7,  # six constraints of index 3; q'' is an index-1 unknown of its row
    }[name]
    assert slope == pytest.approx(expected, abs=0.05)


def test_andrews_hidden_constraints_hold_at_the_reference():
    p = problems.get("andrews")
    for y in (p.y0, p.references[0.03]):
        q, v, a, lam = y[:7], y[7:14], y[14:21], y[21:]
        G = constraint_jacobian(q)
        assert np.abs(constraints(q)).max() < 1e-16 + 4 * EPS
        assert np.abs(G @ v).max() < 1e-12 * max(1.0, np.abs(v).max())
        second = derivative(constraints, q, [v, v]) + G @ a
        assert np.abs(second).max() < 1e-11 * np.abs(a).max()
        balance = mass_matrix(q) @ a + G.T @ lam - _force(q, v)
        assert np.abs(balance).max() < 1e-12 * np.abs(lam).max()
        numeric = np.stack([derivative(constraints, q, [e]) for e in np.eye(7)], axis=1)
        np.testing.assert_allclose(G, numeric, atol=1e-15)
    assert p.invariants["energy"](0.0, p.y0) == pytest.approx(1.4378329575321398719, rel=1e-14)


def test_andrews_reference_is_reproduced():
    """Index-1 form: accelerations from the linear system, as an ordinary equation."""
    p = problems.get("andrews")

    def f(t, y):
        q, v = y[:7], y[7:]
        G = constraint_jacobian(q)
        K = np.block([[mass_matrix(q), G.T], [G, np.zeros((6, 6))]])
        h = 1e-20
        curve = (constraint_jacobian(q + 1j * h * v) @ v).imag / h
        return np.concatenate([v, np.linalg.solve(K, np.concatenate([_force(q, v), -curve]))[:7]])

    run = solve_ivp(f, (0, 0.03), p.y0[:14], method="DOP853", rtol=1e-10, atol=1e-9)
    reference = p.references[0.03]
    np.testing.assert_allclose(run.y[:7, -1], reference[:7], atol=1e-6)
    np.testing.assert_allclose(run.y[7:, -1], reference[7:14], rtol=1e-5)


def test_slider_crank_reference_is_reproduced():
    p = problems.get("slider_crank")

    def f(t, y):  # crank angle alone: λ from the index-1 system gives q''
        q, qd = y
        angle = np.arcsin(-0.5 * np.sin(q))
        state = np.array(_crank_state(q, np.cos(angle) + 0.5 * np.cos(q), angle, qd))
        return [qd, p.f(t, state)[3]]

    times = sorted(p.references)
    options = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}
    run = solve_ivp(f, (0, 10), [np.pi / 2, 0], t_eval=times, **options)
    for t, (q, qd) in zip(times, run.y.T):
        np.testing.assert_allclose([q, qd], p.references[t][[0, 3]], atol=1e-8)
    published = [1.11375615826305, -0.76250727510645]
    np.testing.assert_allclose(p.references[10.0][6:8], published, rtol=1e-12)


def test_scaled_van_der_pol_is_the_same_oscillator():
    scaled, plain = problems.get("vdp_scaled"), problems.get("vdp", mu=1000)
    np.testing.assert_allclose(scaled.references[2.0][0], plain.references[2000.0][0])
    published = [0.1706167732170483e1, -0.8928097010247975e0]
    np.testing.assert_allclose(scaled.references[2.0], published, rtol=1e-13)


def test_brusselator_lines_approach_each_other():
    """Second order in space: three grids that share the point x = 1/2.

    Radau, not BDF: SciPy's BDF reads a row of its difference table before writing it, and where
    that memory happens to hold a signalling NaN, NumPy warns of an invalid operation.
    """
    middle = []
    for n in (19, 39, 79):
        p = problems.get("brusselator_1d", n=n, t_end=1.0)
        run = solve_ivp(p.f, p.t_span, p.y0, method="Radau", jac=p.jac, rtol=1e-8, atol=1e-10)
        middle.append(run.y[n - 1, -1])  # u at x = 1/2
    assert (middle[0] - middle[1]) / (middle[1] - middle[2]) == pytest.approx(4.0, rel=0.15)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("blow_up", {"t_end": 1.0}),
        ("square_root", {"y0": -1.0}),
        ("kepler", {"e": 1.0}),
        ("arenstorf", {"loops": 5}),
        ("pendulum_dae", {"formulation": "index4"}),
        ("rigid_body", {"inertia": (3.0, 2.0, 1.0)}),
        ("rigid_body", {"omega1": 9.0}),
        ("bouncing_ball", {"restitution": 1.5}),
        ("brusselator_1d", {"n": 1}),
    ],
)
def test_bad_parameters_are_refused(name, wrong):
    with pytest.raises(ValueError, match=r"got|beyond|expected"):
        problems.get(name, **wrong)


def test_pairs_of_stars_attract_each_other():
    """The matrix form of the Pleiades is the double sum of the definition."""
    p = problems.get("pleiades")
    x, y = p.y0[:7], p.y0[7:14]
    force = p.rhs(0.0, p.y0)[14:]
    expected = np.zeros(14)
    for i, j in combinations(range(7), 2):
        r = np.hypot(x[i] - x[j], y[i] - y[j])
        for a, b in ((i, j), (j, i)):
            expected[a] += (b + 1) * (x[b] - x[a]) / r**3
            expected[7 + a] += (b + 1) * (y[b] - y[a]) / r**3
    np.testing.assert_allclose(force, expected, rtol=1e-14)
