"""Two tiers of kernels: interpreted at once, machine code when a process beside has made it.

Knows processes; what is compiled and cached is next door.
"""
