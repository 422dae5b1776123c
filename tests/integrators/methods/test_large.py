"""Large systems: patterns, banded, sparse and Krylov solvers, and what is chosen unasked."""

import numpy as np
import pytest
from scipy import sparse

from integrators import (
    BandedPart,
    BlockJacobi,
    IntegrationError,
    Solution,
    problems,
    solve,
    stepper,
    traced,
)
from integrators.methods.linear.choice import IncompleteLU, linear_choice
from integrators.methods.linear.direct import BandLU, SparseLU, Summed
from integrators.methods.linear.krylov import gmres
from integrators.methods.linear.preconditioners import built_preconditioner
from integrators.methods.linear.probing import found_pattern
from integrators.methods.linear.projected import KrylovSolver

RNG = np.random.default_rng(21)


def random_band(n, lower, upper, rng):
    """A banded matrix that needs row exchanges, sparse."""
    offsets = list(range(-lower, upper + 1))
    return sparse.diags_array(
        [rng.normal(size=n - abs(k)) for k in offsets], offsets=offsets, format="csc"
    )


def random_network(n, rng, per_row=3):
    matrix = sparse.random_array((n, n), density=per_row / n, rng=rng, format="csr")
    matrix.data = rng.normal(size=matrix.nnz)
    return matrix


# ---------------------------------------------------------------- factorisations


@pytest.mark.parametrize("widths", [(1, 1), (2, 3), (0, 2), (3, 0), (20, 15)])
@pytest.mark.parametrize("shift", [0.7, 0.7 - 0.4j])
def test_band_and_sparse_lu_solve(widths, shift):
    n = 60
    J = random_band(n, *widths, RNG)
    mass = random_band(n, 1, 0, RNG)
    dense = mass.toarray() - shift * J.toarray()
    rhs = RNG.normal(size=n).astype(np.result_type(shift))
    truth = np.linalg.solve(dense, rhs)
    scale = np.linalg.cond(dense) * np.abs(truth).max()
    shuffle = RNG.permutation(n)
    for kind in (BandLU, SparseLU):
        system = kind(mass, n)
        system.use(J)
        assert np.abs(system.solver(shift)(rhs) - truth).max() < 1e-14 * scale
        mixed = kind(mass[shuffle][:, shuffle], n)  # Cuthill–McKee finds the band again
        mixed.use(J[shuffle][:, shuffle])
        assert np.abs(mixed.solver(shift)(rhs[shuffle]) - truth[shuffle]).max() < 1e-14 * scale
        again = J.copy()
        again.data = 2 * again.data  # the same pattern: nothing is learnt anew
        known = system.summed
        system.use(again)
        assert system.summed is known
        truth_2 = np.linalg.solve(mass.toarray() - 2 * shift * J.toarray(), rhs)
        found = system.solver(shift)(rhs)
        np.testing.assert_allclose(found, truth_2, atol=1e-10 * np.abs(truth_2).max())


def test_preconditioners_are_exact_where_nothing_is_left_out():
    n, shift = 40, 0.3
    tridiagonal = random_band(n, 1, 1, RNG) + 8 * sparse.eye_array(n)
    blocks = sparse.block_diag([RNG.normal(size=(4, 4)) for _ in range(10)], format="csc")
    cases = (
        (IncompleteLU(), tridiagonal),
        (BandedPart(1, 1), tridiagonal),
        (BlockJacobi(4), blocks),
    )
    r = RNG.normal(size=n)
    for wanted, J in cases:
        J = sparse.csc_matrix(J)
        J.sort_indices()
        made = built_preconditioner(wanted, Summed(None, J)).made(J.data, shift)
        truth = np.linalg.solve(np.eye(n) - shift * J.toarray(), r)
        np.testing.assert_allclose(made(r), truth, atol=1e-11 * np.abs(truth).max())


@pytest.mark.parametrize("kind", [float, complex])
def test_gmres_restarts_until_it_is_done(kind):
    n = 90
    spectrum = np.linspace(1.0, 40.0, n)
    A = np.diag(spectrum).astype(kind) + 0.02 * RNG.normal(size=(n, n))
    rhs = RNG.normal(size=n).astype(kind)
    weights = np.exp(RNG.normal(size=n))
    x, done = gmres(lambda v: A @ v, lambda r: r / spectrum, rhs, weights, 1e-10)
    assert done
    assert np.abs((A @ x - rhs) / weights).max() < 1e-7


