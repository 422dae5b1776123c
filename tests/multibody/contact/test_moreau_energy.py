"""Time stepping that would make energy out of nothing ends and says so."""

from integrators import Status, solve
from multibody import mechanisms


def test_a_ball_that_turns_too_fast_for_the_step():
    run = solve(mechanisms.entry("bowling_ball").problem(), method="MoreauJean", step=4e-3)
    assert run.status == Status.FUNCTION_RAISED
    assert "out of nothing" in run.message
    assert "event-driven road" in run.message
    assert run.t[-1] > 0.4  # what was computed up to then is kept


def test_a_ball_that_bounces_and_rests_makes_none():
    run = solve(mechanisms.entry("bouncing_ball").problem(), method="MoreauJean", step=1e-2)
    assert run.success
