"""Spoiled files of robots and models: ``python -m tests.fuzz_files --count 100000 --seed 1``.

Files of every format are changed at random: bytes, numbers, attributes, whole elements; hostile
things are put in (entities, includes that lead elsewhere, numbers that are none). A file may be
refused by a `ModelFileError` (a ValueError) that says where, or be read. A finding is any other
exception, a file that takes more than a second of the processor, and nonsense that was accepted:
masses that are negative or not finite, frames that are no rotations, an inertia matrix that is not
finite, or not positive without a word in the report, a model that cannot be written and read again.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import multibody as mb
from multibody import Report, mechanisms
from multibody.io import dumps, loads
from tests.fuzz import spoiled

#: Seconds of the processor for one file.
SLOWEST = 1.0
#: How far H may be from positive: rounding.
ROUNDING = 1e-9

URDF = """<?xml version="1.0"?>
<robot name="arm"><material name="blue"><color rgba="0 0 1 1"/></material>
  <link name="base_link"/>
  <link name="upper"><inertial><origin xyz="0 0 0.3" rpy="0.1 0 0"/><mass value="2"/>
    <inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.2" iyz="0" izz="0.15"/></inertial>
    <visual><geometry><box size="0.1 0.1 0.6"/></geometry><material name="blue"/></visual>
    <collision><geometry><mesh filename="package://arm/upper.stl"/></geometry></collision></link>
  <link name="lower"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.2" izz="0.15"/></inertial>
    <visual><geometry><cylinder radius="0.1" length="1"/></geometry></visual></link>
  <link name="hand"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>
  </link>
  <joint name="a" type="revolute"><parent link="base_link"/><child link="upper"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 1" rpy="0 0 1.5"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="b" type="prismatic"><parent link="upper"/><child link="lower"/><axis xyz="0 0 1"/>
    <dynamics damping="0.1" friction="0.2"/></joint>
  <joint name="c" type="continuous"><parent link="lower"/><child link="hand"/>
    <mimic joint="a" multiplier="2" offset="0.1"/></joint>
</robot>
"""

SDF = """<sdf version="1.7"><model name="m"><pose>0 0 1 0 0 0</pose>
  <link name="left"><pose>0 0 0 0 0 1.57</pose><inertial><pose>0.5 0 0 0 0 0</pose><mass>1</mass>
    <inertia><ixx>0.01</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial>
    <visual name="v"><geometry><box><size>1 0.1 0.1</size></box></geometry></visual></link>
  <link name="top"><pose relative_to="left">1 0 0 0 0 -1.57</pose><inertial><mass>2</mass>
    <inertia><ixx>0.01</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial></link>
  <link name="right"><pose>2 0 0 0 0 1.57</pose>
    <inertial auto="true"><density>10</density></inertial>
    <collision name="c"><geometry><sphere><radius>0.4</radius></sphere></geometry></collision>
  </link>
  <frame name="f" attached_to="top"><pose>0.5 0 0 0 0 0</pose></frame>
  <joint name="A" type="revolute"><parent>world</parent><child>left</child>
    <axis><xyz>0 0 1</xyz><dynamics><damping>0.1</damping></dynamics></axis></joint>
  <joint name="B" type="universal"><parent>left</parent><child>top</child>
    <axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint>
  <joint name="C" type="revolute"><parent>top</parent><child>right</child>
    <axis><xyz expressed_in="__model__">0 0 1</xyz></axis></joint>
  <joint name="D" type="ball"><parent>world</parent><child>right</child></joint>
