"""Analysis of errors: bounds, local and global estimates, measures.

Imports problems, methods and ``solve``.
"""
