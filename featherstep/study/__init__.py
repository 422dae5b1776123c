"""Studies: thousands of runs with varied parameters, on all cores or a cluster, kept on disk.

- `sampling`: how parameters are spread, and which values run k has;
- `recording`, `starts`, `subjects`: what is recorded, from where, of what;
- `plan`, `working`: one run, many of them, who does the work, and that nothing is lost;
- `keeping`: the folder in which results are kept;
- `study`, `study_file`, `command`: what users write;
- `showing`, `rerun`: what they look at.

Names are imported when they are first asked for: the command line must answer at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multibody.runs.observing.recorded import (
        energy,
        loop_force,
        observed,
        position,
        reaction,
        state,
    )

    from .recording.reductions import At, EventTime, Final, Integral, Max, Mean, Min
    from .rerun import Rerun
    from .sampling.distributions import (
        Choice,
        LogNormal,
        LogUniform,
        Normal,
        Triangular,
        TruncatedNormal,
        Uniform,
    )
    from .starts import Assembled
    from .study import Study
    from .working.running import Progress, StudyInterrupted

__all__ = [
    "Assembled",
    "At",
    "Choice",
    "EventTime",
    "Final",
    "Integral",
    "LogNormal",
    "LogUniform",
    "Max",
    "Mean",
    "Min",
    "Normal",
    "Progress",
    "Rerun",
    "Study",
    "StudyInterrupted",
    "Triangular",
    "TruncatedNormal",
    "Uniform",
    "energy",
    "loop_force",
    "observed",
    "position",
    "reaction",
    "state",
]

_HOMES = {
    "sampling.distributions": (
        ["Choice", "LogNormal", "LogUniform", "Normal", "Triangular", "TruncatedNormal", "Uniform"]
    ),
    "recording.reductions": ["At", "EventTime", "Final", "Integral", "Max", "Mean", "Min"],
    "working.running": ["Progress", "StudyInterrupted"],
    "starts": ["Assembled"],
    "rerun": ["Rerun"],
    "study": ["Study"],
}
_HOME = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
_QUANTITIES = ["energy", "loop_force", "observed", "position", "reaction", "state"]
_HOME |= dict.fromkeys(_QUANTITIES, "multibody.runs.observing.recorded")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
