"""What may differ from run to run, and what is kept of runs without their trajectories."""

import numpy as np
import pytest

from integrators import IVP, Event, solve, solve_many, traced
from integrators.many import EventTime, Final, Integral, Largest, Mean, Smallest, ValueAt

SWING = traced(lambda t, y, p: [y[1], -p[0] * y[0]], n=2, params=1)
HEIGHT = traced(lambda t, y, p: y[0], n=2, params=1, outputs=1)
START = np.array([[1.0, 0.0], [0.5, 0.0], [2.0, 1.0], [1.5, -0.5], [0.3, 0.3]])
RATES = np.linspace(1.0, 4.0, 5)[:, None]
REDUCE = {
    "largest": Largest(lambda t, y: y[0]),
    "smallest": Smallest(lambda t, y, p: p[0] * y[0]),
    "integral": Integral(lambda t, y: y[0]),
    "mean": Mean(lambda t, y: y[0] * y[0]),
    "final": Final(lambda t, y: y[1]),
    "at 0.7": ValueAt(lambda t, y: y[0] + t, 0.7),
    "zero": EventTime(0),
}


def exact(w, y0, t):
    """y₀ and its integral, of ÿ = −w² y."""
    a, b = y0[0], y0[1] / w
    value = a * np.cos(w * t) + b * np.sin(w * t)
    return value, (a * np.sin(w * t) - b * (np.cos(w * t) - 1.0)) / w


@pytest.mark.parametrize("method", ["DOP853", "Tsit5", "RADAU5"])
def test_reductions_are_those_of_the_exact_motion(method):
    problem = IVP(SWING, START[0], (0.0, 3.0), params=[1.0], events=Event(HEIGHT))
    tight = {"rtol": 1e-11, "atol": 1e-13}
    many = solve_many(problem, y0=START, params=RATES, method=method, reduce=REDUCE, **tight)
    assert many.y_eval.shape == (5, 2, 0)
    fine = np.linspace(0.0, 3.0, 200_001)
    close = 1e-6 if method == "RADAU5" else 1e-8  # its dense output is of lower order
    for k in range(5):
        w = float(np.sqrt(RATES[k, 0]))
        along, integral = exact(w, START[k], fine)
        got = {name: values[k] for name, values in many.reduced.items()}
        assert got["largest"] == pytest.approx(along.max(), abs=close)
        assert got["smallest"] == pytest.approx(w * w * along.min(), abs=close)
        assert got["integral"] == pytest.approx(integral[-1], abs=close)
        assert got["mean"] == pytest.approx(np.trapezoid(along**2, fine) / 3.0, abs=close)
        assert got["final"] == pytest.approx(many.y[k, 1], abs=1e-14)
        assert got["at 0.7"] == pytest.approx(exact(w, START[k], 0.7)[0] + 0.7, abs=1e-8)
        assert exact(w, START[k], got["zero"])[0] == pytest.approx(0.0, abs=close)
        at = many.reduced_at["largest"][k]
        assert exact(w, START[k], at)[0] == pytest.approx(along.max(), abs=close)


@pytest.mark.parametrize("method", ["DOP853", "BS23"])
def test_reductions_end_with_the_event_that_ends_a_run(method):
    problem = IVP(SWING, START[0], (0.0, 3.0), params=[1.0], events=Event(HEIGHT, terminal=True))
    tight = {"rtol": 1e-9, "atol": 1e-11}
    many = solve_many(
        problem, y0=START[:2], params=RATES[:2], method=method, reduce=REDUCE, **tight
    )
    assert "lanes" in many.engine
    for k in range(2):
        w = float(np.sqrt(RATES[k, 0]))
        assert many.t[k] == pytest.approx(np.pi / 2 / w, abs=1e-7)
        assert many.reduced["zero"][k] == many.t[k]
        assert many.reduced["integral"][k] == pytest.approx(START[k, 0] / w, abs=1e-6)


