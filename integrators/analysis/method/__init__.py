"""Analysis of methods: order, stability, geometry, and a report of it all.

Imports tableaux; only ``check`` solves anything.
"""
