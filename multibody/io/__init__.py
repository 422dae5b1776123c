"""Model files: our own TOML and JSON, and formats of other programs, to a `Model` and back.

- `formats`: which formats there are; `load_model`, `save_model`, `loads`, `dumps`;
- `own`: our own TOML and JSON, with errors that name file, line and key;
- `urdf`, `sdf`, `mjcf`: formats of other programs, a folder each with a reader and a writer;
- `shared`, `geometry`: what they have in common, and `Report`, what was left out of them.
"""

from .formats import FORMATS, Format, dumps, load_model, loads, save_model
from .own.events import ModelEvent, load_events
from .own.start import ModelStart, load_start, named_values
from .shared.report import Report
from .shared.source import ModelFileError

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
