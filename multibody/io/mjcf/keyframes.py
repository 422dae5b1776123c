"""The start and the keyframes of MJCF, as states of the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...algebra.orientation.quaternions import to_matrix
from ...checks import Array
from ...elements import Actuator
from ...model import Model
from ..shared.xml import Element
from .settings import BALL, FREE

__all__ = ["keep_positions"]


def keep_positions(root: Element, reading: Any, model: Model) -> None:
    """The start and the keyframes, as positions and velocities of the model, and inputs."""
    report, own = reading.report, model.neutral()[model.nq - model.n_states :]
    report.positions["start"] = np.concatenate([reading.start, own])
    moved = [named for named in model.elements if isinstance(named.element, Actuator)]
    follow = sum(len(named.element.states) for named in moved)
    for number, key in enumerate(key for group in root.all("keyframe") for key in group.all("key")):
        name = key.text("name", f"key{number}")
        q, v = reading.start, np.zeros(model.nv)
        if "qpos" in key.attributes:
            q = _positions(iter(key.numbers("qpos", len(q), None)), reading)
        if "qvel" in key.attributes:
            v = _velocities(np.array(key.numbers("qvel", model.nv, None)), q, reading)
        acts = own.copy()
        if follow and "act" in key.attributes:  # the states of actuators stand behind all others
            acts[len(own) - follow :] = key.numbers("act", follow, None)
        report.positions[name], report.velocities[name] = np.concatenate([q, acts]), v
        if moved and "ctrl" in key.attributes:
            values = key.numbers(
                "ctrl", sum(len(group.children) for group in root.all("actuator")), None
            )
            if len(values) == len(moved):
                report.controls[name] = dict(
                    zip((named.name.removesuffix("(actuator)") for named in moved), values)
                )


def _positions(given: Iterator[float], reading: Any) -> list[float]:
    q: list[float] = []
    for hung in reading.order:
        if hung.kind == FREE:
            position = [next(given) for _ in range(3)]
            q += [*(next(given) for _ in range(4)), *position]
        elif hung.kind == BALL:
            q += [next(given) for _ in range(4)]
        else:
            q.append(next(given) - hung.ref)
    return q


def _velocities(given: Array, q: list[float], reading: Any) -> Array:
    """Of a free body MuJoCo has the velocity in the world first, then ω in the body."""
    v, at, place = given.copy(), 0, 0
    for hung in reading.order:
        if hung.kind == FREE:
            turn = np.array(q[place : place + 4])
            R = to_matrix(turn / np.linalg.norm(turn))
            v[at : at + 6] = np.concatenate([given[at + 3 : at + 6], R.T @ given[at : at + 3]])
        at += {FREE: 6, BALL: 3}.get(hung.kind, 1)
        place += {FREE: 7, BALL: 4}.get(hung.kind, 1)
    return v
