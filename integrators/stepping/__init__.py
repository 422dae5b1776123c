"""Stepping: what every method shares. The loop, its state, step-size control, dense output.

Imports kernels, tracing, tableaux and problems; knows no method.
"""
