"""Solvers of other packages behind our ``solve``: SciPy's and Assimulo's.

Imports stepping and the systems of ``dae``.
"""
