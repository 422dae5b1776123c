"""`solve`: output, dense output, tolerances, FSAL, projection, callbacks, statistics."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from integrators import IVP, PI, PID, I, Solution, Status, Taylor, problems, solve, traced

ADAPTIVE = ["DOPRI5", "DOP853", "Tsit5", "BS23", "Verner76", "RK4", "RadauIIA3", "SDIRK4", "Gauss2"]

EPS = np.finfo(float).eps


def oscillator(t, y):
    return np.array([y[1], -y[0]])


# ---------------------------------------------------------------- like SciPy


@pytest.mark.parametrize(("ours", "theirs"), [("DOPRI5", "RK45"), ("DOP853", "DOP853")])
@pytest.mark.parametrize("name", ["kepler", "van_der_pol", "pleiades", "lotka_volterra"])
def test_same_tableau_and_tolerance_need_the_evaluations_of_scipy(ours, theirs, name):
    problem = problems.get(name)
    f = problem.bind(problem.f)
    a = solve(problem, method=ours, rtol=1e-6, atol=1e-8)
    b = solve_ivp(f, problem.t_span, problem.y0, method=theirs, rtol=1e-6, atol=1e-8)
    assert abs(a.nfev / b.nfev - 1) < 0.15
    assert np.allclose(a.y[:, -1], b.y[:, -1], rtol=1e-3, atol=1e-3)


def test_fields_of_scipy_are_there():
    a = solve(oscillator, (0, 1), [1.0, 0.0], dense_output=True, events=lambda t, y: y[0] - 0.7)
    b = solve_ivp(oscillator, (0, 1), [1.0, 0.0], dense_output=True, events=lambda t, y: y[0] - 0.7)
    for field in b:
        assert hasattr(a, field), field
    assert a.y.shape[0] == b.y.shape[0] == 2
    assert a.t_events[0] == pytest.approx(np.arccos(0.7), abs=1e-6)
    assert a.success
    assert a.status == b.status == 0


# ---------------------------------------------------------------- output


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize("options", [{}, {"step": 0.05}])
def test_output_times_never_change_the_answer(method, options):
    problem = problems.get("order_rational")
    plain = solve(problem, method=method, **options)
    times = np.linspace(*problem.t_span, 17)
    chosen = solve(problem, method=method, t_eval=times, **options)
    assert np.array_equal(chosen.t, times)
    assert np.array_equal(chosen.y[:, -1], plain.y[:, -1])
    assert chosen.nsteps == plain.nsteps


@pytest.mark.parametrize("method", [*ADAPTIVE, "LobattoIIIC3", "TRBDF2", "Trapezoid"])
@pytest.mark.parametrize("name", ["order_rational", "kepler"])
def test_dense_output_has_its_order(method, name):
    """Halving the step divides the interpolation error by 2^(order + 1) or the solution's error."""
    problem = problems.get(name).with_(t_span=(0.0, 1.0))
    times = np.linspace(0.0, 1.0, 203)
    exact = np.array([problem.exact(t) for t in times]).T
    errors = []
    for steps in (16, 32, 64):
        solution = solve(problem, method=method, step=1 / steps, dense_output=True)
        assert solution.sol is not None
        errors.append(np.max(np.abs(solution.sol(times) - exact)))
    if errors[-1] > 1e-11:  # above round-off
        assert np.log2(errors[-2] / errors[-1]) > solution.dense_order - 0.35


def test_dense_output_meets_the_steps_and_refuses_extrapolation():
    solution = solve(oscillator, (0, 3), [1.0, 0.0], method="DOPRI5", dense_output=True)
    assert np.allclose(solution.sol(solution.t), solution.y, rtol=0, atol=1e-14)
    assert solution.sol(1.0).shape == (2,)
    assert solution.sol([0.5, 1.0]).shape == (2, 2)
    with pytest.raises(ValueError, match="outside the integrated interval"):
        solution.sol(3.5)


