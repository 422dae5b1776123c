"""Analysis of DAEs: orders of components, drift, perturbation index, roads side by side.

Built on the studies next door.
"""