def test_reductions_do_not_change_the_steps():
    plain = solve_many(SWING, (0.0, 3.0), START, params=RATES, method="DOP853")
    kept = {k: v for k, v in REDUCE.items() if k not in ("zero", "at 0.7")}
    with_ = solve_many(SWING, (0.0, 3.0), START, params=RATES, method="DOP853", reduce=kept)
    assert np.array_equal(plain.nsteps, with_.nsteps)
    assert np.abs(plain.y - with_.y).max() < 1e-13


def test_a_reduction_that_cannot_be_traced_is_done_one_by_one():
    kept = {"top": Largest(lambda t, y: max(float(y[0]), 0.0))}
    many = solve_many(SWING, (0.0, 3.0), START, params=RATES, reduce=kept, rtol=1e-9)
    assert "reduce cannot be traced" in many.engine
    assert many.reduced["top"][0] == pytest.approx(1.0, abs=1e-7)


def test_times_and_tolerances_of_each_run():
    spans = np.array([[0.0, 1.0], [0.5, 3.0], [0.0, 0.1], [1.0, 2.0], [0.0, 2.5]])
    rtols = np.array([1e-4, 1e-6, 1e-8, 1e-10, 1e-5])
    atols = rtols[:, None] * 1e-3
    for step in (None, 0.03):
        options = {} if step is None else {"step": step}
        many = solve_many(
            SWING, spans, START, params=RATES, rtol=rtols, atol=atols, method="DOP853", **options
        )
        assert "lanes" in many.engine
        for k in range(5):
            run = IVP(SWING, START[k], spans[k], params=RATES[k])
            alone = solve(run, rtol=rtols[k], atol=atols[k, 0], method="DOP853", **options)
            assert many.nsteps[k] == alone.nsteps
            assert many.t[k] == spans[k, 1]
            assert np.abs(many.y[k] - alone.y[:, -1]).max() < 1e-12


def test_runs_both_ways_in_time_and_bad_rows():
    spans = np.array([[0.0, 1.0], [1.0, 0.0]])
    many = solve_many(SWING, spans, START[:2], params=RATES[:2], method="DOP853", rtol=1e-9)
    assert "both ways" in many.engine
    for k in range(2):
        w = float(np.sqrt(RATES[k, 0]))
        length = spans[k, 1] - spans[k, 0]
        assert many.y[k, 0] == pytest.approx(exact(w, START[k], length)[0], abs=1e-7)
    with pytest.raises(ValueError, match="t_eval must lie within"):
        solve_many(SWING, [[0, 1], [0, 2]], START[:2], params=RATES[:2], t_eval=[1.5])
    with pytest.raises(ValueError, match="same m"):
        solve_many(SWING, [[0, 1]] * 3, START[:2], params=RATES[:2])
    with pytest.raises(TypeError, match="Largest"):
        solve_many(SWING, (0, 1), START, params=RATES, reduce={"x": lambda t, y: y[0]})
    with pytest.raises(ValueError, match="no event number"):
        solve_many(SWING, (0, 1), START, params=RATES, reduce={"x": EventTime(0)})


def test_engines_of_implicit_methods_are_used_again_without_a_trace_of_the_run_before():
    stiff = traced(lambda t, y, p: [y[1], p[0] * ((1 - y[0] ** 2) * y[1] - y[0])], n=2, params=1)
    rng = np.random.default_rng(4)
    for _ in range(12):
        method = str(rng.choice(["RADAU5", "SDIRK4", "TRBDF2"]))
        options = {"rtol": float(rng.choice([1e-4, 1e-6])), "atol": float(rng.choice([1e-7, 1e-9]))}
        if rng.random() < 0.4:
            options["t_eval"] = [0.0, 0.4, 0.5]
        if rng.random() < 0.3:
            options["step"] = 0.01
        run = IVP(stiff, [2.0, 0.0], (0.0, 0.5), params=[float(rng.uniform(5, 60))])
        used = solve(run, method=method, **options)
        new = traced(stiff.function, n=2, params=1)
        first = solve(run.with_(f=new), method=method, **options)
        assert np.array_equal(used.y, first.y)
        assert (used.nfev, used.nlu, used.nnewton) == (first.nfev, first.nlu, first.nnewton)