@pytest.mark.parametrize(("step", "count"), [(0.1, 10), (0.3, 4), (1 / 3, 3), (0.25, 4), (2.0, 1)])
def test_fixed_steps_are_exactly_as_many_as_asked_for(step, count):
    solution = solve(oscillator, (0, 1), [1.0, 0.0], method="RK4", step=step)
    assert solution.nsteps == count
    assert solution.t[-1] == 1.0
    grid = np.minimum(step * np.arange(count + 1), 1.0)
    assert np.array_equal(solution.t, grid)


def test_a_million_small_steps_do_not_drift():
    solution = solve(lambda t, y: np.zeros(1), (0, 1e5), [0.0], method="ExplicitEuler", step=0.1)
    assert solution.nsteps == 1_000_000
    assert np.max(np.abs(solution.t - 0.1 * np.arange(1_000_001))) < 1e-10


def test_tstops_are_hit_and_help_with_jumps():
    def kicked(t, y):
        return np.array([1.0 if t < 0.3 else -1.0])

    with_stop = solve(kicked, (0, 1), [0.0], tstops=[0.3], rtol=1e-9)
    assert 0.3 in with_stop.t
    assert with_stop.y[0, -1] == pytest.approx(0.3 - 0.7, abs=1e-12)
    assert with_stop.nrejected == 0
    fixed = solve(kicked, (0, 1), [0.0], tstops=[0.3], method="RK4", step=0.2)
    assert np.allclose(fixed.t, [0, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0])


# ---------------------------------------------------------------- directions, dtypes, parameters


@pytest.mark.parametrize("method", ADAPTIVE)
def test_backward_integration(method):
    there = solve(oscillator, (0, 5), [1.0, 0.0], method=method, rtol=1e-9, atol=1e-10)
    back = solve(oscillator, (5, 0), there.y[:, -1], method=method, rtol=1e-9, atol=1e-10)
    assert np.all(np.diff(back.t) < 0)
    assert np.all(back.h < 0)
    assert np.allclose(back.y[:, -1], [1.0, 0.0], atol=1e-6)


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "RadauIIA3", "SDIRK4", "RK4"])
def test_complex_states(method):
    solution = solve(lambda t, y: 1j * y, (0, 2), [1 + 0j], method=method, rtol=1e-8, atol=1e-9)
    assert solution.y.dtype == np.complex128
    assert solution.y[0, -1] == pytest.approx(np.exp(2j), abs=1e-6)
    dense = solve(lambda t, y: 1j * y, (0, 2), [1 + 0j], method=method, dense_output=True)
    assert dense.sol(1.0)[0] == pytest.approx(np.exp(1j), abs=1e-4)


def test_complex_jacobian_is_used():
    solution = solve(
        lambda t, y: (1j - 50) * y, (0, 1), [1 + 0j], method="RadauIIA3", jac=[[1j - 50]]
    )
    assert solution.success
    assert abs(solution.y[0, -1]) < 1e-8


def test_parameters_reach_every_function():
    seen = []

    def event(t, y, p):
        seen.append(p[0])
        return y[0] - 0.5

    solution = solve(
        lambda t, y, p: -p[0] * y, (0, 2), [1.0], params=[2.0], events=event, rtol=1e-8
    )
    assert solution.t_events[0][0] == pytest.approx(np.log(2) / 2, abs=1e-7)
    assert set(seen) == {2.0}


def test_what_f_may_return_and_do():
    kept = []

    def returns_list(t, y):
        kept.append(y)
        return [y[1], -y[0]]

    reference = solve(oscillator, (0, 1), [1.0, 0.0]).y
    assert np.array_equal(solve(returns_list, (0, 1), [1, 0]).y, reference)
    assert not np.array_equal(kept[0], kept[-1])  # each call had an array of its own

    buffer = np.zeros(2)

    def reuses_its_result(t, y):
        buffer[:] = y[1], -y[0]
        y[:] = np.nan  # and spoils its argument
        return buffer

    assert np.array_equal(solve(reuses_its_result, (0, 1), [1, 0]).y, reference)
    scalar = solve(lambda t, y: -y[0], (0, 1), 1.0)
    assert scalar.y.shape == (1, scalar.t.size)


