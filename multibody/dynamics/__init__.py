"""Dynamics, one algorithm a file, in the book's notation.

`storage` holds the model as arrays, `trees` the algorithms on them, `loops` those of closed loops,
`derivatives`, `hybrid`, `parameters` and `numerics` what is built on them, `book` what is to be
read. Here: `forces` and `acting` are force elements, `functions` and `motion` what users call.
Imports models, and no solver.
"""

from .storage import arrays as arrays  # tells models how they become arrays
