"""Runs with many digits: ``solve(…, precision=34)``, and the far end of convergence studies.

Imports tableaux, Taylor methods and the tracer; the compiled loop has no part in it.
"""

from .decimals import DIGITS, NotAvailable
from .run import exact_numbers, solve_precisely
from .system import BRANCHES, ManyDigits

__all__ = ["BRANCHES", "DIGITS", "ManyDigits", "NotAvailable", "exact_numbers", "solve_precisely"]
