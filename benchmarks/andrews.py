"""Andrews' squeezer (A03) in every formulation: steps and correct digits of β at 0.03 s.

    python benchmarks/andrews.py

Beside them stands what the IVP test set (Mazzia and Magherini, release 2.4) prints for RADAU on the
index-3 form. Digits are counted against a solution in quadruple precision: the test set's own
reference has about ten.
"""

import os

import numpy as np

from integrators import solve
from multibody import as_dae, mechanisms

os.environ["FEATHERSTEP_COMPILE"] = "first"  # times of interpreted kernels mean nothing

BETA = 15.8107711951537070971
PUBLISHED = "RADAU (published)    index3              1e-07     114             4.45"
RUNS = [
    ("RADAU5", ("index3", "index2", "ggl", "overdetermined")),
    ("RadauVariable", ("index3", "ggl")),
    ("DOP853", ("index1", "baumgarte", "projected", "minimal", "augmented")),
]


def main():
    entry = mechanisms.entry("andrews")
    model = entry.model()
    q, v = entry.start(model)
    beta = model.number("K1") - 1
    print("method               formulation          rtol    steps  rejected  digits of β")
    print(PUBLISHED)
    for method, formulations in RUNS:
        for formulation in formulations:
            for rtol in (1e-7, 1e-10):
                problem = as_dae(model, q, v, (0.0, 0.03), formulation=formulation)
                run = solve(problem, method=method, rtol=rtol, atol=rtol)
                found = "failed: " + run.status.name
                if run.success:
                    found = f"{-np.log10(abs(run.y[beta, -1] / BETA - 1.0)):.2f}"
                print(
                    f"{method:20} {formulation:18} {rtol:6.0e} {run.nsteps:7} {run.nrejected:9}"
                    f"  {found:>8}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
