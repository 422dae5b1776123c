"""Exact arithmetic for the analysis of methods: digits that count, polynomials, coefficients.

Imports tableaux only.
"""
