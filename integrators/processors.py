"""How many processors this process may use: not how many the computer has.

A batch system pins a process to some of them (affinity), a container limits its share of time
(a quota of its control group). More threads than that only wait for each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["available_processors"]


def available_processors(root: Path = Path("/")) -> int:
    """Return the number of processors that this process may use, at least one.

    Parameters
    ----------
    root
        Where ``proc`` and ``sys`` of Linux are.

    Examples
    --------
    >>> 1 <= available_processors() <= os.cpu_count()
    True
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    shares = [-int(-share // 1) for share in _quotas(root)]  # rounded up
    return max(1, min([count, *shares]))


def _quotas(root: Path) -> Iterator[float]:
    """Processors' worth of time that the control groups around this process leave it."""
    groups = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, kinds, path = (*line.split(":", 2), "", "")[:3]
        if kinds == "":  # version 2: one tree
            folder, limit = groups, "cpu.max"
        elif "cpu" in kinds.split(","):
            folder, limit = groups / "cpu", ""
        else:
            continue
        inner = folder / path.lstrip("/")
        for group in (inner, *inner.parents):
            if not group.is_relative_to(folder):
                break
            quota, _, period = (
                _text(group / limit).partition(" ")
                if limit
                else (_text(group / "cpu.cfs_quota_us"), " ", _text(group / "cpu.cfs_period_us"))
            )
            try:
                if float(quota) > 0 and float(period) > 0:
                    yield float(quota) / float(period)
            except ValueError:  # "max", or no such file
                continue


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""