class AtOne:
    """A run whose tolerances are 1e-8."""

    def weights(self):
        return 1e-8

    def limit(self):
        return 1.0

    def where(self):
        return 0.0, None


def test_an_lu_takes_the_place_of_an_incomplete_one_that_fails():
    n = 200
    rotation = np.arange(n) ^ 1  # pairs that exchange: no diagonal, so ILU(0) has no pivot
    J = sparse.csc_matrix((np.full(n, -1.0), (rotation, np.arange(n))), shape=(n, n))
    mass = sparse.csc_matrix((n, n))
    system = KrylovSolver(mass, n, AtOne(), "auto")
    system.use(J)
    rhs = RNG.normal(size=n)
    np.testing.assert_allclose(system.solver(1.0)(rhs), rhs[rotation], atol=1e-12)
    assert system.name == "GMRES preconditioned by LU"


# ---------------------------------------------------------------- patterns


def test_patterns_are_found():
    for n in (65, 200, 700):
        A = random_network(n, RNG)
        found = found_pattern(lambda y, A=A: np.sin(A @ y), np.zeros(n))
        np.testing.assert_array_equal(found.matrix(np.ones(found.nnz)).toarray(), A.toarray() != 0)
    for name in ("heat_1d", "heat_2d", "bruss_2d", "bruss"):
        problem = problems.get(name)
        calls = []

        def f(y, problem=problem, calls=calls):
            calls.append(1)
            return problem.f(0.0, y)

        found = found_pattern(f, problem.y0)
        J = np.array([problem.f(0.0, problem.y0 + 1e-3 * e) for e in np.eye(problem.n)]).T
        seen = J - problem.f(0.0, problem.y0)[:, None] != 0.0
        assert not np.any(seen & (found.matrix(np.ones(found.nnz)).toarray() == 0))
        assert found.nnz < 7 * problem.n
        assert len(calls) < 60
    assert found_pattern(lambda y: np.full(100, y.sum()), np.ones(100)) is None

    def refuses(y):
        if not np.all(np.isfinite(y)):
            raise ValueError("NaN")
        return -y

    assert found_pattern(refuses, np.ones(100)) is None


def test_a_pattern_that_no_longer_holds_is_noticed():
    n = 80

    def f(t, y):
        far = y if t < 1e-3 else np.roll(y, 17)  # at first nobody sees anybody else
        return -1000.0 * (y - 0.9 * far - np.cos(t))

    truth = solve(f, (0, 2), np.linspace(0, 1, n), method="BDF", linear_solver="dense", rtol=1e-8)
    found = solve(f, (0, 2), np.linspace(0, 1, n), method="BDF", rtol=1e-6)
    assert found.success
    assert np.abs(found.y[:, -1] - truth.y[:, -1]).max() < 1e-4


# ---------------------------------------------------------------- choices and refusals


def test_the_choice_is_told_and_kept():
    line, square = problems.get("heat_1d", n=100), problems.get("heat_2d", n=20)
    wide = random_network(80, RNG, per_row=40)
    told = {
        "band LU with 1 + 1": solve(line, method="BDF"),
        "band LU with 20 + 20": solve(square, method="BDF"),
        "dense LU": solve(lambda t, y: 0.01 * (wide @ y), (0, 1), np.ones(80), method="RADAU5"),
        "sparse LU": solve(line, method="RADAU5", linear_solver="sparse"),
        "GMRES preconditioned by ILU(0)": solve(square, method="BDF", linear_solver="gmres"),
        "GMRES without": solve(line, method="BDF", preconditioner=None),
    }
    for words, solution in told.items():
        assert solution.success
        assert solution.linear_solver.startswith(words)
    assert "3 differences of f, pattern found" in told["band LU with 1 + 1"].linear_solver
    assert solve(line, method="DOP853").linear_solver == ""
    exact = solve(line.with_(f=traced(line.f)), method="BDF")
    assert exact.linear_solver == "band LU with 1 + 1 diagonals; Jacobian by 3 exact products, " \
        "pattern traced"  # fmt: skip


