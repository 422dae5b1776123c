"""Methods for mechanical systems with constraints: half-explicit, generalized-α.

Imports stepping, tableaux and the systems of ``dae``.
"""
