"""Dense output as good as the steps: every scheme, stiff or not, with a mass matrix, at events."""

import numpy as np
import pytest

from integrators import Status, catalogue, solve, traced
from integrators.catalogue import entries
from integrators.tableau.extension import dense_extension, in_powers
from integrators.tableau.implicit_extension import implicit_extension
from integrators.tableau.trees import density, rooted_trees

ENTRIES = entries()
NAMES = [e.name for e in ENTRIES]
IMPLICIT = [e.name for e in ENTRIES if not e.tableau.is_explicit]
INSIDE = np.linspace(0.0, 1.0, 9)[1:-1]

# Tolerances that a method of each order reaches in some hundred steps.
TOLERANCE = {1: 1e-3, 2: 1e-5, 3: 1e-7, 4: 1e-9}
TIGHT = 1e-10
ALLOWED = 10.0  # error between the steps over that at the steps
# Two half steps leave 6e-12 at the steps, a sixteenth of the tolerance, and 3e-10 between them.
HARD = {"RadauIA5": 6 * ALLOWED}
ROUNDING = 1e-13
# Weights of the slope in further stages: of the factorised matrices M − hγJ.
GAMMA = {"RadauIA4": 0.1985, "RadauIA5": 0.159, "LobattoIIID4": 0.215, "Crouzeix4": 1.0686}


def slope(t, y):
    """Nonlinear and dependent on time; the solution is e^(sin t), 1/(2 + cos t)."""
    growth = np.cos(t) * y[1] * (2 + np.cos(t))
    return np.array([y[0] * growth, y[1] ** 2 * np.sin(t) * y[0] * np.exp(-np.sin(t))])


def exact(t):
    return np.array([np.exp(np.sin(t)), 1 / (2 + np.cos(t))])


FAST = traced(slope, n=2)


def between(solution):
    """Times inside every step."""
    return (solution.t[:-1, None] + np.diff(solution.t)[:, None] * INSIDE).ravel()


def errors(solution, truth):
    """Largest error at the steps, and between them."""
    times = between(solution)
    at_steps = np.max(np.abs(solution.y - truth(solution.t)))
    return at_steps, np.max(np.abs(solution.sol(times) - truth(times)))


# -------------------------------------------------------------------- every scheme


@pytest.mark.parametrize("name", [*NAMES, "RadauVariable"])
def test_between_the_steps_as_good_as_at_the_steps(name):
    order = 13 if name == "RadauVariable" else catalogue.get(name).order
    tolerance = TOLERANCE.get(order, TIGHT)
    options = dict(method=name, rtol=tolerance, atol=tolerance)
    plain = solve(FAST, (0, 4), exact(0.0), **options)
    solution = solve(FAST, (0, 4), exact(0.0), dense_output=True, **options)
    assert np.array_equal(plain.y, solution.y)  # output is watching, not interfering
    assert plain.nsteps == solution.nsteps
    assert plain.dense_order >= min(order, 9) - 1
    at_steps, inside = errors(solution, exact)
    assert inside <= HARD.get(name, ALLOWED) * at_steps + ROUNDING


@pytest.mark.parametrize("name", NAMES)
def test_the_interpolant_has_the_order_of_the_method(name):
    order = catalogue.get(name).order
    coarse = 8 if order < 6 else 3
    found = []
    for steps in (coarse, 2 * coarse):
        run = solve(FAST, (0, 1.5), exact(0.0), method=name, step=1.5 / steps, dense_output=True)
        found.append(errors(run, exact))
    (_, before), (at_steps, after) = found
    if after > 1e-12:  # above rounding errors
        assert np.log2(before / after) > order - 0.6 or after <= ALLOWED * at_steps


@pytest.mark.parametrize("name", [*NAMES, "RadauVariable"])
def test_f_is_asked_inside_the_steps_only(name):
    asked = []

    def f(t, y):
        asked.append(t)
        return slope(t, y)

    nodes, kind = np.array([0.0, 1.0]), {}
    if name != "RadauVariable":  # some tableaux have nodes outside the step themselves
        nodes, kind = np.append(nodes, catalogue.get(name).arrays[2]), {"step": 0.5}
    solve(f, (0, 2), exact(0.0), method=name, dense_output=True, **kind)
    assert min(asked) >= 0.5 * nodes.min() - ROUNDING
    assert max(asked) <= 1.5 + 0.5 * nodes.max() + ROUNDING


