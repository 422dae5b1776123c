"""What a run is worth: what it kept, how errors grew on the way, and a second run to decide.

It looks at solutions after the fact and imports nothing of stepping.
"""

from .quality import GlobalError, Quality, global_error, without_records
from .watches import Watch, samples, watched_invariants

__all__ = [
    "GlobalError",
    "Quality",
    "Watch",
    "global_error",
    "samples",
    "watched_invariants",
    "without_records",
]