# ---------------------------------------------------------------- control, FSAL, projection


@pytest.mark.parametrize("controller", [I(), PI(), PID(), PI(safety=0.8, max_factor=3)])
def test_controllers_keep_the_tolerance(controller):
    problem = problems.get("kepler")
    solution = solve(problem, rtol=1e-8, atol=1e-8, controller=controller)
    assert solution.success
    error = np.max(np.abs(solution.y[:, -1] - problem.exact(problem.t_span[1])))
    assert error < 1e-5  # a few hundred steps of 1e-8, amplified by the orbit


def test_tighter_tolerance_smaller_error():
    problem = problems.get("kepler")
    exact = problem.exact(problem.t_span[1])
    for method in ADAPTIVE:
        errors = [
            np.max(np.abs(solve(problem, method=method, rtol=r, atol=r).y[:, -1] - exact))
            for r in (1e-4, 1e-6, 1e-8)
        ]
        assert errors[0] > errors[1] > errors[2], method


def test_methods_without_a_pair_say_that_they_double_steps():
    assert solve(oscillator, (0, 1), [1.0, 0.0], method="RK4").error_estimate == "step doubling"
    assert "none" in solve(oscillator, (0, 1), [1.0, 0.0], method="RK4", step=0.1).error_estimate


def test_max_norm_is_stricter():
    problem = problems.get("pleiades").with_(t_span=(0.0, 1.0))
    rms, largest = (solve(problem, norm=norm).nsteps for norm in ("rms", "max"))
    assert largest > rms


def test_fsal_saves_an_evaluation_and_projection_cancels_it():
    plain = solve(oscillator, (0, 1), [1.0, 0.0], step=0.1)
    assert plain.nfev == 6 * 10 + 1

    def normalise(t, y):
        return y / np.linalg.norm(y)

    projected = solve(oscillator, (0, 1), [1.0, 0.0], step=0.1, project=normalise)
    assert projected.nfev == 7 * 10
    assert np.allclose(np.linalg.norm(projected.y, axis=0), 1.0, atol=1e-15)
    # The slope after a projection is the slope at the projected state: order is kept.
    exact = np.array([np.cos(1), -np.sin(1)])
    coarse, fine = (
        np.max(
            np.abs(solve(oscillator, (0, 1), [1, 0], step=h, project=normalise).y[:, -1] - exact)
        )
        for h in (0.1, 0.05)
    )
    assert np.log2(coarse / fine) > 4.5


def test_step_limits():
    solution = solve(oscillator, (0, 10), [1.0, 0.0], max_step=0.1)
    assert np.max(solution.h) <= 0.1 + 1e-15
    first = solve(oscillator, (0, 10), [1.0, 0.0], first_step=1e-3)
    assert first.h[0] == pytest.approx(1e-3)
    stopped = solve(oscillator, (0, 10), [1.0, 0.0], min_step=5.0, max_step=6.0)
    assert stopped.status == Status.STEP_TOO_SMALL
    assert "too small" in stopped.message
    few = solve(oscillator, (0, 1000), [1.0, 0.0], max_steps=20)
    assert few.status == Status.TOO_MANY_STEPS
    assert few.nsteps + few.nrejected == 20
    assert few.t.size == few.nsteps + 1


def test_callback_sees_each_step_and_can_stop():
    seen = []

    def stop_at_half(t, y):
        seen.append(t)
        return t > 0.5

    solution = solve(oscillator, (0, 1), [1.0, 0.0], step=0.1, callback=stop_at_half)
    assert solution.status == Status.STOPPED
    assert solution.success
    assert seen == list(solution.t[1:])
    assert seen[-1] == pytest.approx(0.6)


def test_progress_bar_goes_away(capsys):
    solve(oscillator, (0, 1), [1.0, 0.0], progress=True)
    assert "Traceback" not in capsys.readouterr().err


# ---------------------------------------------------------------- problems as objects


