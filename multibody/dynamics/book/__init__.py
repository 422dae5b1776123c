"""Algorithms to read, and to check the fast ones by: oracles, maximal coordinates, handles.

Imports the dynamics of trees and loops.
"""
