"""Meshes of robots: mass and moments, where files may be, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from multibody import Report, load_model
from multibody.io import ModelFileError, loads
from multibody.io.geometry import combined, mesh_part, meshes, simple_part

trimesh = pytest.importorskip("trimesh")


def ring():
    """A ring with a box beside it: neither convex nor seen whole from its middle."""
    beside = trimesh.creation.box((0.3, 0.2, 0.5))
    beside.apply_translation((1.2, 0.4, 0.1))
    mesh = trimesh.util.concatenate([trimesh.creation.torus(0.5, 0.1), beside])
    mesh.apply_transform(trimesh.transformations.euler_matrix(0.3, 0.5, 0.7))
    mesh.apply_translation((0.3, -0.2, 1.0))
    return mesh


SHAPES = {
    "box": ((0.2, 0.5, 0.9), trimesh.creation.box((0.2, 0.5, 0.9)), 1e-12),
    "sphere": ((0.7,), trimesh.creation.icosphere(5, 0.7), 2e-3),
    "cylinder": ((0.3, 1.1), trimesh.creation.cylinder(0.3, 1.1, sections=400), 2e-4),
    "capsule": ((0.3, 1.1), trimesh.creation.capsule(1.1, 0.3, count=[80, 80]), 5e-3),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_have_the_moments_of_their_meshes(shape):
    size, mesh, near = SHAPES[shape]
    mesh.apply_translation(-mesh.center_mass)
    found = mesh_part(mesh.vertices, mesh.faces)
    exact = simple_part(shape, size)
    assert found.mass == pytest.approx(exact.mass, rel=near)
    np.testing.assert_allclose(found.central, exact.central, rtol=2 * near, atol=near * 1e-2)
    hull = mesh_part(mesh.vertices, mesh.faces, "convex")
    np.testing.assert_allclose(hull.central, found.central, rtol=1e-9, atol=1e-12)


def test_moments_equal_those_of_trimesh():
    mesh = ring()
    part = mesh_part(mesh.vertices, mesh.faces)
    assert part.mass == pytest.approx(mesh.volume, rel=1e-12)
    np.testing.assert_allclose(part.centre, mesh.center_mass, atol=1e-12)
    np.testing.assert_allclose(part.central, mesh.moment_inertia, rtol=1e-9, atol=1e-12)
    moved = part.placed(np.eye(3), np.array([1.0, 2.0, 3.0]))
    pair = combined([part.scaled(2.0), moved])
    assert pair.mass == pytest.approx(3 * mesh.volume)


@pytest.mark.parametrize("how", ["legacy", "exact", "convex"])
def test_meshes_weigh_what_they_weigh_in_mujoco(how, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "parts").mkdir()
    ring().export(tmp_path / "parts" / "ring.stl")
    text = f"""<mujoco><compiler meshdir="parts"/>
      <asset><mesh file="ring.stl" inertia="{how}" scale="1 2 -1.5" refpos="0.1 0 0"
                   refquat="0.9 0.1 0.3 0.2"/></asset>
      <worldbody><body pos="0 0 1"><joint axis="0 1 0" pos="0 0.1 0"/>
        <geom type="mesh" mesh="ring" pos="1 0 0" euler="10 20 30" density="700"/>
        <body pos="1 0 0"><joint axis="1 0 0"/>
          <geom type="mesh" mesh="ring" mass="3" quat="1 1 0 0"/></body>
      </body></worldbody></mujoco>"""
    (tmp_path / "arm.xml").write_text(text)
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    model = load_model(tmp_path / "arm.xml", report=Report())
    data = mujoco.MjData(theirs)
    data.qpos[:] = [0.4, -0.7]
    mujoco.mj_forward(theirs, data)
    H = np.zeros((2, 2))
    mujoco.mj_fullM(theirs, data, H)
    from multibody import crba

    # STL holds four-byte numbers, and MuJoCo keeps meshes in them.
    single = 2e-6
    np.testing.assert_allclose(crba(model, [0.4, -0.7]), H, rtol=single, atol=single * H.max())


URDF = """<robot name="r"><link name="base_link"/>
  <link name="part"><visual><geometry><mesh filename="{0}" scale="2 2 2"/></geometry>
    <material name="m"><color rgba="1 0 0 1"/></material></visual></link>
  <joint name="j" type="fixed"><parent link="base_link"/><child link="part"/></joint></robot>"""


def robot(folder, address):
    file = folder / "robot.urdf"
    file.write_text(URDF.format(address))
    return file


def test_links_weigh_what_their_shapes_do(tmp_path):
    mesh = ring()
    mesh.export(tmp_path / "ring.obj")
    report = Report()
    model = load_model(robot(tmp_path, "ring.obj"), density=500.0, meshes=True, report=report)
    part = model.bodies[-1].inertia
    assert part.mass == pytest.approx(500.0 * 8 * mesh.volume, rel=1e-6)
    np.testing.assert_allclose(part.centre, 2 * mesh.center_mass, rtol=1e-6)
    assert model.solids[0].shape == "mesh"
    assert model.solids[0].colour == (1.0, 0.0, 0.0, 1.0)
    assert "from its shapes" in str(report)
    assert load_model(robot(tmp_path, "ring.obj"), density=500.0, report=Report()).solids == ()


def test_sdf_computes_inertias_on_request(tmp_path):
    text = """<sdf version="1.11"><model name="m"><link name="a"><inertial auto="true">
      <density>100</density></inertial>
      <collision name="c"><pose>1 0 0 0 0 0</pose><geometry><box><size>1 2 3</size></box></geometry>
      </collision><collision name="d"><density>50</density><geometry><ellipsoid>
      <radii>1 1 2</radii></ellipsoid></geometry></collision></link></model></sdf>"""
    body = loads(text, "sdf", report=Report()).bodies[0].inertia
    ellipsoid = 50 * 4 / 3 * np.pi * 2
    assert body.mass == pytest.approx(600.0 + ellipsoid)
    assert body.centre[0] == pytest.approx(600.0 / body.mass)
    with pytest.raises(ModelFileError, match="no <collision>"):
        loads(text.replace("collision", "visual"), "sdf", report=Report())


def test_open_meshes_are_doubtful(tmp_path):
    mesh = trimesh.creation.box((1.0, 1.0, 1.0))
    mesh.update_faces(np.arange(len(mesh.faces)) > 0)
    mesh.export(tmp_path / "open.stl")
    file = robot(tmp_path, "open.stl")
    report = Report()
    load_model(file, density=1.0, report=report)
    assert "not watertight" in str(report)
    assert "doubtful" in str(report)
    mended = load_model(file, density=1.0, report=Report(policy="repair"))
    assert mended.bodies[-1].inertia.mass == pytest.approx(8.0)
    with pytest.raises(ModelFileError, match="watertight"):
        load_model(file, density=1.0, policy="strict")


def test_meshes_are_found_where_they_may_be(tmp_path):
    package = tmp_path / "arm_description"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    ring().export(package / "meshes" / "ring.stl")
    address = "package://arm_description/meshes/ring.stl"
    inside = robot(package / "urdf", address)
    assert load_model(inside, meshes=True, report=Report()).solids
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file = robot(elsewhere, address)
    assert load_model(file, meshes=tmp_path, report=Report()).solids
    assert load_model(file, meshes=[elsewhere, package], report=Report()).solids
    text = file.read_text()
    assert loads(text, "urdf", meshes=tmp_path, report=Report()).solids
    report = Report()
    assert loads(text, "urdf", meshes=True, report=report).solids == ()
    assert "meshes=FOLDER" in str(report)
    with pytest.raises(ModelFileError, match="meshes=False"):
        load_model(inside, density=1.0, meshes=False)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("../secret.stl", "not in a folder"),
        ("package://robots/../secret.stl", "not in a folder"),
        ("package://../secret.stl", "not in a folder"),
        ("link.stl", "not in a folder"),
        ("{0}/secret.stl", "not in a folder"),
        ("https://example.org/x.stl", "on a network"),
        ("robot.urdf", "expected one of stl"),
        ("bomb.dae", "document type"),
        ("damaged.stl", "cannot be read|1 to"),
        ("nan.obj", "cannot be read|finite"),
        ("x" * 5000, "no path|not there"),
        ("a\x00b".replace("\x00", "&#9;"), "not there"),
    ],
)
def test_what_is_not_read(address, words, tmp_path):
    folder = tmp_path / "robots"
    folder.mkdir()
    ring().export(tmp_path / "secret.stl")
    (folder / "link.stl").symlink_to(tmp_path / "secret.stl")
    (folder / "bomb.dae").write_text('<!DOCTYPE x [<!ENTITY a "aaa">]><COLLADA>&a;</COLLADA>')
    (folder / "damaged.stl").write_bytes(b"\x00" * 80 + b"\xff\xff\xff\x7f" + b"\x01" * 50)
    (folder / "nan.obj").write_text("v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(ModelFileError, match=words):
        load_model(robot(folder, address.format(tmp_path)), density=1.0)
    report = Report()
    assert load_model(folder / "robot.urdf", meshes=True, report=report).solids == ()
    assert report.remarks


def test_large_meshes_are_refused_before_they_are_read(tmp_path, monkeypatch):
    ring().export(tmp_path / "ring.stl")
    monkeypatch.setattr(meshes, "MOST_BYTES", 1000)
    with pytest.raises(ModelFileError, match="MB"):
        load_model(robot(tmp_path, "ring.stl"), density=1.0)
    monkeypatch.setattr(meshes, "MOST_BYTES", 10**8)
    monkeypatch.setattr(meshes, "MOST_TRIANGLES", 10)
    with pytest.raises(ModelFileError, match="triangles"):
        load_model(robot(tmp_path, "ring.stl"), density=1.0)


def test_shapes_of_files_are_drawn():
    text = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body><freejoint/>
      <geom type="capsule" fromto="0 0 0 1 0 0" size="0.1" rgba="0 1 0 1"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0 0 1"/><geom size="0.2" group="4"/>
      </body></worldbody></mujoco>"""
    model = loads(text, report=Report())
    assert [(s.shape, s.body) for s in model.solids] == [("capsule", 1), ("box", 1)]
    capsule, box = model.solids
    np.testing.assert_allclose(capsule.size, (0.1, 1.0))
    np.testing.assert_allclose(capsule.placement.r, (0.5, 0, 0))
    np.testing.assert_allclose(np.abs(capsule.placement.E[2]), (1, 0, 0), atol=1e-12)
    np.testing.assert_allclose(box.size, (0.2, 0.4, 0.6))
    sdf = """<sdf version="1.7"><model name="m"><link name="a"><pose>0 0 1 0 0 0</pose>
      <inertial><mass>1</mass></inertial><visual name="v"><pose>0.5 0 0 0 0 0</pose><geometry>
      <cylinder><radius>0.1</radius><length>2</length></cylinder></geometry></visual></link>
      <joint name="j" type="revolute"><parent>world</parent><child>a</child>
      <pose>0 0 0.3 0 0 0</pose><axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"""
    (solid,) = loads(sdf, report=Report()).solids
    # The frame of the body is the joint's, 0.3 m above the link's.
    np.testing.assert_allclose(solid.placement.r, (0.5, 0, -0.3), atol=1e-15)
