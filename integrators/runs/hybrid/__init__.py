"""Runs through the modes of a hybrid problem, and one Solution out of them.

Built on runs within a mode.
"""