</model></sdf>
"""

MJCF = """<mujoco model="m"><compiler angle="degree" eulerseq="xyz"/>
  <default><joint damping="0.1"/><default class="c"><geom density="500"/></default></default>
  <asset><mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
    <material name="r" rgba="1 0 0 1"/></asset>
  <worldbody><geom type="plane" size="1 1 1"/>
    <body name="torso" pos="0 0 1" childclass="c"><freejoint/><geom size="0.2" material="r"/>
      <body name="arm" pos="0 0.3 0" euler="10 20 30"><joint name="j1" type="ball"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05"/><site name="s" pos="0 0 -0.5"/>
        <body name="fore" pos="0 0 -0.5"><joint name="j2" axis="0 1 0" ref="10" range="-90 90"/>
          <joint name="j3" type="slide" axis="1 0 0" stiffness="3" springref="0.1" armature="0.2"/>
          <geom type="mesh" mesh="t"/><inertial pos="0 0 -0.1" mass="1" diaginertia="0.1 0.1 0.1"/>
      </body></body>
      <body name="leg"><joint name="j4"/><geom type="ellipsoid" size="0.1 0.2 0.3"/>
        <site name="k" pos="0 0 -0.2"/></body></body></worldbody>
  <equality><joint joint1="j2" joint2="j4" polycoef="0 2 0 0 0"/>
    <connect site1="s" site2="k"/>
    <weld body1="leg" body2="fore" relpose="0 0 0 1 0 0 0"/></equality>
  <tendon><spatial stiffness="10" damping="1"><site site="s"/><site site="k"/></spatial>
    <fixed name="f" stiffness="2" range="-1 1" springlength="0 1"><joint joint="j2" coef="0.5"/>
      <joint joint="j4" coef="-1"/></fixed></tendon>
  <actuator><motor name="m" joint="j4" gear="3" ctrlrange="-1 1"/>
    <position joint="j3" kp="5" kv="1" forcerange="-2 2"/><motor site="s" gear="0 0 1 0 0 0.1"/>
    <general tendon="f" dyntype="filter" dynprm="0.1" gaintype="affine" gainprm="1 2 3"
      biastype="affine" biasprm="0 -1 -1"/><motor joint="j1" gear="1 2 3"/></actuator>
  <keyframe><key name="k" qpos="0 0 1 1 0 0 0 1 0 0 0 0 0 0" act="1" ctrl="1 0 0 1 0"/></keyframe>
