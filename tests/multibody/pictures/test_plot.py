"""Pictures and animations show what was computed, on the axes given, without windows."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from integrators import solve
from multibody import (
    Inertia,
    ModelBuilder,
    Prismatic,
    Revolute,
    as_dae,
    as_ivp_minimal,
    assemble,
    box,
    contact_forces,
    energies,
    mechanisms,
    point_position,
    positions,
    rod,
    simulate,
    sphere,
)
from multibody.pictures import animate, plot
from multibody.pictures.skeleton import skeleton, view_of
from multibody.runs.observing.states import states_at
from multibody.runs.units import kinds_of_positions, kinds_of_velocities
from tests.multibody.joint_samples import SAMPLES


@pytest.fixture(scope="module")
def swing():
    model = mechanisms.double_pendulum()
    return model, simulate(model, [1.5, 0.3], T=1.0, fps=30)


def test_pictures_load_nothing_until_asked_for():
    code = "import sys; from multibody import animate, plot; print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_notebooks_show_figures_without_pyplot(swing):
    model, solution = swing
    for ax in (plot.energy(model, solution), plot.stick_figure(model)):
        assert ax.figure._repr_png_().startswith(b"\x89PNG")


# ---------------------------------------------------------------------- over time


def test_coordinates_are_the_rows_of_the_solution(swing):
    model, solution = swing
    ax = plot.coordinates(model, solution)
    assert [line.get_label() for line in ax.lines] == ["upper.angle", "lower.angle"]
    for line, row in zip(ax.lines, solution.y):
        np.testing.assert_array_equal(line.get_ydata(), row)
    ax = plot.coordinates(model, solution, ["lower"], velocities=True)
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_ydata(), solution.y[3])
    for which in ("upper.angle", [0], "upper"):
        (line,) = plot.coordinates(model, solution, which).lines
        np.testing.assert_array_equal(line.get_ydata(), solution.y[0])
    with pytest.raises(ValueError, match=r"upper\.angle, lower\.angle"):
        plot.coordinates(model, solution, ["midle"])


def test_coordinates_tell_their_units(swing):
    model, solution = swing
    assert plot.coordinates(model, solution).get_ylabel() == "angles (rad)"
    label = plot.coordinates(model, solution, velocities=True).get_ylabel()
    assert label == "angular velocities (rad/s)"
    cart = mechanisms.cart_pole()
    run = simulate(cart, [0.0, 0.5], T=0.1, fps=30)
    assert plot.coordinates(cart, run).get_ylabel() == "shifts (m), angles (rad)"
    assert plot.coordinates(cart, run, ["cart"]).get_ylabel() == "shifts (m)"
    assert plot.coordinates(cart, run, ["cart"], velocities=True).get_ylabel() == "velocities (m/s)"
    free = mechanisms.free_body()
    run = simulate(free, None, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0], T=0.1, fps=30)
    ax = plot.coordinates(free, run)
    assert ax.get_ylabel() == "unit quaternions, shifts (m)"
    looks = [(line.get_color(), line.get_linestyle()) for line in ax.lines]
    assert len(set(looks)) == len(looks) == 7  # the legend tells all of them apart


@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if kind != "user"])
def test_units_of_joint_variables(kind):
    """What turns the body is measured in rad, what only shifts it in m: S tells which."""
    for joint in SAMPLES[kind]:
        model = SimpleNamespace(bodies=[SimpleNamespace(joint=joint)])
        S = joint.motion(joint.neutral(), np.zeros(joint.nv)).S.reshape(6, joint.nv)
        turns = np.abs(S[:3]).max(axis=0)
        assert kinds_of_velocities(model) == [
            "angular velocities (rad/s)" if turn > 0.0 else "velocities (m/s)" for turn in turns
        ]
        positions_are = kinds_of_positions(model)
        assert len(positions_are) == joint.nq
        if joint.rate_is_velocity:
            assert positions_are == ["angles (rad)" if x > 0.0 else "shifts (m)" for x in turns]
        assert "other variables" not in positions_are


def test_energy_lines(swing):
    model, solution = swing
    lines = {line.get_label(): line.get_ydata() for line in plot.energy(model, solution).lines}
    found = energies(model, solution)
    np.testing.assert_array_equal(lines["kinetic"], found.kinetic)
    np.testing.assert_allclose(lines["total"], lines["kinetic"] + lines["potential"])


def test_energy_drift_compares_runs(swing):
    model, _ = swing
    runs = {
        f"RK4, h = {h}": simulate(model, [1.5, 0.3], T=1.0, method="RK4", step=h, fps=None)
        for h in (0.02, 0.01)
    }
    ax = plot.energy_drift(model, runs)
    coarse, fine = (line.get_ydata()[-1] for line in ax.lines)
    assert coarse > 10 * fine > 0.0  # order 4 in h
    assert [t.get_text() for t in ax.get_legend().get_texts()] == list(runs)
    (line,) = plot.energy_drift(model, runs["RK4, h = 0.01"]).lines
    assert line.get_label() == "RK4"


# ---------------------------------------------------------------------- in space


def test_path_is_drawn_in_the_plane_of_motion(swing):
    model, solution = swing
    track = positions(model, solution, "lower", (0, 0, -1))
    ax = plot.path(model, solution, "lower", (0, 0, -1))
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), track[0])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), track[2])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x (m)", "z (m)")
    assert ax.get_aspect() == 1.0
    ax = plot.path(model, solution, 2, (0, 0, -1), view="3d")
    np.testing.assert_array_equal(ax.lines[0].get_data_3d()[1], track[1])


@pytest.mark.parametrize(
    ("name", "view"),
    [
        ("pendulum", "xz"),
        ("cart_pole", "xz"),
        ("planar_tree", "xz"),
        ("puma560", "3d"),
        ("spherical_pendulum", "3d"),
        ("satellite", "3d"),
    ],
)
def test_view_is_the_plane_of_motion_if_there_is_one(name, view):
    assert view_of(mechanisms.get(name)) == view


def test_view_in_other_planes():
    for axis, view in (("x", "yz"), ("y", "xz"), ("z", "xy")):
        b = ModelBuilder()
        b.add_body("bar", 0, Revolute(axis), inertia=Inertia(1.0, (0.3, 0.3, 0.3)))
        assert view_of(b.build()) == view


def test_every_mechanism_has_a_stick_figure():
    for entry in mechanisms.entries():
        model = entry.model()
        ax = plot.stick_figure(model, entry.start(model)[0])
        assert ax.name == ("3d" if view_of(model) == "3d" else "rectilinear"), entry.name
        assert len(ax.lines) >= 2, entry.name


def test_stick_figure_ends_where_bodies_end():
    """A rod at its tip, a point mass at the point; a free box has a cross of its three axes."""
    reach = []
    for links in ("rods", "points"):
        model = mechanisms.n_pendulum(1, links, length=0.7)
        bones = skeleton(model)
        ends = [np.linalg.norm(bones.points[j][1]) for _, j in bones.links]
        reach.append(max(ends))
    np.testing.assert_allclose(reach, 0.7, rtol=1e-12)
    b = ModelBuilder()
    b.add_body("wheel", 0, Revolute(), inertia=box((2.0, 4.0, 6.0), mass=3.0))
    bones = skeleton(b.build())
    tips = sorted(float(np.abs(bones.points[j][1]).max()) for _, j in bones.links)
    np.testing.assert_allclose(tips, [1.0, 2.0, 3.0])  # a uniform box is as long as its edges


def test_sliding_joints_and_springs_are_drawn():
    b = ModelBuilder(name="slider")
    b.add_body("cart", 0, Prismatic("x"), (0, 0, 1.0), sphere(0.1, mass=1.0))
    b.add_body("rod", "cart", Revolute("y"), inertia=rod((0, 0, 0), (0, 0, -1), mass=1.0))
    b.add_spring("spring", 0, (0, 0, 0), "rod", (0, 0, -1), 10.0)
    model = b.build()
    bones = skeleton(model)
    assert (len(bones.slides), len(bones.springs)) == (1, 1)
    ax = plot.stick_figure(model, [0.5, 0.0])
    styles = [line.get_linestyle() for line in ax.lines]
    dashed = ax.lines[styles.index("--")]
    np.testing.assert_allclose(dashed.get_xydata(), [[0.0, 1.0], [0.5, 1.0]])
    dotted = ax.lines[styles.index(":")]
    np.testing.assert_allclose(dotted.get_xydata(), [[0.0, 0.0], [0.5, 0.0]], atol=1e-15)


def diamonds(ax):
    (line,) = [line for line in ax.lines if line.get_marker() == "D"]
    return line.get_xydata()


def test_joints_that_close_loops_are_marked():
    """On both sides, where the point of either body is; and each body is drawn up to there."""
    model = mechanisms.four_bar()
    (loop,) = model.loops
    bones = skeleton(model)
    (pair,) = bones.loops
    assert [bones.points[k][0] for k in pair] == [loop.predecessor, loop.successor]
    assert {k for link in bones.links for k in link} >= set(pair)
    closed = assemble(model, mechanisms.entry("four_bar").start(model)[0]).q
    first, second = diamonds(plot.stick_figure(model, closed))
    np.testing.assert_allclose(first, second, atol=1e-9)  # assembled to round-off
    opened = closed + np.array([0.3, 0.0, 0.0])
    ends = [
        point_position(model, opened, body, placement.r)[:2]
        for body, placement in (
            (loop.predecessor, loop.placement_predecessor),
            (loop.successor, loop.placement_successor),
        )
    ]
    found = diamonds(plot.stick_figure(model, opened))
    np.testing.assert_allclose(found, ends, atol=1e-12)
    assert np.linalg.norm(found[0] - found[1]) > 0.1  # a gap that can be seen
    tree = plot.stick_figure(mechanisms.double_pendulum())
    assert diamonds(tree).size == 0


def test_a_rod_ends_at_its_loop_joint():
    """The published rod has more inertia than a uniform one; it must not stick out of its pin."""
    model = mechanisms.slider_crank(rod_length=0.3)
    bones = skeleton(model)
    rod_number = model.number("rod")
    reach = [np.linalg.norm(bones.points[k][1]) for pair, body in zip(bones.links, bones.bodies)
             if body == rod_number for k in pair]  # fmt: skip
    assert max(reach) == pytest.approx(0.3, rel=1e-12)


def test_axes_given_are_used(swing):
    from matplotlib.figure import Figure

    model, solution = swing
    figure = Figure()
    flat, deep = figure.add_subplot(121), figure.add_subplot(122, projection="3d")
    assert plot.stick_figure(model, ax=flat) is flat
    assert plot.energy(model, solution, ax=flat) is flat
    assert plot.path(model, solution, 1, view="3d", ax=deep) is deep
    with pytest.raises(ValueError, match="no projection"):
        plot.stick_figure(model, ax=deep)
    with pytest.raises(ValueError, match="3d"):
        plot.stick_figure(mechanisms.heavy_top(), ax=flat)
    with pytest.raises(ValueError, match="view: expected one of"):
        plot.stick_figure(model, view="zx")


# ---------------------------------------------------------------------- animations


def test_gif_has_the_frames(swing, tmp_path):
    from PIL import Image

    model, solution = swing
    path = animate.save(model, solution, tmp_path / "swing.gif", fps=5, dpi=40)
    with Image.open(path) as image:
        assert image.n_frames == 6
        first = np.asarray(image.convert("L"), dtype=float)
        image.seek(5)
        last = np.asarray(image.convert("L"), dtype=float)
    assert np.abs(first - last).max() > 100  # something moved


@pytest.mark.parametrize("on_path", [False, True])
def test_mp4_has_the_frames(swing, tmp_path, monkeypatch, on_path):
    """Written by ffmpeg of the PATH or of imageio-ffmpeg; ffmpeg itself decodes it again."""
    import imageio_ffmpeg

    program = imageio_ffmpeg.get_ffmpeg_exe()
    monkeypatch.setenv("PATH", str(tmp_path))
    if on_path:
        (tmp_path / "ffmpeg").symlink_to(program)
        monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)  # must not be needed
    model, solution = swing
    path = animate.save(model, solution, tmp_path / "swing.mp4", fps=5, dpi=40)
    assert path.read_bytes()[4:8] == b"ftyp"  # the first box of an MP4 file
    command = [program, "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "gray", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    width, height = 256, 192  # 6.4 by 4.8 inches
    frames = np.frombuffer(raw, dtype=np.uint8).reshape(-1, height, width)
    assert len(frames) == 6
    assert np.abs(frames[0].astype(float) - frames[-1]).max() > 100  # something moved


def test_mp4_says_what_it_needs(swing, tmp_path, monkeypatch):
    model, solution = swing
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    target = tmp_path / "swing.mp4"
    with pytest.raises(RuntimeError, match=r"swing\.mp4.*pip install imageio-ffmpeg"):
        animate.save(model, solution, target)
    assert not target.exists()


def test_frames_follow_the_solution():
    model = mechanisms.heavy_top()
    q0, v0 = mechanisms.entry("heavy_top").start(model)
    dense = simulate(model, q0, v0, T=0.5, dense_output=True, fps=None)
    shown = animate.frames(model, dense, fps=100, speed=0.5)
    assert len(shown.t) == 101
    fine = simulate(model, q0, v0, T=0.5, t_eval=shown.t)
    np.testing.assert_allclose(shown.y, fine.y, atol=1e-6)
    np.testing.assert_allclose(np.sum(shown.y[:4] ** 2, axis=0), 1.0, rtol=1e-12)
    with pytest.raises(ValueError, match="at most 20000 frames"):
        animate.frames(model, dense, fps=1e6)
    with pytest.raises(ValueError, match="speed: expected a positive"):
        animate.frames(model, dense, speed=0.0)
    with pytest.raises(ValueError, match=r"\.html, \.gif or \.mp4"):
        animate.save(model, dense, "top.avi")


def test_frames_of_other_variables_than_positions():
    """Dense output has the variables of the problem, of which positions are made."""
    model, angles = mechanisms.double_pendulum(), [0.5, 0.9]
    problem = as_ivp_minimal(model, lambda y: [y[0], y[1] - y[0]], angles, [0.0, 0.0], (0, 1.0))
    shown = animate.frames(model, solve(problem, dense_output=True, rtol=1e-9), fps=10)
    np.testing.assert_allclose(shown.y[:2, 0], [0.5, 0.4], atol=1e-12)
    model, t = mechanisms.four_bar(), np.linspace(0, 0.2, 7)
    problem = as_dae(model, *mechanisms.entry("four_bar").start(model), (0, 0.2))
    dense, kept = (
        animate.frames(model, solve(problem, method="RADAU5", rtol=1e-9, **options))
        for options in ({"dense_output": True}, {"t_eval": t})
    )
    np.testing.assert_allclose(dense.y, kept.y, atol=1e-6)


def test_a_still_shows_contacts_and_their_forces():
    """A ladder: arrows begin where it touches, as long as the forces there are large."""
    entry = mechanisms.entry("sliding_ladder")
    model = entry.model()
    solution = simulate(model, *entry.start(model), T=0.4, fps=20)
    ax = plot.still(model, solution, 0.35)
    seen = contact_forces(model, solution, states_at(model, solution, np.array([0.35])))
    arrows = [line for line in ax.lines if line.get_color() == plot.FORCE]
    assert len(arrows) == seen.force.shape[1] == 2
    shown = np.array([line.get_xydata() for line in arrows])
    np.testing.assert_allclose(shown[:, 0], seen.point[0][:, [0, 2]], atol=1e-12)
    along, force = shown[:, 1] - shown[:, 0], seen.force[0][:, [0, 2]]
    largest, longest = (np.linalg.norm(x, axis=1).max() for x in (force, along))
    np.testing.assert_allclose(along * largest, force * longest, atol=1e-9)
    assert longest > 0.1
    assert ax.get_title(loc="left").endswith(f"t = 0.35 s; largest contact force {largest:.3g} N")
    with pytest.raises(ValueError, match=r"a time of the run, 0 to 0\.4, received 0\.5"):
        plot.still(model, solution, 0.5)
    pendulum = mechanisms.pendulum()
    bare = plot.still(pendulum, simulate(pendulum, [1.0], T=0.2))
    assert bare.get_title(loc="left") == "pendulum, t = 0.2 s"
