"""Large right-hand sides: traced an array at a time, run as loops.

A formula of thousands of components is a few formulas of single ones, each for a range of
components. :mod:`.blocks` runs the function on arrays of node numbers, :mod:`.columns` keeps the
nodes, :mod:`.templates` finds the formulas and where each holds, :mod:`.program` evaluates and
differentiates them, :mod:`.code` makes machine code of them.
"""
