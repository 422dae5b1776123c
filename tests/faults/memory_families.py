"""Memory that runs leave behind: ``python -m tests.faults.memory_families 10000 explicit Taylor``.

Prints, for each family, by how many bytes of C code, objects of Python and resident bytes a run
lets the process grow.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from integrators import IVP, groups, solve, solve_many, traced
from integrators.kernels import cache as cache_on_disk
from multibody import FD, as_dae, as_ivp, mechanisms

START = 1.0 + time.time() % 1.0
WARM = 40  # runs that fill what is kept on purpose, and the allocator's reserves


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def swing(t: float, y: Any) -> Any:
    return [y[1], -y[0]]


@cache
def fast() -> Any:
    return traced(swing, n=2)


@cache
def four_bar(formulation: str) -> Any:
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    q0, v0 = entry.start(model)
    if formulation == "tree":
        return as_ivp(model, q0, v0, (0, 0.02))
    return as_dae(model, q0, v0, (0, 0.02), formulation=formulation)


@cache
def on_manifold() -> Any:
    plane = groups.euclidean(2).manifold(swing)
    return IVP(swing, [1.0, 0.0], (0, 0.1), manifold=plane)


@cache
def robot() -> Any:
    return as_ivp(mechanisms.get("double_pendulum"), [1.0, 0.5], [0.0, 0.0], (0, 0.05))


def span(**options: Any) -> Any:
    return solve(fast(), (0, 1), [1.0, 0.0], **{"rtol": 1e-4, **options})


def new_function(i: int, method: str) -> Any:
    """A function that was never seen before; it is traced, compiled and dropped."""
    rate = START + 1e-6 * i
    f = traced(lambda t, y: [y[1], -rate * y[0]], n=2)
    with mock.patch.object(cache_on_disk, "store"):  # the user's own cache is left alone
        return solve(f, (0, 1), [1.0, 0.0], method=method)


FAMILIES: dict[str, Callable[[int], Any]] = {
    "explicit": lambda i: span(),
    "dense output": lambda i: span(dense_output=True).sol(0.5),
    "events": lambda i: span(events=lambda t, y: y[0]),
    "implicit": lambda i: span(method="RADAU5"),
    "diagonally implicit": lambda i: span(method="SDIRK4"),
    "Taylor": lambda i: span(method="Taylor"),
    "Lie": lambda i: solve(on_manifold(), method="MuntheKaas(RK4)", step=0.05),
    "user function": lambda i: solve(swing, (0, 0.2), [1.0, 0.0], rtol=1e-3),
    "another user function": lambda i: solve(
        lambda t, y: [y[1], -y[0]], (0, 0.2), [1.0, 0.0], method="RADAU5", rtol=1e-3
    ),
    "SciPy": lambda i: solve(swing, (0, 0.2), [1.0, 0.0], method="scipy:RK45", rtol=1e-3),
    "solve_many": lambda i: solve_many(fast(), (0, 1), np.ones((4, 2)), rtol=1e-4),
    "mechanism": lambda i: solve(robot(), rtol=1e-4).message,
    "closed loop": lambda i: solve(four_bar("tree"), rtol=1e-3),
    "DAE": lambda i: solve(four_bar("index3"), method="RADAU5", rtol=1e-3),
    "half explicit": lambda i: solve(four_bar("index2"), method="HEM4", step=0.01),
    "generalized alpha": lambda i: solve(four_bar("index3"), method="GeneralizedAlpha", step=0.01),
    "model": lambda i: FD(mechanisms.get("pendulum"), [1.0], [0.0]),
    "new function": lambda i: new_function(i, "DOPRI5"),
    "new function, implicit": lambda i: new_function(i, "RADAU5"),
}


class _Mallinfo(ctypes.Structure):
    """What glibc tells of its memory (``man mallinfo2``)."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
            *("uordblks", "fordblks", "keepcost"),
        )
    )


def allocated() -> int:
    """Bytes that C code holds, exactly; -1 where nobody tells. (Resident ones depend on holes.)"""
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return -1
    ask.restype = _Mallinfo
    found = ask()
    return int(found.uordblks + found.hblkhd)


@dataclass(frozen=True)
class Growth:
    """By what a run of a family lets the process grow: bytes of C, objects of Python, pages."""

    allocated: float
    objects: float
    resident: float


def growth(name: str, count: int) -> Growth:
    """Measure a family, after some runs that warm it up."""
    family = FAMILIES[name]
    for i in range(WARM):
        family(i)
    gc.collect()
    before = allocated(), sys.getallocatedblocks(), resident()
    for i in range(count):
        family(WARM + i)
    gc.collect()
    after = allocated(), sys.getallocatedblocks(), resident()
    return Growth(*((now - then) / count for now, then in zip(after, before)))


def main() -> None:
    """Measure the families that the arguments name, or all."""
    count, *names = sys.argv[1:] or ["1000"]
    for name in names or FAMILIES:
        found = growth(name, int(count))
        sys.stdout.write(
            f"{found.allocated:10.1f} {found.objects:8.2f} {found.resident:10.1f}  {name}\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
