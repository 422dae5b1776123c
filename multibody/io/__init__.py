"""Model files: TOML or JSON to a `Model` and back. The schema is in ``docs/models.md``.

- `source`: text, its data, and the line of every key;
- `reader`: data to a model, with errors that name file, line and key;
- `writer`: a model to text that gives the same model again, bit for bit.
"""

from .reader import load_model, loads
from .source import ModelFileError
from .writer import dumps, save_model

__all__ = ["ModelFileError", "dumps", "load_model", "loads", "save_model"]
