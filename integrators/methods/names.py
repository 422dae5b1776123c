"""Methods by name: from whatever a user calls a method to something bound to a problem."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..errors import suggest
from ..problem import IVP
from ..stepping.engine import Options, Stepper
from ..tableau import Tableau
from ..tableau.additive import Additive
from ..tableau.partitioned import Nystrom, Partitioned, Splitting
from ..tableau.rosenbrock import Rosenbrock

__all__ = ["bound", "check_with_sensitivities", "chosen_method", "method_name", "named_method"]


OTHERS = ["auto", "BDF", "NDF", "Adams", "RadauVariable", "Taylor"]  # that are no tableaux


def method_name(method: Any) -> str:
    """Return a name for tables and messages."""
    if method is None:
        return "auto"
    if isinstance(method, str):
        return method
    return getattr(method, "name", "") or getattr(method, "__name__", "") or type(method).__name__


def chosen_method(method: Any) -> Any:
    """Return the method behind a name, "auto" for None; Assimulo's are known by name only."""
    if method is None:
        method = "auto"
    if not isinstance(method, str) or method.lower().startswith("assimulo:"):
        return method
    if method in _tableaux:
        return _tableaux[method]
    chosen = named_method(method)
    if isinstance(chosen, Tableau) and not method.endswith((".toml", ".json")):
        _tableaux[method] = chosen  # a file may change, the catalogue does not
    return chosen


_tableaux: dict[str, Tableau] = {}


def bound(method: Any, ivp: IVP, options: Options) -> Stepper:
    """Bind whatever the user calls a method to the problem."""
    if isinstance(method, str):
        from .external.assimulo_dae import assimulo_engine

        return assimulo_engine(method.split(":", 1)[1], ivp, options)
    if isinstance(method, Tableau):
        return _engine_for()(method, ivp, options)
    if isinstance(method, Splitting | Nystrom | Partitioned):
        from .partitioned import engine

        return engine.engine_for(method, ivp, options)
    if isinstance(method, Additive):
        from .imex import engine as additive_engine

        return additive_engine.engine_for(method, ivp, options)
    if isinstance(method, Rosenbrock):
        from .rosenbrock.engine import engine_for

        return engine_for(method, ivp, options)
    if isinstance(method, type) and _is_scipy_solver(method):
        from .external.scipy import ScipyEngine

        return ScipyEngine(method, ivp, options)
    if isinstance(method, type):
        raise TypeError(f"{method.__name__} is a class; pass an instance, {method.__name__}()")
    if hasattr(method, "bind"):
        return method.bind(ivp, options)
    if callable(getattr(method, "step", None)) and hasattr(method, "order"):
        from .user import CustomEngine

        return CustomEngine(method, ivp, options)
    from .user.plain_function import StepFunction, is_step_function

    if is_step_function(method):
        from .user import CustomEngine

        return CustomEngine(StepFunction(method), ivp, options)
    raise TypeError(
        f"method must be a name, a Tableau, a function step(f, t, y, h), an object with `order` "
        f"and `step(f, t, y, h)`, or a SciPy OdeSolver class; got {method!r}"
    )


@cache
def _engine_for() -> Callable[..., Stepper]:
    from .runge_kutta.engine import engine_for  # kernels are loaded when they are needed

    return engine_for


def check_with_sensitivities(method: Any) -> None:
    """Refuse methods for problems of one form, which the problem with its sensitivities has not."""
    if isinstance(method, Splitting | Nystrom | Additive):
        form = "f = f_E + f_I" if isinstance(method, Additive) else "y = (q, v)"
        raise ValueError(
            f"{method_name(method)} is for {form}, and the equations of sensitivities beside those "
            "of the state do not have that form; take DOP853, RADAU5 or Rodas5P"
        )


def named_method(name: str) -> Any:
    """Return a method by name: one of the catalogue, or one that is no tableau."""
    plain = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    if plain in ("auto", "automatic"):
        from .automatic import Automatic

        return Automatic()
    if plain == "radauvariable":
        from .runge_kutta.radau_variable import VariableRadau

        return VariableRadau()
    if plain in ("bdf", "ndf", "adams"):
        from .multistep.variable import BDF, Adams

        return Adams() if plain == "adams" else BDF(numerical=plain == "ndf")
    order = plain[6:].strip("()")
    if plain.startswith("taylor") and (order.isdigit() or order in ("", "auto")):
        from .taylor import Taylor

        return Taylor(int(order) if order.isdigit() else order or None)
    if plain.startswith(("munthekaas", "rkmk")):
        from .lie import MuntheKaas

        return MuntheKaas.from_name(name)
    if plain.startswith(("hem", "halfexplicit", "generalizedalpha", "generalisedalpha")):
        from .mechanical.names import constrained_method

        return constrained_method(name)
    if plain == "moreaujean":
        raise ValueError(
            "MoreauJean steps models with rigid contacts (multibody.as_ivp of a model with "
            "add_contact), and this problem has none; name another method"
        )
    if plain.startswith("scipy:"):
        return _scipy_solver(name.split(":", 1)[1].strip())
    if plain != "bdf1":  # that is the catalogue's implicit Euler method, which controls its steps
        from .multistep.names import find_multistep

        if (found := find_multistep(name)) is not None:
            return found
    from ..catalogue import method_of

    try:
        return method_of(name)
    except ValueError as error:
        if plain == "lsoda":
            other = "; method='auto' does what LSODA is for, 'scipy:LSODA' is SciPy's"
        else:
            other = suggest(name, OTHERS)
            if "did you mean" in str(error):
                other = other.replace("did you mean", "or, of other families,")
        raise ValueError(f"{error}{other}") from None if other else error


def _scipy_solver(name: str) -> type:
    """Return a solver class of scipy.integrate, whatever the case of the name."""
    import scipy.integrate

    known = {
        key: value
        for key, value in vars(scipy.integrate).items()
        if isinstance(value, type) and _is_scipy_solver(value)
    }
    known.pop("OdeSolver")
    for key, value in known.items():
        if key.lower() == name.lower():
            return value
    raise ValueError(
        f"scipy.integrate has no solver class {name!r}{suggest(name, list(known))} "
        f"(it has {', '.join(sorted(known))})"
    )


def _is_scipy_solver(method: type) -> bool:
    from scipy.integrate import OdeSolver

    return issubclass(method, OdeSolver)


__all__ += ["method_name", "named_method"]
