"""Doing the runs: where results come from, who does the work, and that nothing is lost.

Imports plans and what is kept; executors know nothing of mechanisms.
"""
