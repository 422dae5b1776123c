"""Runs: models as initial value problems and DAEs, simulated, observed, judged.

The only folder that imports solvers of ``integrators``.
"""
