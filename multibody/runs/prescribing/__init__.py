"""Freedoms whose motion is prescribed in a run, and instants at which it jumps.

Built on hybrid dynamics.
"""
