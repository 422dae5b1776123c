"""The systems of the library: index and freedoms from the literature, roads that agree."""

import numpy as np
import pytest

from integrators import DAE, solve
from integrators.analysis import compare_roads, perturbation_index, plot
from integrators.dae.general import StructureError
from integrators.problems.dae_systems import names, system

from .extended import MESHES, Extended

SMALL = {"fekete_points": {"points": 3}}  # for tests that solve
PART = {"ring_modulator": 2e-4}  # of the interval in which roads are compared; 0.02 otherwise
VARIANTS = [
    ("reactor", {"prescribed": "T"}),
    ("chua", {"source": "x"}),
    ("chua", {"source": "y"}),
    ("trays", {"trays": 40}),
    ("trays", {"trays": 4, "prescribed": "top"}),
    ("trays", {"trays": 4, "prescribed": "bottom"}),
    ("ring_modulator", {"capacitance": 2e-12}),
    ("transistor_amplifier", {"transistors": 1}),
    ("transistor_amplifier", {"transistors": 3}),
]


@pytest.mark.parametrize(("name", "parameters"), [*((name, {}) for name in names()), *VARIANTS])
def test_structure(name, parameters):
    case = system(name, **parameters)
    found = case.system.structure()
    assert found.regular == (case.index is not None)
    if found.regular:
        assert (found.index, found.freedoms) == (case.index, case.freedoms)
    assert bool(found.conversions) == case.converted
    assert case.source


@pytest.mark.parametrize("name", [n for n in names() if n != "free_multiplier"])
def test_roads_agree(name):
    case = system(name, **SMALL.get(name, {}))
    t0, t1 = case.t_span
    ends = []
    for road, method in [("underlying", "DOPRI853"), ("dummy", "RadauIIA5")]:
        problem = case.problem(road, t0 + PART.get(name, 0.02) * (t1 - t0))
        sol = solve(problem, method=method, rtol=1e-11, atol=1e-11)
        assert sol.success, sol.message
        n = len(case.system.unknowns)
        ends.append(sol.y[:n, -1])
        assert sol.observed.largest < 1e-11
    assert ends[1] == pytest.approx(ends[0], rel=1e-9, abs=1e-9)


def test_a_singular_system_is_named():
    with pytest.raises(StructureError, match="the 2 equations f1, f2 contain only 1 unknowns"):
        system("free_multiplier").problem()
    with pytest.raises(ValueError, match="did you mean"):
        system("robot_arn")


@pytest.mark.parametrize(
    ("name", "road", "method", "rtol", "error"),
    [
        ("akzo_nobel", "given", "RADAU5", 1e-10, 1e-10),
        ("car_axis", "taylor", "Taylor", 1e-13, 2e-12),
        ("robot_arm", "underlying", "DOPRI853", 1e-13, 1e-12),
        ("slider_crank", "dummy", "RADAU5", 1e-12, 1e-10),
        ("slider_crank", "taylor", "Taylor", 1e-13, 1e-12),
        ("transistor_amplifier", "given", "RadauIIA7", 1e-12, 5e-12),
        ("nand_gate", "given", "RADAU5", 1e-9, 1e-8),
        ("nand_gate", "given", "auto", 1e-6, 1e-5),  # on which BDF get stuck
        ("car_axis", "dummy", "auto", 1e-6, 1e-5),
    ],
)
def test_references(name, road, method, rtol, error):
    """Values of the test set, or computed in extended precision; who did it is said."""
    case = system(name)
    assert case.provenance
    stops = list(case.stops)
    sol = solve(case.problem(road), method=method, rtol=rtol, atol=1e-2 * rtol, tstops=stops)
    assert sol.t[-1] == case.reference[0]
    for unknown, value in case.reference[1].items():
        place = case.system.unknowns.index(unknown)
        assert sol.y[place, -1] == pytest.approx(value, abs=error * max(1.0, abs(value))), unknown


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="long doubles are doubles here")
def test_references_in_extended_precision():
    """One of the two meshes of the robot arm; ``python -m`` of the module runs the others."""
    case = system("robot_arm")
    values, steps = Extended(case).run(*MESHES[0])
    assert steps > 10
    assert [float(x) for x in values] == pytest.approx(list(case.reference[1].values()), rel=1e-15)


