"""The command ``featherstep warmup``: compile all kernels ahead, for images of a lab's machines."""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import pkgutil
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import integrators
import multibody
from integrators import Split, Taylor, solve, traced
from integrators.kernels import OnWorkspace, interpreting
from integrators.kernels import cache as disk
from integrators.kernels.c_functions import CFunction, from_text
from integrators.kernels.tiers.tiers import gathered
from integrators.processors import available_processors
from multibody import as_ivp, mechanisms

from .options import FAILURE, complain, shown_progress

__all__ = ["all_kernels", "warm_up"]

#: Methods that together need every kernel: a pair, step doubling, each kind of implicit method.
METHODS = (
    *("DOP853", "RK4", "RADAU5", "RadauVariable", "Gauss2", "SDIRK4", "LobattoIIIA3"),
    *("BDF", "Adams", "Rodas5P", "DPRKN6"),
)
FEW = 4  # kernels for which starting another process does not pay
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
        for done, name in enumerate(_compiled(lacking, arguments.workers)):
            report(done, len(lacking), name)
        report(len(lacking), len(lacking), "")
    refused = [function for function in functions if not function.is_kept]
    if refused:
        names = ", ".join(map(repr, refused))
        return complain(f"{folder} does not hold the code of {names}", FAILURE, False)
    sys.stdout.write(f"{len(functions)} kernels, {len(lacking)} of them new, in {folder}\n")
    return 0


def _compiled(functions: list[CFunction], workers: int | None) -> Iterator[str]:
    """Compile kernels, in several processes where that pays; yields their names as they come."""
    wanted = available_processors() if workers is None else workers
    workers = min(wanted, len(functions) // FEW)
    if workers < 2:
        for function in functions:
            yield function.function.__name__
            function.build()
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_compiled_elsewhere, [str(f.text) for f in functions])


def _compiled_elsewhere(text: str) -> str:
    """Compile one kernel, in a process of its own, into the cache."""
    function = from_text(text)
    function.build()
    return function.function.__name__


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
