"""Mobility by counting joints, without any position (book, Eq 8.52–8.55).

With n_tot freedoms in all joints, those of loops included, and N_L loops,

    mobility = n_tot − 6 N_L + (n^c − r),

where n^c − r is how much the mechanism is overconstrained. Counting takes it for zero: right for
mechanisms that are properly constrained, too small for others. A planar mechanism is
overconstrained in space (its hinges keep the plane, each of them), but not in its plane, where
each loop takes three freedoms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["MobilityCount", "count_mobility"]


class MobilityCount(NamedTuple):
    """What counting tells: freedoms of all joints, independent loops, dimensions."""

    freedoms: int
    loops: int
    planar: bool = False

    @property
    def mobility(self) -> int:
        """n_tot − 6 N_L, or − 3 N_L in the plane: the mobility if nothing is overconstrained."""
        return self.freedoms - (3 if self.planar else 6) * self.loops

    def overconstraint(self, mobility: int) -> int:
        """n^c − r of a mechanism that is known to have a mobility; negative: it is underestimated.

        In the plane the count is that of the constraints within it.
        """
        return mobility - self.mobility


def count_mobility(model: Model, planar: bool = False) -> MobilityCount:
    """Count freedoms and loops of a mechanism (the formula of Chebyshev, Grübler and Kutzbach).

    Parameters
    ----------
    model
        Loops as they are closed; each loop joint is one loop.
    planar
        Whether all motion is in parallel planes, so that each loop takes three freedoms.

    See Also
    --------
    mobility : the mobility at a position, by the rank of its constraints.

    Examples
    --------
    A four-bar linkage in its plane; in space it seems to be a structure:

    >>> from multibody import mechanisms
    >>> count_mobility(mechanisms.four_bar(), planar=True).mobility
    1
    >>> count_mobility(mechanisms.four_bar()).mobility
    -2
    """
    if model.constraints:
        raise ValueError(
            f"count_mobility: expected joints only, received the constraint "
            f"{model.constraints[0].name!r}, whose effect cannot be counted; use mobility(model, q)"
        )
    freedoms = model.nv + sum(loop.joint.nv for loop in model.loops)
    return MobilityCount(freedoms, len(model.loops), bool(planar))