def test_the_choice_is_kept_in_files(tmp_path):
    solution = solve(problems.get("heat_1d"), method="BDF", bandwidth=1)
    assert Solution.load(solution.save(tmp_path / "a")).linear_solver == solution.linear_solver


def test_automatic_runs_of_grids_begin_stiff():
    for name, n in (("heat_1d", 200), ("heat_2d", 40), ("bruss", 200)):
        solution = solve(problems.get(name, n=n).with_(jac=None, jac_sparsity=None))
        assert [phase.method for phase in solution.phases] == ["BDF"], name
    n = 100  # a wave swings; that is not stiff

    def wave(t, y):
        u = np.concatenate([[0.0], y[:n], [0.0]])
        return np.concatenate([y[n:], 1e4 * (u[:-2] - 2 * u[1:-1] + u[2:])])

    solution = solve(wave, (0, 1), np.sin(np.pi * np.arange(2 * n) / n))
    assert solution.phases[0].method == "DOP853"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"linear_solver": "lu"}, "must be one of auto, dense, band, sparse, gmres"),
        ({"bandwidth": (1, -1)}, "numbers of diagonals ≥ 0"),
        ({"bandwidth": (1, 2, 3)}, "a number or"),
        ({"preconditioner": "amg"}, "must be 'ilu', 'band', None"),
        ({"preconditioner": "ilu", "linear_solver": "band"}, "factorises the whole matrix"),
    ],
)
def test_options_are_checked(options, words):
    with pytest.raises(ValueError, match=words):
        linear_choice(**options)


def test_what_does_not_fit_is_refused():
    def dense(t, y):
        return np.full_like(y, -y.sum())

    with pytest.raises(ValueError, match="DOPRI5 solves no linear systems"):
        solve(dense, (0, 1), np.ones(50), method="DOPRI5", linear_solver="band")
    with pytest.raises(ValueError, match="looking at f did not show it"):
        solve(dense, (0, 1), np.ones(50), method="BDF", linear_solver="band")
    with pytest.raises(ValueError, match="does not serve complex states"):
        solve(lambda t, y: 1j * y, (0, 1), [1j], method="RADAU5", linear_solver="sparse")
    with pytest.raises(ValueError, match="give jac_sparsity or a sparse jac"):
        solve(dense, (0, 1), np.ones(50), method="BDF", preconditioner=BlockJacobi(2))
    with pytest.raises(ValueError, match="50 unknowns do not make up blocks of 7"):
        solve(dense, (0, 1), np.ones(50), method="BDF", preconditioner=BlockJacobi(7))
    with pytest.raises(IntegrationError, match="must return a function"):
        solve(
            dense, (0, 1), np.ones(50), method="BDF", preconditioner=lambda t, y, g: 3, throw=True
        )
    with pytest.raises(ValueError, match="size of blocks"):
        BlockJacobi(0)


# ---------------------------------------------------------------- everything with everything

METHODS = ["BDF", "NDF", "RADAU5", "SDIRK4", "Rodas4P", "RadauVariable", "auto"]
SOLVERS = [
    {},
    {"linear_solver": "band"},
    {"linear_solver": "sparse"},
    {"linear_solver": "gmres"},
    {"preconditioner": None},
    {"preconditioner": "band"},
    {"preconditioner": BlockJacobi(2)},
    {"linear_solver": "dense"},
]
SOURCES = ["found", "given", "jac", "constant pattern", "traced"]


