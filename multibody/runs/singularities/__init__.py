"""Singular positions along a run: where they are, whether it came through, which runs to review.

Called by problems of closed loops after a run.
"""
