"""The page in three dimensions holds the motion, needs nothing else, and shows true sizes."""

from __future__ import annotations

import base64
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from multibody import (
    Free,
    Inertia,
    ModelBuilder,
    Prismatic,
    Revolute,
    box,
    cylinder,
    mechanisms,
    positions,
    rod,
    simulate,
    sphere,
)
from multibody.algebra.inertia import mcI
from multibody.pictures import animate
from multibody.pictures.appearance import appearance
from multibody.pictures.reduced_mesh import reduced
from multibody.pictures.skeleton import skeleton
from multibody.runs.simulate import poses

# Numbers of four bytes, about the middle of the scene.
SINGLE = 1e-6


def scene_of(page: str) -> dict:
    return json.loads(re.search(r"const scene = (.*);\n", page).group(1).replace("<\\/", "</"))


def unpacked(text: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(shape)


@pytest.fixture(scope="module")
def swing():
    model = mechanisms.double_pendulum()
    return model, simulate(model, [1.5, 0.3], T=1.0, fps=30)


def test_page_holds_the_motion_and_needs_nothing_else(swing):
    model, solution = swing
    page = animate.html(model, solution, fps=10, trace=("lower", (0, 0, -1)))
    scene = scene_of(page)
    (run,) = scene["runs"]
    shown = animate.frames(model, solution, fps=10)
    tips = positions(model, shown, "lower", (0, 0, -1)).T
    assert len(run["t"]) == 11
    data = unpacked(run["poses"], 11, 3, 7)
    middle = -data[0, 0, :3]  # the base stands at the origin
    np.testing.assert_allclose(unpacked(run["trail"], 11, 3) + middle, tips, atol=SINGLE)
    R, p = poses(model, shown)
    np.testing.assert_allclose(data[:, :, :3] + middle, p, atol=SINGLE)
    w, x, y, z = np.moveaxis(data[:, :, 3:], 2, 0)
    np.testing.assert_allclose(2 * (x * z + w * y), R[:, :, 0, 2], atol=SINGLE)
    assert scene["view"] == "xz"
    for outside in ("http", "src=", "import(", "@import", "url(", "<link", "fetch("):
        assert outside not in page
    assert len(page) < 60_000


def test_page_shows_loops_that_close():
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    scene = scene_of(animate.html(model, simulate(model, *entry.start(model), T=0.2), fps=10))
    (bar,) = scene["bars"]
    data = unpacked(scene["runs"][0]["poses"], -1, 4, 7)
    ends = []
    for body, point in ((bar["a"], bar["pa"]), (bar["b"], bar["pb"])):
        w, _, _, z = data[-1, body, 3:].astype(float)
        turn = 2 * np.arctan2(z, w)  # everything turns about z
        c, s = np.cos(turn), np.sin(turn)
        turned = [c * point[0] - s * point[1], s * point[0] + c * point[1], point[2]]
        ends.append(data[-1, body, :3] + turned)
    np.testing.assert_allclose(ends[0], ends[1], atol=10 * SINGLE)


def test_page_survives_a_wicked_name():
    b = ModelBuilder(name="</script><!--<b>$x & @script@ co")
    b.add_body("rod", 0, Revolute("y"), inertia=rod((0, 0, 0), (0, 0, -1), mass=1.0))
    model = b.build()
    page = animate.html(model, simulate(model, T=0.1))
    assert page.count("</script>") == page.count("<script>") == 1
    assert "<!--" not in page
    assert scene_of(page)["name"] == model.name
    assert "<title>&lt;/script&gt;" in page


def test_every_mechanism_can_be_shown():
    for name in mechanisms.names():
        entry = mechanisms.entry(name)
        model = entry.model()
        q, v = entry.start(model)
        states = np.column_stack([np.concatenate([q, v])] * 2)
        page = animate.html(model, SimpleNamespace(t=np.array([0.0, 0.1]), y=states))
        scene = scene_of(page)
        assert scene["solids"], name
        assert 0.0 < scene["size"] < 1e4, name


SOLIDS = {
    "box": (box((1.0, 2.0, 3.0), mass=2.0, com=(0.1, 0, 0)), (1.0, 2.0, 3.0)),
    "sphere": (sphere(0.7, mass=2.0), (0.7,)),
    "cylinder": (cylinder(0.2, 1.5, mass=3.0, axis=(1, 2, 2)), (0.2, 1.5)),
    "disc": (cylinder(0.8, 0.1, mass=3.0, axis=(1, 0, 2), com=(1, 1, 1)), (0.8, 0.1)),
}


@pytest.mark.parametrize("kind", SOLIDS)
def test_solids_of_inertias_have_these_inertias(kind):
    inertia, sizes = SOLIDS[kind]
    b = ModelBuilder()
    b.add_body("it", 0, Free(), inertia=inertia)
    model = b.build()
    look = appearance(model, skeleton(model), 8.0)
    (solid,) = [part for part in look.parts if part.shape != "capsule"]
    assert solid.shape == ("cylinder" if kind == "disc" else kind)
    np.testing.assert_allclose(sorted(solid.size), sorted(sizes), rtol=1e-9)
    np.testing.assert_allclose(solid.p, inertia.centre, atol=1e-12)
    make = {"box": box, "sphere": sphere, "cylinder": cylinder}[solid.shape]
    arguments = (solid.size,) if kind == "box" else solid.size
    own = make(*arguments, mass=inertia.mass).central
    again = mcI(inertia.mass, solid.p, solid.R @ own @ solid.R.T)
    np.testing.assert_allclose(again.array, inertia.array, atol=1e-9)


def test_several_runs_keep_their_names_and_lengths(swing):
    model, solution = swing
    shorter = simulate(model, [1.5, 0.3], T=0.5, method="RK4", step=0.01)
    scene = scene_of(animate.html(model, {"long": solution, "short": shorter}, fps=10))
    assert [(run["name"], len(run["t"])) for run in scene["runs"]] == [("long", 11), ("short", 6)]
    named = scene_of(animate.html(model, [solution, shorter, shorter], fps=10))["runs"]
    assert len({run["name"] for run in named}) == 3
    with pytest.raises(ValueError, match="pages only"):
        animate.save(model, [solution, shorter], "both.gif")
    with pytest.raises(ValueError, match="at least one run"):
        animate.html(model, {})
    later = SimpleNamespace(t=solution.t + 1.0, y=solution.y)
    with pytest.raises(ValueError, match="begin at one time"):
        animate.html(model, [solution, later])


def test_reactions_are_the_weight_of_what_hangs():
    b = ModelBuilder(name="hanging")
    b.add_body("rod", 0, Revolute("y"), inertia=rod((0, 0, 0), (0, 0, -1), mass=2.0))
    b.add_body("end", "rod", Revolute("y"), (0, 0, -1), Inertia(1.0, (0, 0, -0.5)))
    model = b.build()
    solution = simulate(model, [0.0, 0.0], T=0.2)
    scene = scene_of(animate.html(model, solution, fps=10, reactions=True))
    assert len(scene["arrows"]) == 2
    arrows = unpacked(scene["runs"][0]["arrows"], -1, 2, 2, 3)
    lengths = arrows[:, :, 1] - arrows[:, :, 0]
    np.testing.assert_allclose(lengths[..., :2], 0.0, atol=SINGLE)
    np.testing.assert_allclose(lengths[:, 0, 2] / lengths[:, 1, 2], 3.0, rtol=1e-5)
    with pytest.raises(ValueError, match="forces that acted"):
        animate.html(model, SimpleNamespace(t=solution.t, y=solution.y), reactions=True)


@pytest.mark.parametrize("drawn", [True, False])
def test_no_pole_holds_what_has_looks_of_its_own(drawn):
    b = ModelBuilder(name="high")
    b.add_body("box", 0, Revolute("y"), (0, 0, 5), sphere(0.1, mass=1.0))
    if drawn:
        b.add_solid("box", "box", (1, 1, 1))
    model = b.build()
    parts = appearance(model, skeleton(model), 1.0).parts
    assert any(part.body == 0 for part in parts) != drawn


def test_forces_of_several_runs_have_one_scale():
    model = mechanisms.pendulum()
    runs = {"low": simulate(model, [0.1], T=2.0), "high": simulate(model, [3.0], T=2.0)}
    scene = scene_of(animate.html(model, runs, fps=30, reactions=True))
    drawn = {}
    for run in scene["runs"]:
        arrows = unpacked(run["arrows"], -1, 1, 2, 3)
        drawn[run["name"]] = np.linalg.norm(arrows[:, 0, 1] - arrows[:, 0, 0], axis=1).max()
    force = {
        name: np.linalg.norm(run.observed.reactions["bob"][3:], axis=0).max()
        for name, run in runs.items()
    }
    # Frames and steps meet the largest force at slightly different times.
    assert drawn["high"] / drawn["low"] == pytest.approx(force["high"] / force["low"], rel=0.05)
    assert scene["longest"] == pytest.approx(force["high"], rel=0.05)


def test_reactions_and_contact_forces_together():
    entry = mechanisms.entry("box_stack")
    model = entry.model()
    solution = simulate(model, *entry.start(model), T=0.2)
    scene = scene_of(animate.html(model, solution, fps=10, reactions=True))
    kinds = [arrow["what"] for arrow in scene["arrows"]]
    assert set(kinds) == {"contact", "joint"}
    assert kinds.count("joint") == model.n_bodies
    arrows = unpacked(scene["runs"][0]["arrows"], -1, len(kinds), 2, 3)
    metres = np.linalg.norm(arrows[..., 1, :] - arrows[..., 0, :], axis=2)
    assert metres.max() == pytest.approx(0.25 * scene["size"], rel=1e-5)


def test_solids_are_checked_and_change_no_dynamics():
    def built(*solid, **more):
        b = ModelBuilder(name="door")
        b.add_body("leaf", 0, Prismatic("x"), inertia=sphere(0.1, mass=1.0))
        if solid:
            b.add_solid("leaf", *solid, **more)
        return b.build()

    assert built("box", (1, 2, 3)) == built()
    corners, triangle = [[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]
    assert built("mesh", vertices=corners, faces=triangle).solids[0].faces.shape == (1, 3)
    for solid, more, words in (
        (("cube", 1.0), {}, "shape: expected one of"),
        (("box", (1, 2)), {}, "expected x, y, z"),
        (("sphere", -1.0), {}, "positive lengths"),
        (("sphere", np.nan), {}, "."),
        (("sphere", 1e300), {}, "positive lengths"),
        (("sphere", 1.0), {"colour": (2, 0, 0)}, "from 0 to 1"),
        (("sphere", 1.0), {"vertices": corners}, "belong to meshes"),
        (("mesh",), {"vertices": corners, "faces": [[0, 1, 3]]}, "numbers from 0 to 2"),
        (("mesh",), {"vertices": corners, "faces": [[0.5, 1, 2]]}, "numbers of vertices"),
    ):
        with pytest.raises(ValueError, match=words):
            built(*solid, **more)


def test_coarse_meshes_keep_their_extent():
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 200), np.linspace(0.01, np.pi - 0.01, 100))
    points = np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)], -1).reshape(-1, 3)
    i = (np.arange(99)[:, None] * 200 + np.arange(199)).ravel()
    faces = np.concatenate([np.stack([i, i + 1, i + 201], 1), np.stack([i, i + 201, i + 200], 1)])
    few, triangles = reduced(points, faces, 1500)
    assert 300 < len(triangles) <= 1500
    np.testing.assert_allclose(np.linalg.norm(few, axis=1), 1.0, atol=0.05)
    np.testing.assert_allclose(np.ptp(few, axis=0), 2.0, atol=0.1)
