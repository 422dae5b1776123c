"""Methods for y = (q, v): symplectic splittings, Nyström pairs, partitioned Runge–Kutta methods.

Imports stepping.
"""
