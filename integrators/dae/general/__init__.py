"""General differential-algebraic equations F(t, y, ẏ, ÿ, …) = 0.

:class:`DAE` traces the equations; from the pattern of derivatives in them follow index,
freedoms and hidden constraints (:mod:`.pattern`), from the derivative array
consistent starts (:mod:`.start`) and several roads to a solution. See ``docs/general-dae.md``.
"""

from .pattern.structure import Structure, StructureError
from .roads.problem import DAEProblem
from .roads.table import ROADS
from .start import Start
from .system import DAE

__all__ = ["DAE", "ROADS", "DAEProblem", "Start", "Structure", "StructureError"]
