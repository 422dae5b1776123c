"""Inertia parameters: what forces tell of them, the minimal set, equivalent models.

`regressor` has joint forces as a linear function of the parameters; `base` which combinations act;
`equivalence` models with fewer numbers and the same motion.
"""
