"""A mode of contact, which looks at the state where it is entered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators import IVP, Mode, Transition

from ...contact.held import Held

if TYPE_CHECKING:
    from .watching import Watch

__all__ = ["ContactMode"]


class ContactMode(Mode):
    """A :class:`~integrators.Mode` whose events are given room where it is entered."""

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