@pytest.mark.parametrize("name", [*NAMES, "RadauVariable"])
def test_a_constant_solution_is_constant(name):
    start = np.array([1.5, -0.25])
    run = solve(lambda t, y: 0.0 * y, (0, 3), start, method=name, dense_output=True)
    assert np.array_equal(run.y, np.tile(start[:, None], len(run.t)))
    assert np.array_equal(run.sol(between(run)), np.tile(start[:, None], len(between(run))))
    assert run.nsteps < 60


# -------------------------------------------------------------------- the order conditions


def tree_weights(A, tree, known):
    if tree not in known:
        product = np.ones(len(A))
        for child in tree:
            product = product * (A @ tree_weights(A, child, known))
        known[tree] = product
    return known[tree]


@pytest.mark.parametrize("name", ["RK4", "DOPRI5", "BS45", "Verner65", "DOP853", "Verner87"])
def test_derived_extensions_meet_every_order_condition(name):
    tableau = catalogue.get(name)
    A, b, c = tableau.arrays
    extension = dense_extension(tableau)
    s, rows = tableau.stages, tableau.stages + len(extension.c_extra)
    full = np.zeros((rows, rows))
    full[:s, :s] = A
    for i, row in enumerate(extension.A_extra, start=s):
        full[i, : len(row)] = row
    np.testing.assert_allclose(full.sum(axis=1), [*c, *extension.c_extra], atol=1e-13)
    P = extension.P @ in_powers(extension.P.shape[1]).T
    np.testing.assert_allclose(P.sum(axis=1)[:s], b, atol=1e-10)
    known = {}
    for theta in (0.15, 0.5, 0.8, 1.0):
        weights = P @ theta ** np.arange(1, P.shape[1] + 1)
        for k in range(1, tableau.order + 1):
            for tree in rooted_trees(k):
                found = weights @ tree_weights(full, tree, known)
                assert found == pytest.approx(theta**k / density(tree), abs=1e-11)


def test_further_stages_are_few():
    """As many as the literature needs, or about as many; a change here is a change of cost."""
    needed = {"DOPRI5": 2, "BS45": 1, "Verner65": 4, "Verner76": 7, "DOP853": 9, "Verner98": 12}
    found = {name: len(dense_extension(catalogue.get(name)).c_extra) for name in needed}
    assert found == needed
    assert len(implicit_extension(catalogue.get("RadauIIA3"), 5, 0.2749).nodes) == 6


@pytest.mark.parametrize("name", ["RadauIA4", "RadauIA5", "LobattoIIID4", "Crouzeix4"])
def test_an_order_more_is_not_bought_with_large_weights(name):
    """Of two half steps: RadauIA5 had weights of 455 at order 11, twice the error of order 10."""
    tableau = catalogue.get(name)
    found = implicit_extension(tableau, tableau.order + 3, 0.5 * GAMMA[name], halved=True)
    assert np.abs(found.weights).sum(axis=0).max() < 45
    assert found.order > tableau.order


# -------------------------------------------------------------------- stiff, mass, algebraic


STIFF = ["RadauIIA2", "RadauIIA3", "RadauVariable", "LobattoIIIC3", "LobattoIIIC4", "Kvaerno5"]


@pytest.mark.parametrize("name", STIFF)
def test_stiff_components_between_the_steps(name):
    """Prothero & Robinson's equation beside a slow one; f(t, u) would magnify errors by 10⁶."""

    def f(t, y):
        return np.array([-1e6 * (y[0] - np.sin(t)) + np.cos(t), -y[1] * y[0]])

    def truth(t):
        return np.array([np.sin(t), np.exp(np.cos(t) - 1)])

    run = solve(f, (0, 3), truth(0.0), method=name, rtol=1e-8, atol=1e-8, dense_output=True)
    at_steps, inside = errors(run, truth)
    assert inside <= ALLOWED * at_steps