def test_ivp_fields_can_be_replaced():
    problem = IVP(oscillator, [1, 0], (0, 1), name="oscillator")
    longer = solve(problem, (0, 2))
    assert longer.t[-1] == 2.0
    assert solve(problem, y0=[0, 1]).y[0, 0] == 0.0
    assert problem.y0.dtype == np.float64
    assert "oscillator" in repr(longer)


def test_save_and_load_bit_for_bit(tmp_path):
    solution = solve(
        oscillator, (0, 3), [1.0, 0.0], dense_output=True, events=lambda t, y: y[0], method="DOP853"
    )
    again = Solution.load(solution.save(tmp_path / "run"))
    assert np.array_equal(again.t, solution.t)
    assert np.array_equal(again.y, solution.y)
    assert np.array_equal(again.t_events[0], solution.t_events[0])
    assert np.array_equal(again.sol(1.234), solution.sol(1.234))
    for name in ("nfev", "nsteps", "status", "message", "method", "dense_order"):
        assert getattr(again, name) == getattr(solution, name)


def test_files_that_are_no_solutions_are_refused(tmp_path):
    saved = solve(oscillator, (0, 3), [1.0, 0.0]).save(tmp_path / "run").read_bytes()
    np.savez(tmp_path / "other", x=np.ones(2))
    np.savez(tmp_path / "pickled", header=np.array([None]), allow_pickle=True)
    np.savez(tmp_path / "list", header=np.array("[1]"))
    np.save(tmp_path / "single", np.ones(2))
    middle = len(saved) // 2
    damaged = saved[: middle - 20] + bytes(40) + saved[middle + 20 :]
    contents = {"junk": b"no zip file", "empty": b"", "cut": saved[:-100], "damaged": damaged}
    for name, content in contents.items():
        (tmp_path / f"{name}.npz").write_bytes(content)
    for path in tmp_path.iterdir():
        if path.stem == "run":
            continue
        with pytest.raises(ValueError, match="not a saved Solution: expected") as refused:
            Solution.load(path)
        assert "pickle" not in str(refused.value).replace(str(path), "")
    with pytest.raises(FileNotFoundError):
        Solution.load(tmp_path / "missing.npz")


def test_dataframe_and_xarray():
    solution = solve(oscillator, (0, 1), [1.0, 0.0])
    frame = solution.to_dataframe()
    assert list(frame.columns) == ["y0", "y1"]
    assert np.array_equal(frame.index, solution.t)
    array = solution.to_xarray()
    assert array.dims == ("component", "t")
    assert float(array.sel(component="y0")[-1]) == solution.y[0, -1]


def test_tables_have_names_and_units(tmp_path):
    pd, xr = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    pytest.importorskip("pyarrow")
    names, units = ("arm.angle", "d(arm.angle)"), {"arm.angle": "rad", "d(arm.angle)": "rad/s"}
    problem = IVP(oscillator, [1.0, 0.0], (0, 1), state_names=names, units=units, name="arm")
    solution = solve(problem)
    assert solution.names() == list(names)
    array = solution.to_xarray()
    assert str(array.sel(component="d(arm.angle)").unit.values) == "rad/s"
    assert solution.to_dataframe().attrs["units"] == units
    frame = pd.read_parquet(solution.export(tmp_path / "run.parquet"))
    assert np.array_equal(frame["arm.angle"], solution.y[0])
    assert np.array_equal(frame.index, solution.t)
    assert frame.attrs["units"] == units
    with xr.open_dataset(solution.export(tmp_path / "run.nc"), engine="scipy") as data:
        assert np.array_equal(data["d(arm.angle)"], solution.y[1])
        assert data["arm.angle"].attrs["units"] == "rad"
        assert data.attrs["method"] == solution.method
    table = pd.read_csv(solution.export(tmp_path / "run.csv"), index_col="t")
    assert np.array_equal(table["arm.angle"], solution.y[0])
    with pytest.raises(ValueError, match=r"ends in \.parquet"):
        solution.export(tmp_path / "run.xlsx")
    greek = solve(problem.with_(state_names=("λ", "lamda"), units={"λ": "N", "lamda": "Ω·m"}))
    with xr.open_dataset(greek.export(tmp_path / "greek.nc"), engine="scipy") as data:
        assert np.array_equal(data["lamda"], greek.y[0])
        assert np.array_equal(data["lamda_"], greek.y[1])
        assert data["lamda"].attrs["long_name"] == "λ"
    twins = solve(problem.with_(state_names=("a", "a")))
    with pytest.raises(ValueError, match="two states are called 'a'"):
        twins.export(tmp_path / "run.csv")


