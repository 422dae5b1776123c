"""What a caller may want of a robot's file in any format of other programs, and its policies.

The options that `load_model` has for all of them stand here once: which of limits, friction and
meshes become part of the model, and what happens to numbers that no model can have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .report import Report
from .xml import Element

__all__ = ["Wanted"]


@dataclass
class Wanted:
    """Options of URDF, SDF and MJCF, and where remarks go.

    Attributes
    ----------
    report
        Receives remarks; its policy says what to do about wrong data.
    limits
        Whether limits of joints become elastic stops.
    joint_friction
        Whether friction of joints becomes smoothed dry friction (`multibody.Friction`).
    meshes
        Whether meshes are drawn, and in which folders they may be looked for; as in `MeshFiles`.
    """

    report: Report
    limits: bool = False
    joint_friction: bool = False
    meshes: Any = None

    def not_negative(self, value: float, what: str, at: Element) -> float:
        """A constant of a joint's force; a negative one is refused, or repaired."""
        if value < 0.0:
            self.report.wrong(at, f"negative {what} {value:g}", "take none", possible=False)
        return max(value, 0.0)

    def stops(self, lower: float, upper: float, what: str, at: Element) -> dict[str, Any]:
        """Limits of a joint as an argument of the model's builder, if they are wanted."""
        if not self.limits:
            self.report.ignored(at, what)
        elif lower < upper:
            return {"limits": (lower, upper)}
        else:
            self.report.wrong(at, f"{what}: {lower:g} … {upper:g} leave no room")
        return {}

    def dry_friction(self, value: float, what: str, at: Element, able: bool = True) -> float:
        """Friction that becomes an element; none (and a remark) if it is not wanted or `able`."""
        if value < 0.0 and self.report.wrong(at, f"negative {what}, {value:g}", "take none"):
            return 0.0
        if value > 0.0 and self.joint_friction and able:
            return value
        if value:
            self.report.ignored(at, what)
        return 0.0