def prothero_robinson(t, y, p):
    """y = cos 2t, which nothing but y itself tells when steps grow too long."""
    return np.array([p[0] * (y[0] - np.cos(2 * t)) - 2 * np.sin(2 * t)])


ALONE = traced(prothero_robinson, n=1, params=1)
LOOSE = {1: 1e-3, 2: 1e-3, 3: 1e-5, 4: 1e-5}
# Not stable where hλ is large: their steps are short, whatever is asked for.
UNSTABLE = {"LobattoIIIB2", "LobattoIIICStar3", "LobattoIIICStar4"}


@pytest.mark.parametrize("rate", [-1e4, -1e6])
@pytest.mark.parametrize("name", [*(n for n in IMPLICIT if n not in UNSTABLE), "RadauVariable"])
def test_a_stiff_component_alone_is_followed_inside_the_steps(name, rate):
    """Steps of any length end on the solution: what happens inside must limit them."""
    order = 13 if name == "RadauVariable" else catalogue.get(name).order
    tolerance = LOOSE.get(order, 1e-8)
    options = dict(method=name, rtol=tolerance, atol=tolerance, dense_output=True)
    run = solve(ALONE, (0, 3), [1.0], params=[rate], **options)
    at_steps, inside = errors(run, lambda t: np.cos(2 * t)[None])
    assert run.success
    assert inside <= ALLOWED * max(at_steps, tolerance)


@pytest.mark.parametrize("name", ["RADAU5", "RadauIIA4", "RadauVariable", "SDIRK4", "LobattoIIIC5"])
def test_algebraic_functions_of_time_are_followed_inside_the_steps(name):
    """z = cos 2t beside y' = 0, in steps that any length would end on; events fall between."""
    options = dict(method=name, rtol=1e-7, atol=1e-7, mass=np.diag([0.0, 1.0]), dense_output=True)
    run = solve(
        lambda t, y: np.array([y[0] - np.cos(2 * t), -y[1]]),
        (0, 9),
        [1.0, 0.0],
        events=lambda t, y: y[0],
        **options,
    )
    _, inside = errors(run, lambda t: np.array([np.cos(2 * t), 0 * t]))
    assert inside <= ALLOWED * 1e-7
    assert np.allclose(run.t_events[0], (np.arange(6) + 0.5) * np.pi / 2, atol=ALLOWED * 1e-7)


@pytest.mark.parametrize("name", ["RADAU5", "RadauIIA5", "RadauVariable", "SDIRK4", "LobattoIIIC5"])
def test_what_begins_inside_a_step_is_followed(name):
    """z = 0 up to some time, then sin⁴: for most stages of the step nothing has happened yet."""
    times, options = np.linspace(0, 2, 400), dict(method=name, rtol=1e-7, atol=1e-7)
    for onset in np.linspace(0.6, 1.4, 9):

        def z(t, onset=onset):
            return np.sin(2 * np.maximum(t - onset, 0.0)) ** 4

        run = solve(
            lambda t, y, z=z: np.array([y[0] - z(t), -y[1]]),
            (0, 2),
            [0.0, 0.0],
            mass=np.diag([0.0, 1.0]),
            t_eval=times,
            **options,
        )
        assert np.abs(run.y[0] - z(times)).max() <= 3 * ALLOWED * 1e-7


def regular(name):
    """Whether A is regular; with an explicit stage, a mass matrix is refused."""
    tableau = catalogue.get(name)
    return np.linalg.matrix_rank(tableau.arrays[0]) == tableau.stages


