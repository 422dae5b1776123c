"""Motions with several laws: modes and the transitions between them.

:class:`Hybrid` is data, as an IVP is; ``solve`` takes it (``integrators.runs.hybrid_run`` does the
work). May import ``problem`` and what lies below it.
"""

from .modes import Hybrid, Mode, Resumed, Transition

__all__ = ["Hybrid", "Mode", "Resumed", "Transition"]
