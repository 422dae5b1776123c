"""Linear systems (M − γJ) x = r of implicit methods: patterns, factorisations, Krylov spaces.

Which of them serves a problem is decided in :mod:`.choice`; the loop of an implicit method sees
none of it (``runge_kutta.implicit.algebra`` answers its calls).
"""

from .choice import (
    BandedPart,
    BlockJacobi,
    IncompleteLU,
    LinearChoice,
    check_linear,
    linear_choice,
)

__all__ = [
    "BandedPart",
    "BlockJacobi",
    "IncompleteLU",
    "LinearChoice",
    "check_linear",
    "linear_choice",
]