@pytest.mark.parametrize("name", [name for name in IMPLICIT if regular(name)])
def test_dense_output_with_a_mass_matrix(name):
    mass = np.array([[2.0, 1.0], [0.5, 1.5]])
    order = catalogue.get(name).order
    tolerance = TOLERANCE.get(order, TIGHT)
    run = solve(
        lambda t, y: mass @ slope(t, y),
        (0, 2),
        exact(0.0),
        method=name,
        mass=mass,
        rtol=tolerance,
        atol=tolerance,
        dense_output=True,
    )
    at_steps, inside = errors(run, exact)
    # Of the 2e-14 that Gauss5 leaves at its steps all is rounding, which tells nothing of it.
    assert inside <= ALLOWED * max(at_steps, ROUNDING)


@pytest.mark.parametrize("name", ["RadauIIA2", "RadauIIA3", "RadauVariable", "LobattoIIIC3"])
def test_algebraic_components_between_the_steps(name):
    """y' = −z with z = y + (y² − e^(−2t))/2: both are e^(−t)."""

    def f(t, y):
        return np.array([-y[1], y[1] - y[0] - 0.5 * (y[0] ** 2 - np.exp(-2 * t))])

    def truth(t):
        return np.array([np.exp(-t), np.exp(-t)])

    options = dict(mass=np.diag([1.0, 0.0]), rtol=1e-8, atol=1e-8, dense_output=True)
    at_steps, inside = errors(solve(f, (0, 2), truth(0.0), method=name, **options), truth)
    assert inside <= 2 * ALLOWED * at_steps


def test_a_further_stage_that_fails_leaves_the_plain_interpolant():
    """f is NaN where only dense output looks: the run and its output go on, less accurately."""
    node = implicit_extension(catalogue.get("RadauIIA3"), 5, 0.27488882959567).nodes[0]

    def f(t, y):
        return -y if abs(t % 0.1 - 0.1 * node) > 1e-6 else np.nan * y

    run = solve(f, (0, 1), [1.0], method="RadauIIA3", step=0.1, dense_output=True)
    assert run.success
    times = between(run)
    assert np.max(np.abs(run.sol(times)[0] - np.exp(-times))) < 1e-6


# -------------------------------------------------------------------- where it is used


@pytest.mark.parametrize("name", ["Verner98", "DOP853", "Gauss4", "RadauIIA3", "Kvaerno5"])
def test_event_times_are_as_good_as_the_steps(name):
    tolerance = 1e-9
    run = solve(
        slope,
        (0, 4),
        exact(0.0),
        method=name,
        rtol=tolerance,
        atol=tolerance,
        events=lambda t, y: y[0] - 2.0,
    )
    first = np.arcsin(np.log(2.0))
    at_steps = np.max(np.abs(run.y - exact(run.t)))
    np.testing.assert_allclose(run.t_events[0], [first, np.pi - first], atol=10 * at_steps)


def test_output_times_agree_with_dense_output():
    times = np.linspace(0.0, 4.0, 37)
    for name in ("Verner76", "RadauIIA5", "RK4"):
        options = dict(method=name, rtol=1e-8, atol=1e-8)
        chosen = solve(FAST, (0, 4), exact(0.0), t_eval=times, **options)
        dense = solve(FAST, (0, 4), exact(0.0), dense_output=True, **options)
        np.testing.assert_allclose(chosen.y, dense.sol(times), rtol=0, atol=1e-14)


BLOW_UPS = {
    "square": lambda t, y: y * y,
    "too stiff for the step": lambda t, y: -1e3 * y,
    "exponential": lambda t, y: np.exp(y),
}


@pytest.mark.parametrize("name", BLOW_UPS)
@pytest.mark.parametrize("method", ["RK4", "ExplicitEuler", "DOPRI5", "DOP853", "Kutta3"])
def test_before_the_last_good_time_nothing_is_nan(method, name):
    """A fixed step that blows up: f at the last finite state is infinite, its output is not."""
    times = np.linspace(0, 20, 2001)
    with np.errstate(all="ignore"):
        run = solve(
            BLOW_UPS[name], (0, 20), [1.0], method=method, step=0.05, t_eval=times,
            dense_output=True,
        )  # fmt: skip
    assert run.status == Status.NONFINITE
    assert run.t.size > 0
    assert np.isfinite(run.y).all()
    assert np.isfinite(run.sol(np.linspace(0, run.reached[0], 333))).all()
