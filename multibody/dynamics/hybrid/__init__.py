"""Hybrid dynamics: forces of some freedoms given, accelerations of others (book, §9.1–9.2).

`articulated` and `composite` are the two algorithms for trees, `closed` the one for loops;
`selection` declares the arrays that they need besides those of a tree, `functions` has what users
call. Imports the dynamics of trees and loops.
"""
