"""Families: mechanisms of one structure, their numbers as parameters of one traced problem.

Problem, starts and tables of all members at once.
"""
