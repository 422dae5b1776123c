"""Instances of every kind of joint, and a pool from which random trees are drawn."""

from __future__ import annotations

from multibody.joints import REGISTRY, Joint
from multibody.joints.sample_functions import parabola
from multibody.mechanisms.random import needs_only_numbers

__all__ = ["POOL", "SAMPLES", "STEADY", "parabola"]

SAMPLES: dict[str, list[Joint]] = {kind: cls.samples() for kind, cls in REGISTRY.items()}

#: What random trees are made of: names where axes and parameters can be drawn, else the samples.
POOL = [
    entry for kind in REGISTRY for entry in ([kind] if needs_only_numbers(kind) else SAMPLES[kind])
]
STEADY = [
    entry for entry in POOL if isinstance(entry, str) or not entry.is_rheonomic
]  # without those that time moves
