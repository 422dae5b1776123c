"""Derivatives of inverse and forward dynamics, by recursions along the tree.

Imports the dynamics of trees.
"""