def test_fekete_points_come_to_rest_in_a_triangle():
    """Three points that repel one another end on a great circle, √3 apart."""
    sol = solve(system("fekete_points", points=3).problem("given", 80.0), method="RADAU5",
                rtol=1e-8, atol=1e-10)  # fmt: skip
    p = sol.y[:9, -1].reshape(3, 3)
    apart = [np.linalg.norm(p[i] - p[j]) for i, j in ((0, 1), (1, 2), (2, 0))]
    assert apart == pytest.approx([np.sqrt(3.0)] * 3, abs=1e-5)


def test_the_ring_modulator_is_converted_by_constants():
    """Its diodes span thirty powers of ten; the currents of the ring add up to zero."""
    case = system("ring_modulator")
    text = case.system.structure().conversions[0].text
    assert text.startswith("f5 was replaced by f2 - f3 + f4 - f5")
    array = case.system.array
    X = np.zeros(array.size)
    X[[array.names.index(name) for name in ("I3", "I4", "I5", "I6")]] = [3e-3, 4e-3, -3e-3, -4e-3]
    rows = [array.row_names.index(name) for name in ("f5", "f5'")]
    # Whole terms cancel, not their values only: at the crest of the input these are 1e8.
    assert np.abs(array.residuals(2.5e-5, X)[rows]).max() < 1e-18
    sol = solve(case.problem("dummy", 1e-4), method="RADAU5", rtol=1e-7, atol=1e-9)
    assert sol.success
    assert np.abs(sol.y[9:13].sum(axis=0)).max() < 1e-12
    # Ten times the time after which diodes block.
    same = solve(case.problem("given", 1e-4), method="RADAU5", rtol=1e-7, atol=1e-9)
    assert sol.y[:15, -1] == pytest.approx(same.y[:15, -1], abs=1e-6)


def test_the_ring_modulator_over_a_millisecond():
    """A hundred times the time after which diodes block; the limit of small capacitances."""
    sol = solve(system("ring_modulator").problem("given"), method="RADAU5", rtol=1e-7, atol=1e-9)
    assert sol.success
    small = system("ring_modulator", capacitance=1e-17).problem("given")
    limit = solve(small, method="RADAU5", rtol=1e-7, atol=1e-9)
    assert sol.y[:15, -1] == pytest.approx(limit.y[:15, -1], abs=1e-4)
    # With the capacitance of the test set, its reference for the voltages of both coils.
    assert sol.y[:2, -1] == pytest.approx(
        [-0.2339057358486745e-1, -0.7367485485540825e-2], abs=1e-4
    )


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("reactor", {"prescribed": "p"}),
        ("chua", {"source": "u"}),
        ("trays", {"trays": 0}),
        ("trays", {"prescribed": "middle"}),
        ("fekete_points", {"points": 1}),
        ("transistor_amplifier", {"transistors": 0}),
    ],
)
def test_parameters_that_make_no_sense(name, parameters):
    with pytest.raises(ValueError, match="expected"):
        system(name, **parameters)


def test_robot_arm_follows_its_path():
    """The hand is where the last two equations say; x1 and x3 have a closed form."""
    problem = system("robot_arm").problem("underlying", 0.5)
    sol = solve(problem, method="DOPRI853", rtol=1e-10, atol=1e-10)
    t = sol.t
    assert sol.y[0] == pytest.approx(1 - np.exp(t), abs=1e-10)
    assert sol.y[2] == pytest.approx(np.exp(t) - t, abs=1e-10)