# ---------------------------------------------------------------- traced right-hand sides


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "RadauIIA3", "SDIRK4", "RK4"])
@pytest.mark.parametrize("name", ["kepler", "van_der_pol", "hires", "pleiades"])
def test_traced_function_takes_the_same_steps(method, name):
    problem = problems.get(name)
    t0, t1 = problem.t_span
    problem = problem.with_(t_span=(t0, t0 + min(2.0, t1 - t0)))
    fast = problem.with_(
        f=traced(problem.f, n=problem.n, params=problem.params.size or None), jac=problem.jac
    )
    plain = solve(problem, method=method, rtol=1e-6, atol=1e-9)
    quick = solve(fast, method=method, rtol=1e-6, atol=1e-9)
    for counter in ("nsteps", "nrejected", "nfev"):
        assert getattr(quick, counter) == getattr(plain, counter)
    # An error estimate is a small difference, so rounding moves the step sizes a little.
    assert np.allclose(quick.t, plain.t, rtol=1e-5)
    assert np.allclose(quick.y[:, -1], plain.y[:, -1], rtol=1e-6, atol=1e-9)


def test_traced_function_with_fixed_steps_differs_by_rounding_only():
    problem = problems.get("pleiades").with_(t_span=(0.0, 1.0))
    quick = problem.with_(f=traced(problem.f, n=28))
    a, b = (solve(p, method="DOPRI5", step=0.01).y for p in (problem, quick))
    assert np.max(np.abs(a - b)) < 1e-12  # a hundred steps, values of size five


def test_radau_uses_the_exact_jacobian_of_a_traced_function():
    problem = problems.get("van_der_pol", mu=1000)
    f = traced(problem.f, n=2, params=1)
    exact = solve(problem.with_(f=f, jac=None), method="RADAU5", rtol=1e-6, atol=1e-8)
    given = solve(problem.with_(f=f), method="RADAU5", rtol=1e-6, atol=1e-8)
    assert exact.success
    assert exact.nfev == given.nfev  # no evaluation went into differences
    assert exact.njev > 0


SMOOTH = [
    *("arenstorf", "arenstorf_3", "brusselator", "double_pendulum", "hires", "kepler", "lorenz"),
    *("lotka_volterra", "pendulum", "pleiades", "rigid_body", "van_der_pol", "van_der_pol_100"),
]


@pytest.mark.parametrize("name", SMOOTH)
def test_taylor_of_order_twenty_reaches_round_off(name):
    """1e-13, or what the problem makes of an ulp in its initial state."""
    problem = problems.get(name)
    options = dict(method=Taylor(20), rtol=3e-14, atol=1e-18)
    end = solve(problem, **options).y[:, -1]
    reference = problem.reference(problem.t_span[1])
    size = np.max(np.abs(reference))
    rng = np.random.default_rng(0)
    moved = [
        solve(problem.with_(y0=problem.y0 * (1 + EPS * rng.choice([-1, 1], problem.n))), **options)
        for _ in range(3)
    ]
    conditioning = max(np.max(np.abs(other.y[:, -1] - end)) for other in moved) / size
    # Some hundred steps, each with rounding errors like that of the initial state.
    allowed = max(1e-13, 30 * conditioning)
    assert np.max(np.abs(end - reference)) / size < allowed


def test_taylor_is_not_fooled_by_vanishing_coefficients():
    # Pendulum from θ = π/2 at rest: orders 19 and 20 of the series vanish.
    problem = problems.get("pendulum").with_(t_span=(0.0, 1.0))
    solution = solve(problem, method=Taylor(20), rtol=1e-13, atol=1e-13)
    assert solution.y[0, -1] == pytest.approx(-1.40503, abs=1e-5)
    assert solution.y[0, -1] == pytest.approx(problem.exact(1.0)[0], abs=1e-11)


