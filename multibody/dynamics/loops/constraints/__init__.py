"""What loops ask for: gaps δ, rows K, ν and γ, of loop joints and of constraints by functions.

Imports the dynamics of trees.
"""
