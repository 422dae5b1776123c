"""What happens at an instant: events, several at once, resets, starts on a surface, Zeno.

Imports stepping; the run calls it between two steps.
"""
