"""Stability of methods: the function R(z), linear and nonlinear stability, oscillations.

Imports tableaux and :mod:`..verdict`; solves nothing.
"""
