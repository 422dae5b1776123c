"""The roads from a DAE and a consistent start to a problem that ``solve`` takes.

One file a road; ``table`` lists them, ``problem`` is what they return.
"""
