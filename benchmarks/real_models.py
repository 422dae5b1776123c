"""Robots of others: what we, Pinocchio and MuJoCo make of their files.

    pip install mujoco pin trimesh pycollada
    pip install --no-deps example-robot-data pybullet dm_control gymnasium robosuite
    python benchmarks/real_models.py > table.md

For every file: positions, freedoms and mass here, and for each other program that reads it the
largest difference of the joint-space inertia and of inverse dynamics at random states, in parts of
the largest entry. What is refused is read again with the policy "repair". A file whose package is
not installed is left out; `--all` takes every file of these packages and prints only how many are
read, and which differ by more than 1e-10.
"""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from featherstep.model_check import check_file
from multibody import Report, constraints, load_model, mobility

#: Package, and how the path of a file in it ends.
FILES = [
    ("example-robot-data", "robots/ur_description/urdf/ur5_robot.urdf"),
    ("example-robot-data", "robots/panda_description/urdf/panda.urdf"),
    ("example-robot-data", "robots/talos_data/robots/talos_full_v2.urdf"),
    ("example-robot-data", "robots/anymal_c_simple_description/urdf/anymal.urdf"),
    ("example-robot-data", "robots/baxter_description/urdf/baxter.urdf"),
    ("example-robot-data", "robots/pr2_description/urdf/pr2.urdf"),
    ("example-robot-data", "robots/icub_description/robots/icub.urdf"),
    ("example-robot-data", "robots/tiago_description/robots/tiago.urdf"),
    ("example-robot-data", "robots/romeo_description/urdf/romeo.urdf"),
    ("example-robot-data", "robots/allegro_hand_description/urdf/allegro_right_hand.urdf"),
    ("example-robot-data", "robots/solo_description/robots/solo12.urdf"),
    ("example-robot-data", "robots/cassie_description/robots/cassie.sdf"),
    ("example-robot-data", "robots/cassie_description/robots/cassie_v2.sdf"),
    ("pybullet", "pybullet_data/kuka_iiwa/model.urdf"),
    ("pybullet", "pybullet_data/laikago/laikago.urdf"),
    ("pybullet", "pybullet_data/quadruped/minitaur.urdf"),
    ("pybullet", "pybullet_data/kuka_iiwa/kuka_with_gripper.sdf"),
    ("dm_control", "dm_control/suite/humanoid_CMU.xml"),
    ("dm_control", "dm_control/suite/dog.xml"),
    ("dm_control", "dm_control/suite/quadruped.xml"),
    ("dm_control", "dm_control/locomotion/walkers/assets/rodent.xml"),
    ("dm_control", "dm_control/third_party/kinova/jaco_arm.xml"),
    ("gymnasium", "gymnasium/envs/mujoco/assets/ant.xml"),
    ("gymnasium", "gymnasium/envs/mujoco/assets/humanoid.xml"),
    ("robosuite", "assets/robots/panda/robot.xml"),
    ("robosuite", "assets/robots/sawyer/robot.xml"),
    ("robosuite", "assets/robots/ur5e/robot.xml"),
    ("robosuite", "assets/robots/spot/robot.xml"),
]
ENDINGS = (".urdf", ".sdf", ".xml")
AGREE = 1e-10


def files_of(package: str) -> list[Path]:
    try:
        listed = distribution(package).files or []
    except PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in listed if file.suffix in ENDINGS]


def read(path: Path, report: Report):
    folder = {} if path.suffix == ".urdf" else {"includes": path.parent}
    return load_model(path, report=report, **folder)


def row(path: Path) -> list[str]:
    name = "/".join(path.parts[-2:])
    for policy in ("warn", "repair"):
        report = Report(policy=policy)
        try:
            model = read(path, report)
            break
        except (ValueError, TypeError) as error:
            why = getattr(error, "message", error)
    else:
        return [name, f"refused: {why}"[:160]]
    mass = sum(float(body.inertia.mass) for body in model.bodies)
    ours = f"{model.nq - model.n_states}, {model.nv}, {mass:.4g} kg"
    if policy == "repair":
        ours += f" (repaired in {sum(r.what == 'repaired' for r in report.remarks)} places)"
    if model.loops:
        q = model.neutral()
        gap = abs(constraints(model, q).delta).max()
        free = mobility(model, q).mobility
        ours += f", {len(model.loops)} loops closed to {gap:.0e}, mobility {free}"
    cells = {"pinocchio": "", "mujoco": ""}
    for check in check_file(path, model):
        cells[check.peer] = check.problem[:60] or f"H {check.inertia:.0e}, ID {check.forces:.0e}"
    return [name, ours, str(len(report.remarks)), *cells.values()]


def everything() -> None:
    packages = sorted({package for package, _ in FILES})
    counts, bad, alike = {}, [], 0
    for path in [path for package in packages for path in files_of(package)]:
        counts.setdefault(path.suffix, [0, 0])[0] += 1
        try:
            model = read(path, Report())
        except (ValueError, TypeError):
            continue
        counts[path.suffix][1] += 1
        for check in check_file(path, model, samples=1):
            if max(check.inertia, check.forces) > AGREE:
                bad.append(f"{path}: {check}")
            alike += max(check.inertia, check.forces) <= AGREE
    for ending, (there, ok) in counts.items():
        print(f"{ending}: {ok} of {there} files are read")
    print(f"{alike} comparisons agree to {AGREE:g}; these do not:", *bad, sep="\n")


def main() -> None:
    warnings.simplefilter("ignore")
    if "--all" in sys.argv[1:]:
        everything()
        return
    print("| file | nq, nv, mass here | remarks | Pinocchio | MuJoCo |\n|---|---|---|---|---|")
    for package, end in FILES:
        for path in files_of(package):
            if str(path).endswith(end):
                print("| " + " | ".join(row(path)) + " |", flush=True)


if __name__ == "__main__":
    main()