def test_roads_in_a_table(capsys):
    from featherstep.cli import main

    case = system("pendulum_chain")
    start = case.system.consistent(0.0, case.fixed, case.guess)
    result = compare_roads(case.system, start, 0.5, rtol=1e-8, methods={
        "dummy": ["RADAU5"], "underlying": ["DOPRI853"], "taylor": ["Taylor"], "given": ["RADAU5"],
    })  # fmt: skip
    assert [run.road for run in result.runs] == ["dummy", "underlying", "taylor", "given"]
    assert all(run.error < 1e-4 for run in result.runs)
    assert all(run.drift < 1e-14 for run in result.runs[:3])
    command = ["compare", "reactor", "--roads", "underlying,taylor", "--rtol", "1e-6"]
    assert main([*command, "--methods", "Taylor", "--csv", "-"]) == 0
    assert capsys.readouterr().out.startswith("road,method,rtol,error,drift,steps,seconds,message")
    assert main(["compare", "reactor", "--roads", "nowhere"]) == 2
    with pytest.raises(ValueError, match="no road"):
        compare_roads(case.system, start, 0.5, roads=["nowhere"])


def test_roads_that_are_refused_are_lines_of_the_table():
    case = system("pendulum_chain", pendulums=2)
    start = case.system.consistent(0.0, case.fixed, case.guess)
    result = compare_roads(
        case.system, start, 0.1, roads=["given"], rtol=1e-6, reference=np.zeros(6)
    )
    assert result.runs[0].message.startswith("refused: as given the system has index 5")
    assert "refused" in str(result)


def test_picture_of_a_structure():
    axes = plot.dae_structure(system("pendulum_chain", pendulums=2).system.structure())
    assert axes.get_title() == "pendulum_chain: index 5, 4 freedoms"
    texts = [text.get_text() for text in axes.texts]
    assert sorted(texts) == sorted(
        ["2", "0", "2", "0", "0", "0", "2", "0", "2", "0", "0", "0", "0"]
    )
    assert plot.dae_structure(system("ladder", sections=20).system.structure()).lines
    assert (
        "singular" in plot.dae_structure(system("free_multiplier").system.structure()).get_title()
    )


def test_perturbation_index_by_measurement():
    """ODE, algebraic equation, prescribed output, pendulum: 0, 1, 2, 3."""
    systems = {
        0: (DAE(lambda t, y, d: [d(y[0]) + y[0]], n=1), {"y0": 1.0}),
        1: (DAE(lambda t, y, d: [d(y[0]) + y[0] - y[1], y[1] - y[0] ** 2], n=2), {"y0": 0.5}),
        2: (DAE(lambda t, y, d: [d(y[0]) + y[0] - y[1], y[0] - np.sin(t)], n=2), {}),
        3: (system("pendulum_chain").system, {"x1": 0.6, "x1'": 0.0, "z1": -0.8}),
    }
    for index, (dae, fixed) in systems.items():
        found = perturbation_index(dae, dae.consistent(fixed=fixed), 1.0)
        assert found.index == index
        assert max(found.exponents.values()) == pytest.approx(index - 1, abs=0.1)


@pytest.mark.parametrize(
    ("name", "parameters", "t_end", "index"),
    [
        ("transistor_amplifier", {}, 0.01, 1),
        ("car_axis", {}, 1.0, 3),
        ("robot_arm", {}, 0.5, 5),
        ("trays", {"trays": 3, "prescribed": "bottom"}, 1.0, 4),
    ],
)
def test_perturbation_index_of_the_library(name, parameters, t_end, index):
    case = system(name, **parameters)
    start = case.system.consistent(0.0, case.fixed, case.guess)
    found = perturbation_index(case.system, start, t_end)
    assert found.index == index
    assert max(found.exponents.values()) == pytest.approx(index - 1, abs=0.05)


@pytest.mark.parametrize("t_end", [5.0, -1.0])
def test_perturbation_index_with_a_small_highest_term(t_end):
    """The cooling reacts as 20 (200 εω + εω²): low frequencies alone would say index 2."""
    case = system("reactor")
    start = case.system.consistent(0.0, case.fixed, case.guess)
    found = perturbation_index(case.system, start, t_end)
    assert (found.index, found.unsettled) == (3, ())
    assert list(found.exponents.values()) == pytest.approx([1.0, 0.0, 1.0, 2.0], abs=0.02)
    with pytest.raises(ValueError, match="t_end"):
        perturbation_index(case.system, start, 0.0)
