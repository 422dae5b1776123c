"""Keeping a study on disk: its folder, its table, its trajectories, results of some runs.

Imports nothing of the study but what is kept.
"""
