"""A mode of contact, which looks at the state where it is entered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators import IVP, Mode, Transition

from ...contact.held import Held

if TYPE_CHECKING:
    from .watching import Watch

__all__ = ["ContactMode", "Ending"]


@dataclass(frozen=True)
class Ending(Transition):
    """What ends a mode of contact; `gap` says of which point a gap is watched, −1 for none.

    Gaps that are open, and all else, which has room where the mode is entered, do not vanish there.
    """

    gap: int = -1
    watch: Any = None

    def near_at_entry(self, t: float, y: Any) -> bool:
        """Whether a gap is closed."""
        return self.gap >= 0 and bool(self.watch.now.closed[self.gap])


class ContactMode(Mode):
    """A :class:`~integrators.Mode` whose events are given room where it is entered."""

    #: Bounces below what the tolerances tell form no series; `ContactModes` sees whether all rests.
    judges_piles = True

    def __init__(
        self,
        problem: IVP,
        transitions: Sequence[Transition],
        zeno: str,
        held: Held,
        watch: Watch,
    ) -> None:
        super().__init__(problem, transitions, zeno=zeno)
        self.held, self.watch = held, watch

    def ivp(self, t: float, y: Any, t1: float, params: Any = None) -> IVP:
        """The problem of this mode from (t, y) on."""
        problem = super().ivp(t, y, t1, params)
        self.watch.enter(self.held, t, np.asarray(y, dtype=float), problem.params)
        return problem
