"""Jumps of the state, whichever way they are integrated and looked at: combinations at random."""

import numpy as np
import pytest

from integrators import IVP, Event, Solution, groups, solve, solve_many, traced

METHODS = {
    "DOPRI5": {},
    "BS23": {"rtol": 1e-5},
    "RADAU5": {},
    "SDIRK4": {},
    "Taylor": {},
    "RK4": {"step": 0.17},
    "MuntheKaas(RK4)": {"step": 0.13},
    "scipy:RK45": {},
    "scipy:BDF": {"rtol": 1e-7},
}

#: y = (t − t₀, 1 + t² − t₀²) and jumps of 10: no method errs by more at these tolerances.
ERROR = 1e-3

PLACES = (0.25, 0.5, 0.75, 1.0)  # of jumps, the end included
TIMES = (0.0, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 1.0)


def drawn(count=36):
    rng = np.random.default_rng(11)
    for k in range(count):
        places = tuple(sorted(rng.choice(PLACES, int(rng.integers(1, 4)), replace=False)))
        sign, start = float(rng.choice([1, -1])), float(rng.choice([0.0, 0.7]))
        yield list(METHODS)[k % len(METHODS)], sign, start, places, bool(rng.integers(2))


@pytest.mark.parametrize(("method", "sign", "start", "places", "trace"), list(drawn()))
def test_jumps_in_every_output(method, sign, start, places, trace, tmp_path):
    def f(t, y):
        return np.array([1.0 + 0 * y[0], 2 * t + 0 * y[0]])

    f = traced(f, n=2) if trace or method == "Taylor" else f
    jumps, times = start + sign * np.array(places), start + sign * np.array(TIMES)

    def surface(at):
        def g(t, y):
            return t - at + 0 * y[0]

        return traced(g, n=2, outputs=1) if trace else g

    def exact(t):
        passed = 10.0 * np.count_nonzero(sign * (t - jumps) >= 0)
        return np.array([t - start, 1 + t**2 - start**2]) + passed

    events = [Event(surface(at), reset=lambda t, y: y + 10.0) for at in jumps]
    problem = IVP(f, [0.0, 1.0], (start, start + sign), events=events)
    if method.startswith("MuntheKaas"):
        problem = problem.with_(manifold=groups.euclidean(2).manifold(f))
    options = {"method": method, **METHODS[method]}
    expected = np.array([exact(t) for t in times]).T
    run = solve(problem, t_eval=times, dense_output=True, **options)
    assert run.success, run.message
    np.testing.assert_allclose(run.y, expected, atol=ERROR)
    np.testing.assert_allclose(run.sol(times), expected, atol=ERROR)
    assert run.reached[1] == pytest.approx(expected[:, -1], abs=ERROR)
    assert [t.tolist() for t in run.t_events] == [[pytest.approx(at, abs=1e-12)] for at in jumps]
    plain = solve(problem, **options)
    assert plain.y[:, -1] == pytest.approx(expected[:, -1], abs=ERROR)
    if not method.startswith("MuntheKaas"):  # the functions of a manifold are not kept in files
        run.save(tmp_path / "run.npz")
        again = Solution.load(tmp_path / "run.npz").sol(times)
        np.testing.assert_array_equal(again, run.sol(times))
    if not method.startswith(("MuntheKaas", "scipy")):
        many = solve_many(problem, y0=[[0.0, 1.0]] * 2, t_eval=times, **options)
        np.testing.assert_allclose(many.y_eval[1], expected, atol=ERROR)
        np.testing.assert_allclose(many.y[1], expected[:, -1], atol=ERROR)
