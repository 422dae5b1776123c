"""SciPy's optimisers on a study: a length and a mass from two measured values."""

import numpy as np
from scipy.optimize import least_squares

from featherstep import EventTime, Max, Study, reaction

study = Study(
    "pendulum",
    vary={"length": [1.0], "mass": [1.0]},  # any row: evaluate() brings its own
    start={"bob": np.pi / 2},
    t_span=(0, 2),
    rtol=1e-10,
    atol=1e-12,
    record={"pull": Max(reaction("bob")), "quarter": EventTime("bob", direction=-1)},
)
measured = study.evaluate({"length": 1.3, "mass": 0.7})


def misfit(x):
    """Relative differences from what was measured."""
    run = study.evaluate({"length": x[0], "mass": x[1]})
    return [run[name][0] / measured[name][0] - 1.0 for name in ("pull", "quarter")]


found = least_squares(misfit, [1.0, 1.0], diff_step=1e-4)
assert np.allclose(found.x, [1.3, 0.7], rtol=1e-5)
assert np.isclose(measured["pull"][0], 3.0 * 0.7 * 9.81, rtol=1e-6)  # three times the weight
