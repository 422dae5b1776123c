"""General differential-algebraic equations F(t, y, ẏ, ÿ, …) = 0.

:class:`DAE` traces the equations; from the pattern of derivatives in them follow index,
freedoms and hidden constraints (:mod:`.signature`, :mod:`.structure`), from the derivative array
consistent starts (:mod:`.start`) and several roads to a solution. See ``docs/general-dae.md``.
"""

from .problem import DAEProblem
from .roads import ROADS
from .start import Start
from .structure import Structure, StructureError
from .system import DAE

__all__ = ["DAE", "ROADS", "DAEProblem", "Start", "Structure", "StructureError"]
