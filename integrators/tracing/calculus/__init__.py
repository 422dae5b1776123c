"""What is derived from a graph: derivatives, Taylor series, bounds, dependence.

Programs in, programs or bounds out; no machine code.
"""
