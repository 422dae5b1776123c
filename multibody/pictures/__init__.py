"""Pictures: stick figures, plots, animations.

Imports runs; nothing imports this.
"""
