"""Stepping: what every method shares. The loop, its state, control, events, runs and solutions.

Imports kernels, tracing and problems; knows no method.
"""