def test_arenstorf_returns_to_its_start():
    problem = problems.get("arenstorf")
    solution = solve(problem, method=Taylor(20), rtol=3e-14, atol=3e-14)
    assert np.max(np.abs(solution.y[:2, -1] - problem.y0[:2])) < 1e-10


@pytest.mark.parametrize("name", ["pendulum", "lorenz", "van_der_pol", "harmonic_oscillator"])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-10, 1e-13])
def test_taylor_of_variable_order(name, tolerance):
    problem = problems.get(name)
    reference = problem.reference(problem.t_span[1])
    options = dict(rtol=tolerance, atol=tolerance, dense_output=True)
    fixed, variable = (solve(problem, method=m, **options) for m in (Taylor(), "Taylor(auto)"))
    errors = [np.max(np.abs(run.y[:, -1] - reference)) for run in (fixed, variable)]
    assert variable.success
    assert errors[1] <= 100 * errors[0] + 1e-13  # both keep the tolerance, not each other's errors
    inner = np.linspace(*problem.t_span, 50)[:20]  # chaos and orbits spoil the rest
    assert np.allclose(variable.sol(inner), fixed.sol(inner), rtol=0, atol=3e3 * tolerance)
    if name == "harmonic_oscillator":  # an entire function: the higher the better
        assert variable.nsteps < fixed.nsteps


def test_variable_order_goes_down_as_the_solution_decays():
    """Where y is hardly larger than atol, a low order goes as far as a high one."""
    f = traced(lambda t, y: -y / (1 + t), n=1)  # y = 1/(1 + t), a pole at t = −1
    sol = solve(f, (0, 1e5), [1.0], method=Taylor("auto"), rtol=1e-10, atol=1e-7, dense_output=True)
    degrees = np.count_nonzero(np.any(sol.sol.Q != 0, axis=2), axis=1)
    assert degrees[-1] < degrees[0]
    assert np.all(np.abs(np.diff(degrees)) <= 2)
    assert sol.y[0, -1] == pytest.approx(1 / (1 + 1e5), abs=1e-6)


def test_variable_order_is_for_adaptive_steps():
    with pytest.raises(ValueError, match="needs error control"):
        solve(oscillator, (0, 1), [1.0, 0.0], method=Taylor("auto"), step=0.1)
    with pytest.raises(ValueError, match='"auto" or None'):
        Taylor("high")


@pytest.mark.parametrize("order", [1, 2, 3, 4, 6])
def test_taylor_orders(order):
    problem = problems.get("order_trigonometric")
    t0, t1 = problem.t_span
    exact = problem.exact(t1)
    errors = [
        np.max(np.abs(solve(problem, method=Taylor(order), step=(t1 - t0) / n).y[:, -1] - exact))
        for n in (64, 128)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)


def test_taylor_golden_values():
    # Notes, Example 1.4: y' = xy + x with Taylor-4 and h = 0.1.
    solution = solve(problems.get("linear_growth"), (0, 0.2), method=Taylor(4), step=0.1)
    assert solution.y[0, 1] == pytest.approx(1.010025, abs=1e-15)
    assert solution.y[0, 2] == pytest.approx(1.0404023411604, abs=5e-14)


# ---------------------------------------------------------------- what newcomers do


def test_callback_may_return_a_numpy_bool():
    solution = solve(lambda t, y: -y, (0, 1), [1.0], step=0.1, callback=lambda t, y: y[0] < 0.7)
    assert solution.status == Status.STOPPED
    assert solution.t[-1] == pytest.approx(0.4)


def test_traced_function_learns_its_size_from_the_problem():
    free = solve(traced(lambda t, y: np.array([y[1], -y[0]])), (0, 1), [1.0, 0.0], rtol=1e-9)
    assert free.y[0, -1] == pytest.approx(np.cos(1), abs=1e-7)
    with_p = solve(traced(lambda t, y, p: -p[0] * y), (0, 1), [1.0], params=[2.0], rtol=1e-9)
    assert with_p.y[0, -1] == pytest.approx(np.exp(-2), abs=1e-7)


