"""Model files: our own TOML and JSON, and formats of other programs, to a `Model` and back.

- `formats`: which formats there are; `load_model`, `save_model`, `loads`, `dumps`;
- `source`, `reader`, `writer`: our own files (schema in ``docs/models.md``), with errors that name
  file, line and key, and text that gives the same model again, bit for bit;
- `xml`, `links`, `urdf`: robots of ROS; `sdf` and `sdf_*`: models of Gazebo; `report`: what was
  left out of them.
"""

from .events import ModelEvent, load_events
from .formats import FORMATS, Format, dumps, load_model, loads, save_model
from .report import Report
from .source import ModelFileError
from .start import ModelStart, load_start, named_values

__all__ = [
    "FORMATS",
    "Format",
    "ModelEvent",
    "ModelFileError",
    "ModelStart",
    "Report",
    "dumps",
    "load_events",
    "load_model",
    "load_start",
    "loads",
    "named_values",
    "save_model",
]
