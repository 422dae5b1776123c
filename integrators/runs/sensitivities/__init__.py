"""Forward sensitivities: how a solution changes with parameters and initial values.

Variational equations beside a problem, also across its jumps.
"""