def test_solution_can_be_pickled():
    import pickle

    solution = solve(lambda t, y: -y, (0, 1), [1.0], dense_output=True)
    again = pickle.loads(pickle.dumps(solution))
    assert np.array_equal(again.sol(0.5), solution.sol(0.5))
    assert again.status == solution.status


def test_methods_by_every_kind_of_name(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[Mine]\ntitle = "Ralston"\norder = 2\nA = "2/3"\nb = "1/4 3/4"\n')
    for method in (str(file), "scipy:RK45", "Taylor", "taylor8", "radau-variable"):
        solution = solve(lambda t, y: -y, (0, 1), [1.0], method=method)
        assert solution.y[0, -1] == pytest.approx(np.exp(-1), abs=1e-3), method
    with pytest.raises(TypeError, match=r"pass an instance, Taylor\(\)"):
        solve(lambda t, y: -y, (0, 1), [1.0], method=Taylor)
    with pytest.raises(ValueError, match="no solver class"):
        solve(lambda t, y: -y, (0, 1), [1.0], method="scipy:RK99")


# ---------------------------------------------------------------- engines are used again


def test_runs_with_one_traced_f_do_not_disturb_each_other():
    """Engines are kept for the next run; whatever came before, the results are the same."""
    f = traced(lambda t, y, p: np.array([y[1], -p[0] * np.sin(y[0])]), n=2, params=1)
    cases = [
        dict(y0=[0.1, 0.0], params=[1.0]),
        dict(y0=[2.0, 1.0], params=[9.81], rtol=1e-9, atol=[1e-9, 1e-11]),
        dict(y0=[2.0, 1.0], params=[9.81], t_eval=np.linspace(0, 3, 7)),
        dict(y0=[2.0, 1.0], params=[9.81], t_eval=[3.0]),
        dict(y0=[1.0, 0.0], params=[2.0], step=0.01),
        dict(y0=[1.0, 0.0], params=[2.0], max_steps=4),
        dict(y0=[1.0, 0.0], params=[2.0], events=lambda t, y: y[0]),
        dict(y0=[1.0, 0.0], params=[2.0], dense_output=True, norm="max", controller=PI()),
        dict(y0=[1.0, 0.0], params=[2.0], tstops=[0.5, 1.0]),
    ]

    def run(method, case, f):
        return solve(f, (0, 3), method=method, **case)

    for method in ("DOPRI5", "DOP853", "Taylor"):
        fresh = []
        for case in cases:
            own = traced(f.function, n=2, params=1)
            fresh.append(run(method, case, own))
        for order in (range(len(cases)), reversed(range(len(cases)))):
            for k in order:
                again = run(method, cases[k], f)
                assert again.status == fresh[k].status
                assert again.nfev == fresh[k].nfev
                assert np.array_equal(again.t, fresh[k].t)
                assert np.array_equal(again.y, fresh[k].y)


def test_threads_and_nested_runs_have_their_own_engines():
    f = traced(lambda t, y: np.array([y[1], -y[0]]), n=2)
    starts = np.random.default_rng(0).normal(size=(40, 2))
    expected = [solve(f, (0, 10), y0, rtol=1e-9).y[:, -1] for y0 in starts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda y0: solve(f, (0, 10), y0, rtol=1e-9).y[:, -1], starts))
    assert np.array_equal(found, expected)

    def nested(t, y):
        return solve(f, (0, 10), starts[1], rtol=1e-9).y[0, -1] - y[0]

    solution = solve(f, (0, 1), starts[0], rtol=1e-9, events=nested)
    assert np.array_equal(solution.y[:, -1], solve(f, (0, 1), starts[0], rtol=1e-9).y[:, -1])


def test_engines_go_with_their_function():
    f = traced(lambda t, y: -y, n=1)
    solve(f, (0, 1), [1.0])
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None