</mujoco>
"""


def corpus(folder: str | None) -> list[tuple[str, str]]:
    """Texts to be spoiled, with their formats."""
    found = [("urdf", URDF), ("sdf", SDF), ("mjcf", MJCF)]
    told = Report()
    for name in ("double_pendulum", "four_bar", "bicycle", "box_stack", "puma560", "servo_arm"):
        model = mechanisms.get(name)
        for format in ("toml", "json", "mjcf", "urdf", "sdf"):
            try:
                found.append((format, dumps(model, format, report=told)))
            except ValueError:
                continue
    endings = {".urdf": "urdf", ".sdf": "sdf", ".xml": "mjcf", ".toml": "toml"}
    for path in sorted(Path(folder).rglob("*")) if folder else ():
        if path.suffix in endings and path.stat().st_size < 60_000:
            text = path.read_bytes().decode("utf-8", "replace")
            if path.suffix != ".xml" or "<mujoco" in text:
                found.append((endings[path.suffix], text))
    return found


NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:[eE][-+]?\d+)?")
NUMBERS = ("nan", "inf", "-inf", "1e400", "-1", "0", "1e308", "1e-308", "-1e-3", "1e20", "0x10",
           "1_0", "", "1 2", "1e", "٣", "9" * 400)  # fmt: skip
HOSTILE = (
    '<!DOCTYPE r [<!ENTITY a "b"><!ENTITY c "&a;&a;&a;&a;">]>',
    '<include file="/etc/passwd"/>', "<include><uri>file://../../etc/passwd</uri></include>",
    '<xacro:include filename="x"/>', "<!--", "<![CDATA[", "&#0;", "&lol;", "<a>" * 300,
    '<geometry><mesh filename="/dev/zero"/></geometry>', '<link name="upper"/>', "\x00",
)  # fmt: skip


def mutated(rng: np.random.Generator, text: str) -> str:
    """A text with one to three changes, of which most leave it well formed."""
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        kind = rng.integers(7)
        if kind <= 1 and (found := list(NUMBER.finditer(text))):
            one = found[int(rng.integers(len(found)))]
            new = str(rng.choice(NUMBERS)) if rng.random() < 0.7 else repr(rng.normal() * 10)
            text = text[: one.start()] + new + text[one.end() :]
        elif kind == 2 and (found := list(re.finditer(r'"([^"<>]*)"', text))):
            a, b = (found[int(k)] for k in rng.integers(len(found), size=2))
            text = text[: a.start(1)] + b.group(1) + text[a.end(1) :]
        elif kind == 3 and (found := list(re.finditer(r"<(\w+)[^<>]*/>", text))):
            one = found[int(rng.integers(len(found)))]
            copies = int(rng.choice([0, 0, 2, 3]))  # taken out, or repeated
            text = text[: one.start()] + one.group() * copies + text[one.end() :]
        elif kind == 4 and (found := list(re.finditer(r"</?(\w+)", text))):
            a, b = (found[int(k)] for k in rng.integers(len(found), size=2))
            text = re.sub(rf"(</?){a.group(1)}\b", rf"\g<1>{b.group(1)}", text)
        elif kind == 5:
            at = int(rng.integers(len(text) + 1))
            text = text[:at] + str(rng.choice(HOSTILE)) + text[at:]
        else:
            data = spoiled(rng, text.encode("utf-8", "surrogatepass"))
            text = data.decode("utf-8", "replace")
    return text


def examined(model: mb.Model, report: Report, rng: np.random.Generator) -> None:
    """Raise if what was accepted makes no sense."""
    for body in model.bodies:
        if not (np.isfinite(body.inertia.array).all() and body.inertia.mass >= 0.0):
            raise AssertionError(f"accepted the inertia {body.inertia.array} of {body.name!r}")
        E, r = body.placement.E, body.placement.r
        if not (np.isfinite(r).all() and np.abs(E @ E.T - np.eye(3)).max() < 1e-9):
            raise AssertionError(f"accepted the placement {body.placement} of {body.name!r}")
    if not np.isfinite(model.gravity).all():
        raise AssertionError(f"accepted gravity {model.gravity}")
    again = loads(dumps(model, "json"), "json")
    if again != model:
        raise AssertionError("the model is another one when it is written and read again")
    sizes = [np.abs(body.inertia.array).max(initial=0.0) for body in model.bodies]
    far = [np.abs(body.placement.r).max(initial=0.0) for body in model.bodies]
    if model.nv == 0 or max(sizes) > 1e50 or sum(far) > 1e50 or model.nv > 200:
        return  # beyond doubles in squares; nothing is promised
    H = mb.crba(model, model.random(rng))
    if not np.isfinite(H).all():
        raise AssertionError("an inertia matrix that is not finite")
    doubtful = any(remark.what == "doubtful" for remark in report.remarks)
    declared = all(_possible(body) for body in model.bodies)
    if declared and not doubtful and np.linalg.eigvalsh(H)[0] < -ROUNDING * np.abs(H).max():
        raise AssertionError("an inertia matrix that is not positive, and no word of it")


def _possible(body: mb.model.Body) -> bool:
    """Our own files may say "check = false", which is their word of it."""
    try:
        mb.RigidInertia.from_parameters(body.inertia.array)
    except ValueError:
        return False
    return True


def run(count: int, seed: int, folder: str | None = None) -> tuple[Counter[str], list[str]]:
    """Counts of what happened, and findings: how to repeat each."""
    texts = corpus(folder)
    counts: Counter[str] = Counter()
    findings: list[str] = []
    slowest = 0.0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for format, text in texts:  # as they are: whatever is compiled is compiled now
            try:
                model = loads(text, format, report=Report())
            except ValueError:
                continue
            if model.nv:
                mb.crba(model, model.neutral())
        for k in range(count):
            rng = np.random.default_rng([seed, k])
            format, text = texts[int(rng.integers(len(texts)))]
            text = mutated(rng, text)
            report = Report(policy=str(rng.choice(["warn", "strict", "repair"])))
            started = time.process_time()
            try:
                model = loads(text, format, report=report)
                spent = time.process_time() - started
                examined(model, report, rng)
                outcome = "read"
            except (ValueError, TypeError) as error:
                spent = time.process_time() - started
                outcome = "refused"
                if not str(error) or not isinstance(error, ValueError):
                    findings.append(f"case {k}, {format}: {error!r}\n{traceback.format_exc()}")
            except Exception:
                spent = time.process_time() - started
                outcome = "FINDING"
                findings.append(f"case {k}, {format}\n{traceback.format_exc()}")
            if spent > SLOWEST:
                findings.append(f"case {k}, {format}: {spent:.2f} s")
            slowest = max(slowest, spent)
            counts[f"{format}: {outcome}"] += 1
    counts["slowest, in ms"] = round(1000 * slowest)
    return counts, findings


def main() -> int:
    """Spoil files and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--corpus", help="a folder with files of real robots, to be spoiled as well"
    )
    arguments = parser.parse_args()
    counts, findings = run(arguments.count, arguments.seed, arguments.corpus)
    lines = [f"{many:8,}  {what}" for what, many in sorted(counts.items())]
    sys.stdout.write("\n".join([*lines, *findings[:20], f"{len(findings)} findings"]) + "\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
