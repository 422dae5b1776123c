"""Analysis of problems: Lipschitz constants, existence, expansions, stiffness.

Imports problems, tracing, and solvers for what needs a solution.
"""
