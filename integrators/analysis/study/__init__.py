"""Studies: convergence, work against precision, and what their numbers mean.

Imports the other parts of the analysis.
"""
