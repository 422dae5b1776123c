"""Implicit Runge–Kutta methods: stages, Newton's iteration, error estimates, dense output.

Imports stepping, tableaux and the linear systems of :mod:`..linear`.
"""
