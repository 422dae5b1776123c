"""Stand-ins for floats and arrays that record what NumPy code does to them.

Knows the graph and nothing of what is made from it.
"""
