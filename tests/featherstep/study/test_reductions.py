"""What runs are reduced to, against closed forms; and quantities against the library's own."""

import numpy as np
import pytest

from featherstep import (
    At,
    EventTime,
    Final,
    Integral,
    Max,
    Mean,
    Min,
    Study,
    energy,
    loop_force,
    observed,
    position,
    reaction,
)
from featherstep.study.recording.reductions import reduction_of
from integrators import IVP, Event


def oscillator(**fields):
    """y = (cos ωt, −ω sin ωt)."""
    return IVP(
        lambda t, y, p: np.array([y[1], -(p[0] ** 2) * y[0]]),
        [1.0, 0.0],
        (0.0, 10.0),
        params=[1.0],
        state_names=("x", "v"),
        **fields,
    )


def row(what, record, **options):
    options = {"t_span": (0, 10), "rtol": 1e-10, "atol": 1e-12, **options}
    vary = options.pop("vary", {"omega": [1.3]})
    study = Study(what, vary, record=record, **options)
    return study.rerun(0).row


OMEGA, T = 1.3, 10.0
TRUTH = {
    "final": (Final("x"), np.cos(OMEGA * T)),
    "at": (At("x", 3.7), np.cos(OMEGA * 3.7)),
    "max": (Max("v"), OMEGA),
    "min": (Min("x"), -1.0),
    "integral": (Integral("x"), np.sin(OMEGA * T) / OMEGA),
    "mean": (Mean("v"), (np.cos(OMEGA * T) - 1.0) / T),
    "event_time": (EventTime("x"), np.pi / 2 / OMEGA),
    "second": (EventTime("x", direction=1, count=2), (3.5 * np.pi) / OMEGA),
    "event": (EventTime(Event(lambda t, y: y[0], direction=1), count=2), (3.5 * np.pi) / OMEGA),
    "function": (Max(lambda t, y: t * y[0]), None),
    "with p": (Max(lambda t, y, p: p[0] * y[0]), OMEGA),
}


@pytest.fixture(scope="module")
def reduced():
    record = {name: reduction for name, (reduction, _) in TRUTH.items()}
    return row(oscillator(), record, parameters=["omega"])


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_reductions_of_an_oscillator(reduced, name):
    from scipy.optimize import minimize_scalar

    truth = TRUTH[name][1]
    if name == "function":
        times = np.linspace(0, T, 4001)
        k = int(np.argmax(times * np.cos(OMEGA * times)))
        truth = -minimize_scalar(
            lambda t: -t * np.cos(OMEGA * t), bounds=(times[k - 1], times[k + 1]), method="bounded",
            options={"xatol": 1e-12},
        ).fun  # fmt: skip
    assert reduced[name] == pytest.approx(truth, abs=3e-8)


def test_an_event_with_reset_is_no_mere_time():
    with pytest.raises(ValueError, match="has a reset"):
        EventTime(Event(lambda t, y: y[0], reset=lambda t, y: -y))


@pytest.mark.parametrize("method", ["DOPRI5", "RK4", "RADAU5", "scipy:RK45", "Taylor"])
def test_every_method_is_reduced(method):
    record = {k: TRUTH[k][0] for k in ("max", "integral", "at", "event_time")}
    options = {"step": 0.01, "rtol": 1e-6, "atol": 1e-9} if method == "RK4" else {}
    if options:
        options = {"step": 0.01}
        study = Study(
            oscillator(), {"omega": [1.3]}, record=record, parameters=["omega"], method=method,
            t_span=(0, 10), **options,
        )  # fmt: skip
        found = study.rerun(0).row
    else:
        found = row(oscillator(), record, parameters=["omega"], method=method)
    for name in record:
        assert found[name] == pytest.approx(TRUTH[name][1], abs=2e-6), name


def test_backwards_in_time():
    record = {"integral": Integral("x"), "mean": Mean("x"), "max": Max("x"), "end": Final("x")}
    found = row(oscillator(), record, parameters=["omega"], t_span=(0, -2))
    exact = np.sin(-2 * OMEGA) / OMEGA
    assert found["integral"] == pytest.approx(exact, abs=1e-8)
    assert found["mean"] == pytest.approx(exact / -2.0, abs=1e-8)
    assert found["end"] == pytest.approx(np.cos(2 * OMEGA), abs=1e-8)
    assert found["t_end"] == -2.0


