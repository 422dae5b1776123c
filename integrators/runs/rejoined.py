"""A solution from a file, or a pickle, and its problem, which these leave out."""

from __future__ import annotations

import copy
from typing import Any

from ..manifold import Retraction, lost

__all__ = ["rejoined"]


def rejoined(solution: Any, problem: Any) -> Any:
    """The same solution with a problem, if it can be one of that.

    Raises
    ------
    ValueError
        If its name, its states or their number are others.
    """
    if not hasattr(problem, "y0"):
        raise TypeError(f"problem: expected the IVP or Hybrid that was solved, got {problem!r:.80}")
    own = {
        "name": solution.problem if isinstance(solution.problem, str) else "",
        "names of states": tuple(solution.kept_names),
        "number of states": len(solution.y),
    }
    given = {
        "name": str(getattr(problem, "name", "")),
        "names of states": tuple(getattr(problem, "state_names", ())),
        "number of states": getattr(problem, "n", None),
    }
    for what, is_own in own.items():
        if is_own and given[what] and is_own != given[what]:
            raise ValueError(
                f"problem: the solution is one of another problem: its {what} is {is_own!r:.100}, "
                f"the given problem's {given[what]!r:.100}"
            )
    found = copy.copy(solution)
    found.problem = problem
    for made in ("observed", "quality"):
        found.__dict__.pop(made, None)
    manifold = getattr(problem, "manifold", None)
    if getattr(found.sol, "move", None) is lost and manifold is not None:
        found.sol = copy.copy(found.sol)
        found.sol.move = Retraction(manifold.retract)
    return found
