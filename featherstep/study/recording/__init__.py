"""What is recorded along a run, and the numbers that it is reduced to.

Imports ``multibody`` and ``integrators``, nothing that does runs.
"""
