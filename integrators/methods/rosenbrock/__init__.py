"""Rosenbrock and W-methods: linear systems in place of Newton's iterations.

Imports stepping, and the linear algebra of the Runge–Kutta family.
"""
