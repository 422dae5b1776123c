"""Runge–Kutta methods, explicit and implicit, from any tableau; Radau with variable order.

Imports stepping, tableaux and tracing.
"""
