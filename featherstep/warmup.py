"""The command ``featherstep warmup``: compile all kernels ahead, for images of a lab's machines."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from typing import Any

import numpy as np

import integrators
import multibody
from integrators import Split, Taylor, solve, traced
from integrators.kernels import OnWorkspace, interpreting
from integrators.kernels import cache as disk
from integrators.kernels.c_functions import CFunction
from integrators.kernels.tiers.tiers import gathered
from multibody import as_ivp, mechanisms

from .options import FAILURE, complain, shown_progress

__all__ = ["all_kernels", "warm_up"]

#: Methods that together need every kernel: a pair, step doubling, each kind of implicit method.
METHODS = (
    *("DOP853", "RK4", "RADAU5", "RadauVariable", "Gauss2", "SDIRK4", "LobattoIIIA3"),
    *("BDF", "Adams", "Rodas5P", "DPRKN6"),
)
FIXED = ("StormerVerlet", "LobattoIIIAB3")  # with fixed steps only


def warm_up(arguments: argparse.Namespace) -> int:
    """Compile what the cache lacks, and say where it is."""
    if interpreting():
        return complain("nothing can be compiled: kernels are interpreted", FAILURE, False)
    folder = disk.place()
    if folder is None:
        return complain("nothing can be kept; set FEATHERSTEP_CACHE to a folder", FAILURE, False)
    functions = all_kernels()
    lacking = [function for function in functions if not function.is_kept]
    with shown_progress("compiling") as report:
        for done, function in enumerate(lacking):
            report(done, len(lacking), function.function.__name__)
            function.build()
        report(len(lacking), len(lacking), "")
    refused = [function for function in functions if not function.is_kept]
    if refused:
        names = ", ".join(map(repr, refused))
        return complain(f"{folder} does not hold the code of {names}", FAILURE, False)
    sys.stdout.write(f"{len(functions)} kernels, {len(lacking)} of them new, in {folder}\n")
    return 0


def all_kernels() -> list[CFunction]:
    """Return all kernels that this package compiles: those of methods, and those on their own."""
    for package in (integrators, multibody):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                if not _is_optional(error):
                    raise
    with gathered() as found:
        _run_a_bit()
    found.update((kernel.c_function, None) for kernel in OnWorkspace.instances)
    return [function for function in found if function.text is not None]


def _is_optional(error: ImportError) -> bool:
    """Whether what cannot be imported is a package that need not be installed."""
    return (error.name or "").split(".")[0] not in ("integrators", "multibody", "numpy", "scipy")


def _run_a_bit() -> None:
    """Run every kind of method, on short spans."""

    def f(t: float, y: np.ndarray) -> np.ndarray:
        return np.array([y[1], -np.sin(y[0])])

    def euler(f, t, y, h):  # type: ignore[no-untyped-def]
        return y + h * f(t, y)

    given: dict[str, Any] = {"t_span": (0.0, 0.1), "y0": [1.0, 0.0], "dense_output": True}
    for method in (*METHODS, Taylor(4), Taylor("auto")):
        solve(f, method=method, **given)
    solve(f, method=euler, step=0.05, **given)
    solve(Split(lambda t, y: 0 * y, f), method="ARK324IMEX", **given)
    for name in FIXED:
        solve(f, method=name, step=0.05, **given)
    solve(traced(f, n=2), method="DOP853", **given)
    kinked = traced(lambda t, y: np.array([abs(y[1]), -y[0]]), n=2)
    solve(kinked, method=Taylor(4), **given)
    top = mechanisms.spinning_top()
    solve(as_ivp(top, t_span=(0.0, 0.1)), method="RKMK5", dense_output=True)
