"""From a right-hand side to machine code: Pleiades (28 equations), first and second process.

    python benchmarks/start.py

Each measurement is a process of its own; the first finds an empty cache, the others what it left.
Importing NumPy, this package and LLVM's binding is timed apart.
"""

import os
import subprocess
import sys
import tempfile

SCRIPT = """
import time
start = time.perf_counter()
import llvmlite.binding
llvm = time.perf_counter()
from integrators import problems, traced
problem = problems.get("Pleiades")
f = getattr(problem.f, "function", problem.f)
imported = time.perf_counter()
traced_f = traced(f, n=28)
traced_f.graph
graph = time.perf_counter()
traced_f.machine_code()
code = time.perf_counter()
times = (llvm - start, imported - llvm, graph - imported, code - graph, code - imported)
print(" ".join(str(1e3 * t) for t in times))
"""


def measure(cache):
    environment = {**os.environ, "FEATHERSTEP_CACHE": cache}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True, text=True
    )
    return [float(x) for x in run.stdout.split()]


if __name__ == "__main__":
    print("ms             LLVM  package    trace     code    trace and code")
    with tempfile.TemporaryDirectory() as cache:
        for label in ("first process", *["later process"] * 4):
            print(f"{label}", *(f"{t:8.1f}" for t in measure(cache)))
