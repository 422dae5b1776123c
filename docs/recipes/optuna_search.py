"""Optuna proposes parameters, a study runs them: the pendulum whose period is one second."""

import optuna

from featherstep import EventTime, Study, Uniform

# Released at rest, a pendulum passes its lowest point after a quarter of its period.
study = Study(
    "pendulum",
    vary={"length": Uniform(0.1, 0.5)},
    n=1,
    start={"bob": 0.01},
    t_span=(0, 1),
    rtol=1e-9,
    record={"quarter": EventTime("bob", direction=-1)},
)


def off(trial):
    """How far the period is from one second; a run that failed is told as failed."""
    run = study.evaluate({"length": trial.suggest_float("length", 0.1, 0.5)})
    if run["status"][0] != "ok":
        raise optuna.TrialPruned(run["message"][0])
    return abs(4.0 * run["quarter"][0] - 1.0)


optuna.logging.set_verbosity(optuna.logging.WARNING)
search = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
search.optimize(off, n_trials=60)
best = search.best_params["length"]
assert abs(best - 9.81 / (2.0 * 3.141592653589793) ** 2) < 0.01  # L = g/4π²