def reaction(n):
    """Two species on a line, diffusing and reacting; interleaved."""
    k = 0.05 * (n // 2) ** 2

    def f(t, y):
        u, v = y[0::2], y[1::2]
        ends = np.zeros(1)
        near_u, near_v = (np.concatenate([ends, x, ends]) for x in (u, v))
        du = k * (near_u[:-2] - 2 * u + near_u[2:]) - u * v + np.cos(3 * t)
        dv = k * (near_v[:-2] - 2 * v + near_v[2:]) + u * v - v
        return np.stack([du, dv], axis=1).ravel()

    return f


@pytest.mark.parametrize("seed", range(16))
def test_random_combinations(seed):
    """Methods, solvers, sources of J, mass matrices, events, output and direction, at random."""
    rng = np.random.default_rng([21, seed])
    n = int(rng.choice([24, 60]))
    f, pattern = reaction(n), sparse.diags_array([np.ones(n - abs(k)) for k in range(-2, 3)],
                                                 offsets=list(range(-2, 3)))  # fmt: skip
    source = str(rng.choice(SOURCES))
    method = METHODS[seed % len(METHODS)]
    options = dict(SOLVERS[seed % len(SOLVERS)])
    mass = None
    if rng.random() < 0.5 and method != "auto":
        mass = sparse.diags_array([np.full(n, 2.0), np.full(n - 1, 0.5)], offsets=[0, -1]).tocsc()
    y0 = np.abs(np.sin(np.arange(n)))
    problem = dict(mass=mass)
    how = {"given": {"jac_sparsity": pattern}, "constant pattern": {"bandwidth": (2, 2)}}
    options |= how.get(source, {})
    if source == "jac":

        def jac(t, y):
            J = np.array([f(t, y + 1e-6 * e) - f(t, y - 1e-6 * e) for e in np.eye(n)]).T / 2e-6
            return sparse.csc_matrix(np.where(pattern.toarray(), J, 0.0))

        problem["jac"] = jac
    slope = traced(f, n=n) if source == "traced" else f
    events = [lambda t, y: y[0] - 0.4] if rng.random() < 0.5 else None
    tolerances = dict(rtol=1e-6, atol=1e-8)
    solution = solve(
        slope, (0, 0.6), y0, method=method, events=events, dense_output=True,
        **tolerances, **problem, **options,
    )  # fmt: skip
    assert solution.success, solution.message
    truth = solve(f, (0, 0.6), y0, method="RADAU5", rtol=1e-9, atol=1e-11, mass=mass,
                  dense_output=True, linear_solver="dense")  # fmt: skip
    what = (method, options, source, mass is not None, n, solution.linear_solver)
    for t in (0.6, 0.31, 0.05):
        assert np.abs(solution.sol(t) - truth.sol(t)).max() < 1e-4, what
    if events:
        for t in solution.t_events[0]:
            assert abs(truth.sol(t)[0] - 0.4) < 1e-4, what


def test_fixed_steps_and_steps_by_hand():
    problem = problems.get("heat_1d", n=60)
    runs = [
        solve(problem, (0, 0.05), method=method, step=0.005, linear_solver=kind).y[:, -1]
        for method in ("RADAU5", "SDIRK4")
        for kind in ("dense", "band", "gmres")
    ]
    for first in (0, 3):
        for other in runs[first + 1 : first + 3]:
            np.testing.assert_allclose(other, runs[first], atol=1e-11)
    run = stepper(problem, method="BDF", bandwidth=1)
    while run.step():
        pass
    assert np.abs(run.y - problem.exact(run.t)).max() < 1e-4


def test_thousands_of_states_are_not_traced_one_by_one():
    problem = problems.get("heat_1d", n=3000)
    run = solve(problem.with_(f=traced(problem.f)), method="BDF", t_eval=[0.2])
    assert run.linear_solver.endswith("3 exact products, pattern traced")
    assert np.abs(run.y[:, -1] - problem.exact(0.2)).max() < 1e-5

    def by_sorting(t, y):  # of which arrays of symbols know nothing
        return problem.f(t, np.sort(y)[np.argsort(np.argsort(y))])

    run = solve(problem.with_(f=traced(by_sorting)), method="BDF", t_eval=[0.2])
    assert "f was left untraced" in run.message
    assert np.abs(run.y[:, -1] - problem.exact(0.2)).max() < 1e-5


def test_a_preconditioner_of_ones_own():
    problem = problems.get("heat_2d", n=20)
    asked = []

    def precondition(t, y, gamma):
        asked.append(gamma)
        return lambda r: r / (1 + gamma * 4 * 21**2)

    solution = solve(problem, method="BDF", preconditioner=precondition)
    assert solution.success
    assert min(asked) > 0
    assert np.abs(solution.y[:, -1] - problem.exact(0.1)).max() < 1e-4
