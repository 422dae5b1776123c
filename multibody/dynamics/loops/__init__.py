"""Closed loops: gaps, constraint forces, assembly, independent coordinates (book, chapter 8).

Imports the dynamics of trees.
"""
