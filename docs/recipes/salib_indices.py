"""SALib makes the sample and the indices, a study does the runs."""

import tempfile

import numpy as np
from SALib.analyze import sobol as analysis
from SALib.sample import sobol as sampling

from featherstep import EventTime, Study

problem = {
    "num_vars": 2,
    "names": ["length", "gravity"],
    "bounds": [[0.9, 1.1], [9.0, 11.0]],
}
sample = sampling.sample(problem, 128, calc_second_order=False, seed=1)
study = Study(
    "pendulum",
    vary=dict(zip(problem["names"], sample.T)),
    start={"bob": 0.01},
    t_span=(0, 1),
    rtol=1e-8,
    record={"quarter": EventTime("bob", direction=-1)},
)
with tempfile.TemporaryDirectory() as folder:
    result = study.run(f"{folder}/pendulum.study", workers=1).columns()
assert (result["status"] == "ok").all()
indices = analysis.analyze(problem, result["quarter"], calc_second_order=False, seed=1)
# The period is 2π√(L/g): both were varied by a tenth, so both bring half of the variance.
assert np.allclose(indices["S1"], 0.5, atol=0.06)
assert np.allclose(indices["ST"], 0.5, atol=0.06)
