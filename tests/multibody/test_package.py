"""The package as a whole: what importing it loads, and that every public function is shown."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import multibody

MODULES = [
    "rotations",
    "quaternions",
    "angles",
    "rates",
    "points",
    "natural",
    "frames",
    "se3",
    "screws",
    "spatial",
    "plucker",
    "inertia",
    "planar",
    "algebra.orientation.half_angle",
]


def test_import_is_light():
    """Heavy libraries load on first use, not on import."""
    heavy = ("numba", "llvmlite", "matplotlib", "scipy.spatial")
    code = f"import sys, multibody; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_all_names_exist():
    for name in multibody.__all__:
        assert hasattr(multibody, name)


@pytest.mark.parametrize("name", MODULES)
def test_every_public_function_and_class_has_an_example(name):
    module = importlib.import_module(f"multibody.{name}")
    for public in module.__all__:
        thing = getattr(module, public)
        own = getattr(thing, "__module__", "").startswith("multibody")
        named_tuple = inspect.isclass(thing) and issubclass(thing, tuple | Exception)
        if own and not named_tuple and (inspect.isfunction(thing) or inspect.isclass(thing)):
            assert ">>>" in (inspect.getdoc(thing) or ""), public
