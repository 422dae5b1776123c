"""Runs: everything between the steps and a Solution. Events, endings in words, quality, files.

Imports stepping; ``solve`` puts a method and a run together.
"""
