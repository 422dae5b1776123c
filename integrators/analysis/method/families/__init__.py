"""Reports on methods that are no tableaux: Rosenbrock, additive, and those for y = (q, v)."""
