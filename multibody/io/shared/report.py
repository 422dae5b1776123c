"""What a reader of somebody else's format understood, and what not.

A file written by another tool says more than a model here, or less, or something impossible. Each
such thing becomes a :class:`Remark` with its line; what happens then is the reader's `policy`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ...algebra.se3 import Pose
from ...checks import Array, one_of
from .source import ModelFileError

__all__ = ["POLICIES", "Remark", "Report"]

#: What to do about data that are wrong: refuse them, keep them if a model can, or mend them.
POLICIES = ("strict", "warn", "repair")


class Place(Protocol):
    """What says where it is, such as an element of a file."""

    line: int
    file: str


@dataclass(frozen=True)
class Remark:
    """One thing that a reader has to say.

    Attributes
    ----------
    line
        Where it is in the file; 0 where a model is written.
    what
        "ignored" (the model does not have it), "assumed" (a default of the format), "repaired",
        "doubtful" (kept as it is), or, where a model is written, "lost" (the format lacks it).
    text
        In words.
    """

    line: int
    what: str
    text: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.text} ({self.what})"


@dataclass
class Report:
    """Remarks on a file, in order; give one to ``load_model(..., report=…)`` to have it filled.

    Attributes
    ----------
    file
        Name of the file.
    policy
        One of :data:`POLICIES`.
    remarks
        What there is to say.
    gears
        Joints that follow others, as :func:`multibody.gears` takes them; they are constraints of
        the model already.
    frames
        Poses of links in the frames of their bodies, where these differ.
    positions
        Positions of the model that the file names: "start", and keyframes.
    velocities, controls
        Of keyframes: velocities, and inputs of actuators by name (``load_model(…, controls=…)``).
    reductions
        By joint: how many times faster its motor turns. A URDF says nothing of the rotor; give the
        joint an armature of reduction² × its inertia.
    """

    file: str = ""
    policy: str = "warn"
    remarks: list[Remark] = field(default_factory=list)
    gears: dict[str, dict[str, float]] = field(default_factory=dict)
    frames: dict[str, Pose] = field(default_factory=dict)
    positions: dict[str, Array] = field(default_factory=dict)
    velocities: dict[str, Array] = field(default_factory=dict)
    controls: dict[str, dict[str, float]] = field(default_factory=dict)
    reductions: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of(self.policy, "policy", POLICIES)

    def __bool__(self) -> bool:
        return bool(self.remarks)

    def __str__(self) -> str:
        head = f"{self.file}: {len(self.remarks)} remarks"
        return "\n".join([head, *(f"  {remark}" for remark in self.remarks)])

    def ignored(self, at: Place | int, text: str) -> None:
        """Note something, at an element or a line, that a model here does not have."""
        self._add(at, "ignored", text)

    def lost(self, text: str) -> None:
        """Note something of a model that a format cannot express; strict writers refuse it."""
        if self.policy == "strict":
            raise ValueError(f"{text}: the format cannot express it; {self.file}".rstrip("; "))
        self._add(0, "lost", text)

    def assumed(self, at: Place | int, text: str) -> None:
        """Note something that the file leaves to the format."""
        self._add(at, "assumed", text)

    def _add(self, at: Place | int, what: str, text: str) -> None:
        line, file = (at, self.file) if isinstance(at, int) else (at.line, at.file)
        where = f" in {file}" if file != self.file else ""  # an included one
        self.remarks.append(Remark(line, what, text + where))

    def wrong(self, at: Place | int, text: str, repair: str = "", possible: bool = True) -> bool:
        """Note something impossible; whether it is to be repaired. Strict readers refuse it.

        Parameters
        ----------
        at, text
            Where (an element or a line) and what.
        repair
            What a repair does; empty if there is none.
        possible
            Whether a model can keep it; otherwise it is refused unless it is repaired.
        """
        mended = self.policy == "repair" and bool(repair)
        if self.policy == "strict" or not (possible or mended):
            remedy = f'; policy="repair" would {repair}' if repair else ""
            line, file = (at, self.file) if isinstance(at, int) else (at.line, at.file)
            raise ModelFileError(text + remedy, file, line)
        what, more = ("repaired", f"; {repair}") if mended else ("doubtful", "")
        self._add(at, what, text + more)
        return mended
