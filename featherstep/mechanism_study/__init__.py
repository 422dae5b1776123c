"""One mechanism, every formulation, every integrator: the study, its table, figure and commands."""
