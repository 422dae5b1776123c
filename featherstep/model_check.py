"""A model file read here against the same file read by Pinocchio or MuJoCo, at random states.

Compared are the numbers of positions and freedoms, the total mass, the joint-space inertia H and
the forces of inverse dynamics, by the largest difference in parts of the largest entry. Forces in
joints (damping, springs, stops) are left out on our side, as the other programs have none, or other
ones, there; armature stays where the other program has it.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from multibody import ID, crba
from multibody.algebra.orientation.quaternions import to_matrix
from multibody.io.shared.xml import parse_xml
from multibody.joints import Fixed, Free, Planar, Spherical
from multibody.model import Model

__all__ = ["Check", "check_file", "peers"]

Array = Any
#: Which programs read which endings.
READERS = {".urdf": ("pinocchio", "mujoco"), ".xml": ("mujoco",)}


@dataclass(frozen=True)
class Check:
    """What another program made of a file, and how far ours is from it.

    Attributes
    ----------
    peer
        Name of the program.
    nq, nv, mass
        There; a rotation may have other numbers of positions there.
    inertia, forces
        Largest differences of H and of inverse dynamics, in parts of the largest entry; NaN if they
        were not compared.
    problem
        Why it could not read the file, or why nothing was compared; empty otherwise.
    """

    peer: str
    nq: int = 0
    nv: int = 0
    mass: float = np.nan
    inertia: float = np.nan
    forces: float = np.nan
    problem: str = ""


def peers(path: str | Path) -> list[str]:
    """Programs that are installed and may read a file."""
    names = READERS.get(Path(path).suffix.lower(), ())
    return [name for name in names if importlib.util.find_spec(name) is not None]


def check_file(path: str | Path, model: Model, samples: int = 3, seed: int = 0) -> list[Check]:
    """Compare a model with what the programs that are installed make of its file."""
    found = []
    for peer in peers(path):
        try:
            compare = _Pinocchio if peer == "pinocchio" else _MuJoCo
            other = compare(Path(path), model)
        except Exception as error:  # whatever the other program raises is its answer
            words = str(error).strip().splitlines() or [type(error).__name__]
            found.append(Check(peer, problem=f"cannot read it: {words[0]:.100}"))
            continue
        found.append(_compare(peer, other, model, samples, seed))
    return found


def _bare(model: Model, armature: bool) -> Model:
    """The model without forces in its joints."""
    none: dict[str, Any] = {"damping": np.zeros(0), "stiffness": np.zeros(0), "rest": np.zeros(0)}
    none["limits"] = np.zeros((0, 4))
    if not armature:
        none["armature"] = np.zeros(0)
    bodies = tuple(replace(body, **none) for body in model.bodies)
    return replace(model, bodies=bodies, loops=(), springs=(), constraints=(), contacts=(),
                   elements=(), solids=())  # fmt: skip


def _compare(peer: str, other: Any, model: Model, samples: int, seed: int) -> Check:
    facts: dict[str, Any] = {"nq": other.nq, "nv": other.nv, "mass": other.mass}
    if other.nv - other.held != model.nv:
        return Check(peer, **facts, problem=f"{other.nv} freedoms, not {model.nv}")
    if other.problem:
        return Check(peer, **facts, problem=other.problem)
    ours = _bare(model, armature=peer == "mujoco")
    rng = np.random.default_rng(seed)
    far = [0.0, 0.0]
    for _ in range(samples):
        q, (v, a) = ours.random(rng), rng.normal(size=(2, ours.nv))
        H, tau = other.at(q, v, a)
        mine = crba(ours, q), ID(ours, q, v, a)
        for k, (x, y) in enumerate(zip((H, tau), mine)):
            size = float(np.abs(y).max(initial=0.0)) or 1.0
            far[k] = max(far[k], float(np.abs(x - y).max(initial=0.0)) / size)
    return Check(peer, **facts, inertia=far[0], forces=far[1])


class _Pinocchio:
    """A URDF in Pinocchio, with the root fixed."""

    def __init__(self, path: Path, model: Model) -> None:
        import pinocchio

        self.pin = pinocchio
        self.model = pinocchio.buildModelFromUrdf(str(path))
        self.data = self.model.createData()
        self.nq, self.nv = self.model.nq, self.model.nv
        self.mass = float(sum(inertia.mass for inertia in self.model.inertias))
        self.problem = ""
        self.held = 0  # freedoms of joints that are fixed here, because they move no mass
        children = {}
        root = parse_xml(path.read_text("utf-8-sig"), str(path))
        for joint in root.all("joint"):
            child = joint.first("child")
            if child is not None:
                children[joint.text("name")] = child.text("link")
        self.places = []
        for k in range(1, self.model.njoints):
            name = children.get(self.model.names[k], "")
            body = model.number(name if name != "base" else "base(link)") - 1
            joint = self.model.joints[k]
            ours = model.bodies[body].joint
            if isinstance(ours, Fixed):
                self.held += joint.nv
                continue
            if isinstance(ours, Planar | Spherical):
                self.problem = f"a {ours.kind} joint: not compared"
            self.places.append((ours, model.q_index[body], model.v_index[body], joint))

    def at(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        there = self.pin.neutral(self.model)
        place = np.zeros(len(v), dtype=int)  # of our velocities there
        for ours, at, speeds, joint in self.places:
            k = joint.idx_q
            own = np.arange(joint.nv) + joint.idx_v
            place[speeds] = own
            if isinstance(ours, Free):
                w, x, y, z, *p = q[at]
                there[k : k + 7] = [*p, x, y, z, w]
                place[speeds] = np.roll(own, 3)
            elif joint.nq == 2:
                there[k : k + 2] = np.cos(q[at][0]), np.sin(q[at][0])
            else:
                there[k] = q[at][0]
        pin = self.pin
        upper = np.triu(pin.crba(self.model, self.data, there))
        H = upper + np.triu(upper, 1).T
        speed, rate = np.zeros((2, self.nv))
        speed[place], rate[place] = v, a
        tau = pin.rnea(self.model, self.data, there, speed, rate)
        return H[np.ix_(place, place)], tau[place]


class _MuJoCo:
    """A file in MuJoCo."""

    def __init__(self, path: Path, model: Model) -> None:
        import mujoco

        self.mj = mujoco
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.data = mujoco.MjData(self.model)
        self.nq, self.nv = self.model.nq, self.model.nv
        self.mass = float(self.model.body_mass.sum())
        self.problem = ""
        self.held = 0
        joints = [body for body in range(model.n_bodies) if not _fixed(model, body)]
        if path.suffix.lower() == ".urdf":
            root = parse_xml(path.read_text("utf-8-sig"), str(path))
            links = {j.text("name"): j.first("child") for j in root.all("joint")}
            named = [self.model.joint(k).name for k in range(self.model.njnt)]
            joints = []
            for name in named:
                link = links.get(name)
                joints.append(-1 if link is None else model.number(link.text("link")) - 1)
            if -1 in joints:
                self.problem = "joints without names: not compared"
        self.places = [(model.bodies[k].joint, model.q_index[k], model.v_index[k]) for k in joints]
        if self.model.njnt != len(self.places) and self.nv == model.nv:
            self.problem = "other joints: not compared"

    def at(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        model, data = self.model, self.data
        there, T = np.array(model.qpos0), np.zeros((self.nv, self.nv))
        turned = np.zeros(self.nv)  # rate of T, times v
        for k, (ours, at, speeds) in enumerate(self.places):
            start, dof = model.jnt_qposadr[k], model.jnt_dofadr[k]
            columns = np.arange(speeds.start, speeds.stop)
            if isinstance(ours, Free):
                there[start : start + 7] = [*q[at][4:], *q[at][:4]]
                T[dof : dof + 3, columns[3:]] = to_matrix(q[at][:4])
                T[dof + 3 : dof + 6, columns[:3]] = np.eye(3)
                turned[dof : dof + 3] = to_matrix(q[at][:4]) @ np.cross(*v[speeds].reshape(2, 3))
            elif isinstance(ours, Spherical):
                there[start : start + 4] = q[at]
                T[dof : dof + 3, columns] = np.eye(3)
            else:
                there[start] += q[at][0]
                T[dof, columns[0]] = 1.0
        data.qpos[:], data.qvel[:] = there, T @ v
        self.mj.mj_forward(model, data)
        H = np.zeros((self.nv, self.nv))
        self.mj.mj_fullM(model, data, H)
        tau = H @ (T @ a + turned) + data.qfrc_bias
        return T.T @ H @ T, T.T @ tau


def _fixed(model: Model, body: int) -> bool:
    return isinstance(model.bodies[body].joint, Fixed)
