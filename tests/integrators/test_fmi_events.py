"""Events of FMUs, run by FMPy: resets and ends as here, in model exchange and co-simulation."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from integrators import IVP, Event, solve
from integrators.fmi import export_fmu
from integrators.tracing import TracingError

fmpy = pytest.importorskip("fmpy")
pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler"
)
#: Ways to run an FMU; the second lets the other program handle the events of co-simulation.
WAYS = (
    {"fmi_type": "CoSimulation"},
    {"fmi_type": "CoSimulation", "use_event_mode": True, "early_return_allowed": True},
    {"fmi_type": "ModelExchange"},
)
#: Both sides integrate with tolerances of 1e-9; CVode, within FMPy, is off by a hundred of them.
CLOSE = 3e-7


def fall(t, y):
    return [y[1], -9.81]


def swing(t, y):
    return [y[1], -y[0]]


def coast(t, y):
    return [y[3], y[4], y[5], 0.0, 0.0, 0.0]


def exchange(i):
    def reset(t, y):
        new = list(y)
        new[3 + i], new[4 + i] = y[4 + i], y[3 + i]
        return new

    return reset


def floor(**more):
    given = {"direction": -1, "reset": lambda t, y: [0.0, -0.8 * y[1]], "name": "floor", **more}
    return Event(lambda t, y: y[0], **given)


CRADLE = [Event(lambda t, y, i=i: y[i + 1] - y[i], direction=-1, reset=exchange(i)) for i in (0, 1)]
CASES = {
    "bounces": IVP(fall, [1.0, 0.0], (0.0, 1.7), events=[floor()]),
    "the state stays": IVP(
        fall, [1.0, 0.0], (0.0, 1.7), events=[floor(reset=lambda t, y: [y[0], -0.8 * y[1]])]
    ),
    "begins by a bounce": IVP(fall, [0.0, -3.0], (0.0, 0.5), events=[floor()]),
    "begins upwards": IVP(fall, [0.0, 3.0], (0.0, 1.0), events=[floor()]),
    "ends at the third": IVP(
        swing, [1.0, 0.0], (0.0, 20.0), events=[Event(lambda t, y: y[0] - 0.3, terminal=3)]
    ),
    "kicked on its way through": IVP(
        swing, [1.0, 0.0], (0.0, 10.0),
        events=[Event(lambda t, y: y[0], reset=lambda t, y: [y[0], 1.1 * y[1]])],
    ),
    "only where it rises": IVP(
        swing, [1.0, 0.0], (0.0, 20.0),
        events=[Event(lambda t, y: y[0] - 0.2, 1, reset=lambda t, y: [y[0], 0.9 * y[1]])],
    ),
    "a row of balls": IVP(coast, [0.0, 1.0, 1.0, 1.0, 0.0, 0.0], (0.0, 3.0), events=CRADLE),
    "two collisions at once": IVP(
        coast, [0.0, 1.0, 2.0, 1.0, 0.0, -1.0], (0.0, 3.0), events=CRADLE
    ),
    "a clock": IVP(
        lambda t, y: [-y[0]], [1.0], (0.0, 3.0),
        events=[Event(lambda t, y: np.sin(7 * t), 1, reset=lambda t, y: [y[0] + 1.0])],
    ),
    "thrown across": IVP(
        lambda t, y: [1.0, 1.0], [0.0, -0.3], (0.0, 3.5),
        events=[
            Event(lambda t, y: 1.0 - y[0], -1, reset=lambda t, y: [y[0] - 1.0, -1.5]),
            Event(lambda t, y: y[1], -1, reset=lambda t, y: [y[0], 0.9 * y[1]]),
        ],
    ),
    "carried across without a direction": IVP(
        lambda t, y: [1.0], [0.0], (0.0, 3.5),
        events=[
            Event(lambda t, y: y[0] - 1, reset=lambda t, y: [y[0] - 3.0]),
            Event(lambda t, y: y[0] + 1, reset=lambda t, y: [y[0] + 3.0]),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_events_happen_as_here(name, tmp_path):
    problem = CASES[name]
    here = solve(problem, method="DOP853", rtol=1e-11, atol=1e-12)
    assert here.success
    assert sum(map(len, here.t_events)) > 0
    file = export_fmu(problem, tmp_path / "it.fmu", rtol=1e-9, atol=1e-11)
    for way in WAYS:
        rows = fmpy.simulate_fmu(
            str(file), stop_time=problem.t_span[1], output_interval=0.1, relative_tolerance=1e-9,
            **way,
        )  # fmt: skip
        there = [rows[f"y[{i}]"][-1] for i in range(problem.n)]
        np.testing.assert_allclose(there, here.y[:, -1], atol=CLOSE, err_msg=str(way))
        if way != WAYS[0]:  # which knows times of communication only
            assert rows["time"][-1] == pytest.approx(here.t[-1], abs=CLOSE)


def test_a_short_dip_is_seen_within_a_long_step(tmp_path):
    """g < 0 for 0.9 % of a swing; steps of the method are some tenths of one."""
    kick = Event(lambda t, y: 0.9999 - y[0], -1, reset=lambda t, y: [y[0], y[1] + 0.5])
    problem = IVP(swing, [0.0, 1.0], (0.0, 10.0), events=[kick])
    here = solve(problem, method="DOP853", rtol=1e-11, atol=1e-12)
    assert len(here.t_events[0]) == 2
    file = export_fmu(problem, tmp_path / "it.fmu", rtol=1e-6)
    rows = fmpy.simulate_fmu(
        str(file), stop_time=10.0, output_interval=10.0, fmi_type="CoSimulation"
    )
    # Where the kick happens is known to the error of the run through the slope at the surface.
    there = [rows["y[0]"][-1], rows["y[1]"][-1]]
    np.testing.assert_allclose(there, here.y[:, -1], atol=1e-3)


def test_parameters_of_resets_can_be_set_and_it_is_valid(tmp_path):
    from fmpy.validation import validate_fmu

    bounce = floor(reset=lambda t, y, p: [0.0, -p[0] * y[1]])
    problem = IVP(fall, [1.0, 0.0], (0.0, 1.5), [0.8], events=[bounce])
    file = export_fmu(problem, tmp_path / "it.fmu", parameters=["restitution"], rtol=1e-9)
    assert validate_fmu(str(file)) == []
    described = fmpy.read_model_description(str(file))
    assert described.numberOfEventIndicators == 1
    assert described.eventIndicators[0].variable.name == "floor"
    assert described.coSimulation.hasEventMode
    here = solve(problem.with_(params=[0.6]), method="DOP853", rtol=1e-11, atol=1e-12)
    for way in WAYS:
        rows = fmpy.simulate_fmu(
            str(file), stop_time=1.5, start_values={"restitution": 0.6}, relative_tolerance=1e-9,
            **way,
        )  # fmt: skip
        np.testing.assert_allclose([rows[-1][1], rows[-1][2]], here.y[:, -1], atol=CLOSE)


@pytest.mark.parametrize(
    ("reset", "words"),
    [(lambda t, y: [0.0, 0.0], "holds the state"), (lambda t, y: [0.0, -0.5 * y[1]], "Zeno")],
)
def test_runs_that_cannot_go_on_are_errors(reset, words, tmp_path):
    """Also a state held on a surface, along which solve goes on: an FMU has no such mode."""
    problem = IVP(fall, [1.0, 0.0], (0.0, 3.0), events=[floor(reset=reset)])
    file = export_fmu(problem, tmp_path / "it.fmu")
    for way in WAYS:
        said = []

        def listen(*told, said=said):
            said.append(told[-1].decode())

        with pytest.raises(Exception, match="fmi3"):
            fmpy.simulate_fmu(str(file), stop_time=3.0, logger=listen, **way)
        assert any(words in text for text in said)


def test_what_cannot_be_traced_is_refused(tmp_path):
    def branching(t, y):
        return y[0] if y[1] > 0 else y[0] - 1

    for event in (Event(branching), floor(reset=lambda t, y: [0.0, float(y[1])])):
        with pytest.raises(TracingError, match="events: g and reset become C"):
            export_fmu(IVP(fall, [1.0, 0.0], (0, 1), events=[event]), tmp_path / "it.fmu")
    wrong = Event(lambda t, y: y)
    with pytest.raises(ValueError, match="one number"):
        export_fmu(IVP(fall, [1.0, 0.0], (0, 1), events=[wrong]), tmp_path / "it.fmu")
    with pytest.raises(ValueError, match="runs forwards"):
        export_fmu(IVP(fall, [1.0, 0.0], (1, 0)), tmp_path / "it.fmu")
    assert not (tmp_path / "it.fmu").exists()