def test_both_sides_of_a_jump_count():
    """A ball that bounces: the speed before the impact is the largest, that after it the least."""
    bounce = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: np.array([0.0, -0.5 * y[1]]))
    ball = IVP(lambda t, y, p: np.array([y[1], -p[0]]), [1.0, 0.0], (0, 0.8), params=[10.0],
               events=[bounce])  # fmt: skip
    record = {"down": Min(1), "up": Max(1), "way": Integral(1), "second": EventTime(0, count=1)}
    found = row(ball, record, vary={"p[0]": [10.0]}, t_span=(0, 0.8))
    fall = np.sqrt(2.0 / 10.0)
    assert found["down"] == pytest.approx(-10.0 * fall, abs=1e-8)
    assert found["up"] == pytest.approx(5.0 * fall, abs=1e-8)
    after = 0.8 - fall
    assert found["way"] == pytest.approx(5.0 * fall * after - 5.0 * after**2 - 1.0, abs=1e-8)


def test_a_terminal_event_ends_what_is_reduced():
    record = {"t": EventTime("x", terminal=True), "end": Final("v"), "late": At("x", 5.0)}
    found = row(oscillator(), record, parameters=["omega"])
    assert found["t_end"] == found["t"] == pytest.approx(np.pi / 2 / OMEGA, abs=1e-9)
    assert found["end"] == pytest.approx(-OMEGA, abs=1e-8)
    assert np.isnan(found["late"])


def test_quantities_of_a_pendulum():
    """Released from the horizontal: three times the weight in the pin, energy m g L."""
    record = {
        "pull": Max(reaction("bob")),
        "kinetic": Max(energy("kinetic")),
        "energy": Mean(energy()),
        "low": Min(position("bob", "z", (0, 0, -2.0))),
        "drift": Max(observed("energy")),
        "speed": Max("d(bob)"),
    }
    found = row(
        "pendulum", record, vary={"mass": [1.7]}, fixed={"length": 2.0},
        start={"bob": np.pi / 2}, t_span=(0, 3),
    )  # fmt: skip
    weight = 1.7 * 9.81
    assert found["pull"] == pytest.approx(3 * weight, rel=1e-7)
    assert found["kinetic"] == pytest.approx(2.0 * weight, rel=1e-7)
    assert found["energy"] == pytest.approx(0.0, abs=1e-6)
    assert found["low"] == pytest.approx(-2.0, abs=1e-7)
    assert found["speed"] == pytest.approx(np.sqrt(2 * 9.81 / 2.0), rel=1e-7)


@pytest.mark.parametrize("options", [{}, {"formulation": "ggl", "method": "RADAU5"}])
def test_loop_forces_are_those_of_the_library(options):
    from multibody.runs.observing.reactions import reactions_along

    record = {"pin": Max(loop_force("joint")), "x": Final(loop_force("joint", "fx"))}
    study = Study(
        "four_bar", {"crank": [1.02]}, record=record, t_span=(0, 0.2), rtol=1e-7, traced=False,
        **options,
    )  # fmt: skip
    again = study.rerun(0)
    times = np.linspace(0, 0.2, 41)
    x = again._made[1].motion(times, again.solution.sol(times))
    wrench = reactions_along(again.model, x).loops["joint"]
    force = np.linalg.norm(wrench[3:5], axis=0)
    assert again.row["pin"] >= force.max() * (1 - 1e-9)
    assert again.row["pin"] == pytest.approx(force.max(), rel=1e-3)
    assert again.row["x"] == pytest.approx(wrench[3, -1], rel=1e-6)
    with pytest.raises(ValueError, match="not determined"):
        loop_force("joint", "fz").along(again._made[1], times[:1], again.solution.y[:, :1])


def test_plain_forms_go_round():
    for reduction in (
        Max(loop_force("joint")),
        Min(reaction("crank", "mz")),
        At("crank", 1.0),
        EventTime("crank", value=2.0, direction=-1, count=3, terminal=True),
        Mean(energy("kinetic")),
        Integral(position("crank", "y", (1, 2, 3))),
        Final(observed("drift")),
        Final(2),
    ):
        assert reduction_of(reduction.plain()) == reduction


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"a": Final("crnk")}, "there is no state"),
        ({"a": Max(loop_force("joit"))}, "did you mean joint"),
        ({"a": Max(reaction("crnk"))}, "did you mean crank"),
        ({"a": Max(position("nobody"))}, "nobody"),
        ({"a": At("crank", 50.0)}, "expected a time"),
        ({"a": {"maximum": "crank"}}, "did you mean max"),
        ({"a": {"max": {"loop_forces": "joint"}}}, "did you mean loop_force"),
        ({"a": {"event_time": "crank", "valu": 3}}, "valu"),
        ({"a": Final(observed("drft"))}, "did you mean drift"),
        ({"crank": Final("crank")}, "another column"),
        ({"status": Final("crank")}, "another column"),
        ({"a": 3.5}, "expected the name of a state"),
    ],
)
def test_what_cannot_be_recorded_is_said_at_once(record, words):
    with pytest.raises(ValueError, match=words):
        Study("four_bar", {"crank": [1.0]}, t_span=(0, 1), record=record)
