"""Equations whose structure lies, rewritten so that it does not.

Imports the pattern and the equations; the system calls it.
"""
