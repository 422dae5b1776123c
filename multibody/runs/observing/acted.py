"""Which forces acted along a run: what its problem was made with, for those who look at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..forces import forces_at

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["Observing", "acted_along"]


@dataclass(frozen=True, eq=False)
class Observing:
    """What :class:`integrators.IVP` takes as ``observe``, of a mechanism under forces.

    Attributes
    ----------
    see
        ``see(solution, model, tau, f_ext)`` returns what is to be seen.
    model, tau, f_ext
        As in :func:`~multibody.as_ivp`. Constant forces are parameters of the problem, and a
        run may have had others.
    as_it_was
        ``as_it_was(solution, before)``: model whose elements do what they did in a run, where they
        do not by themselves; at instants in which that jumps, before or after them.
    """

    see: Callable[..., Any]
    model: Model
    tau: Any = None
    f_ext: Any = None
    as_it_was: Callable[[Any, bool], Model] | None = None

    def __call__(self, *given: Any) -> Any:
        """What is to be seen along a solution, the last argument."""
        model = self.model if self.as_it_was is None else self.as_it_was(given[-1], False)
        return self.see(*given, model, *self.forces(given[-1].problem.params))

    def forces(self, params: Any) -> tuple[Any, Any]:
        """Joint forces and external forces of runs with these parameters."""
        return forces_at(self.tau, self.f_ext, params)


def acted_along(
    model: Model, solution: Any, tau: Any = None, f_ext: Any = None, before: bool = False
) -> tuple[Model, Any, Any]:
    """The model, and the forces that acted along a run of it; those that are given come first.

    Of states alone, without a problem, nothing but what is given acts.
    """
    problem = getattr(solution, "problem", None)
    if isinstance(problem, str) and tau is None and f_ext is None:
        raise ValueError(
            "the solution has lost its problem (it comes from a file or a pickle), so that the "
            "forces are not known; give it again, Solution.load(path, problem=...) or "
            "solution.with_problem(...), or say tau and f_ext (zeros, if nothing acted)"
        )
    params = getattr(problem, "params", ())
    if (modes := getattr(problem, "contact_modes", None)) is not None:
        params, problem = modes.free.params if params is None else params, modes.free
    observe = getattr(problem, "observe", None)
    if not isinstance(observe, Observing):
        observe = getattr(getattr(problem, "mechanical", None), "observing", None)
    if not isinstance(observe, Observing):
        return model, tau, f_ext
    if observe.as_it_was is not None:
        model = observe.as_it_was(solution, before)
    known = observe.forces(params)
    return model, known[0] if tau is None else tau, known[1] if f_ext is None else f_ext
