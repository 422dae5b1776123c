"""The adaptive generalized-α method on the loops of the catalogue."""

import numpy as np
import pytest

from featherstep.cli import main
from integrators import analysis, solve
from multibody import as_dae, mechanisms


def run(name, t_end, formulation, **options):
    entry = mechanisms.entry(name)
    model = entry.model()
    q0, v0 = entry.start(model)
    problem = as_dae(model, q0, v0, (0.0, t_end), formulation=formulation)
    return model, solve(problem, **options)


@pytest.mark.parametrize(
    ("name", "t_end"),
    [
        ("four_bar", 0.8),  # this and the next three ended with NaN at 0.68, 0.16, 0.21 and 0.88 s
        ("slider_crank", 0.4),
        ("spatial_slider_crank", 0.3),
        ("five_bar", 0.9),
        ("bricard", 0.5),
        ("andrews", 0.01),  # began with steps so short that rounding was all Newton could see
        ("n_four_bar", 0.3),
        ("peaucellier", 0.4),
        ("ladder", 0.1),
        ("scissor", 0.05),
        ("rubbing_slider_crank", 0.05),
        ("bicycle", 0.1),
        ("seven_link_biped", 0.05),  # its servos have states of their own
    ],
)
def test_adaptive_steps_reach_the_end(name, t_end):
    model, alpha = run(name, t_end, "index3", method="GeneralizedAlpha", rtol=1e-4, atol=1e-7)
    _, exact = run(name, t_end, "projected", method="DOP853", rtol=1e-10, atol=1e-12)
    assert alpha.success
    error = np.abs(alpha.y[: model.nq, -1] - exact.y[: model.nq, -1]).max()
    assert error < 500 * 1e-4  # order 2: local errors add up over many steps
    assert alpha.observed.velocity_drift.max() < 1e-10  # on the hidden constraint after each step


LOOPS = [e.name for e in mechanisms.entries() if e.model().bonds and not e.model().contacts]


@pytest.mark.parametrize("name", LOOPS)
def test_every_loop_of_the_catalogue_to_its_end(name):
    """A step that Newton's iteration fails on is tried again, shorter.

    It was not, because the factor for that was zero: the rubbing slider-crank ended at 0.08 s.
    """
    t_end = mechanisms.entry(name).t_end
    for rtol in (1e-3, 1e-4):
        _, alpha = run(
            name, t_end, "index3", method="GeneralizedAlpha", rtol=rtol, atol=1e-3 * rtol
        )
        assert alpha.success, alpha.message
        assert alpha.t[-1] == t_end


def test_errors_fall_with_the_tolerance_as_order_two_says():
    """Local errors are of the third order, so errors fall like tol^(2/3): by 100 for 1000."""
    model, exact = run("four_bar", 0.4, "projected", method="DOP853", rtol=1e-11, atol=1e-13)
    errors, steps = [], []
    for rtol in (1e-3, 1e-6):
        _, alpha = run(
            "four_bar", 0.4, "index3", method="GeneralizedAlpha", rtol=rtol, atol=1e-3 * rtol
        )
        errors.append(np.abs(alpha.y[: model.nq, -1] - exact.y[: model.nq, -1]).max())
        steps.append(alpha.nsteps)
    assert 20 < errors[0] / errors[1] < 2000
    assert 4 < steps[1] / steps[0] < 30  # a tenth of the step


def test_converge_shows_its_order():
    entry = mechanisms.entry("bricard")
    model = entry.model()
    problem = as_dae(model, *entry.start(model), (0.0, 0.2), formulation="index3")
    steps = [0.2 / n for n in (45, 64, 91)]
    found = analysis.convergence(problem, "GeneralizedAlpha(0.8)", steps, measure="y0")
    assert found.ok


def test_the_command_shows_its_order(capsys):
    """A method that takes M, f, g and G runs on the form with g = 0, among those that take f."""
    methods = "--methods=GeneralizedAlpha(0.8),HEM4"
    assert main(["converge", "bicycle", methods, "--t-end", "0.5", "--intervals=8,16,32,64"]) == 0
    rows = capsys.readouterr().out.splitlines()
    orders = {row.split()[0]: float(row.split()[2]) for row in rows if "as expected" in row}
    assert orders["GeneralizedAlpha(0.8)"] == pytest.approx(2.0, abs=0.1)
    assert orders["HEM4"] == pytest.approx(4.0, abs=0.15)
