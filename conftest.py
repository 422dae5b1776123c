"""What tests, examples in docstrings and notebooks share."""

import os

# What a test takes and finds must not depend on when a process beside has compiled something. The
# tests of that process say so themselves; processes that tests start inherit it.
os.environ["FEATHERSTEP_COMPILE"] = "first"
