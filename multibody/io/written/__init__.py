"""Models as files of other programs: URDF and MJCF; what these cannot express is listed.

A loss is a remark of the report; with the policy "strict" it is an error. Where a *joint* cannot be
expressed nothing is written at all: the file would be another mechanism.
"""

from .mjcf import write_mjcf
from .urdf import write_urdf

__all__ = ["write_mjcf", "write_urdf"]
