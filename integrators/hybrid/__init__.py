"""Motions with several laws: modes and the transitions between them.

:class:`Hybrid` is data, as an IVP is; ``solve`` takes it (``runs.hybrid.hybrid_run`` does the
work). :class:`~.switch.Switch` is a right-hand side that jumps at a surface; :mod:`.filippov` makes
modes of it, :mod:`.kinks` finds surfaces in traced functions. May import ``problem`` and what lies
below it.
"""

from .modes import AfterReset, Exit, Hybrid, Mode, Resumed, Transition

__all__ = ["AfterReset", "Exit", "Hybrid", "Mode", "Resumed", "Transition"]
