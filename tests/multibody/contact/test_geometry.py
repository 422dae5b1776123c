"""Gaps, rows and biases against differences; contacts in files; what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import multibody as mb
from multibody.io import ModelFileError, dumps, loads

INERTIA = mb.Inertia(1.0, (0.1, 0.2, 0.05), (0.3, 0.4, 0.5))


@pytest.fixture(scope="module")
def model():
    """Every kind of contact, between bodies of several trees and the base."""
    b = mb.ModelBuilder(name="all contacts")
    b.add_body("a", 0, mb.Free(), inertia=INERTIA)
    b.add_body("b", "a", mb.Revolute((1, 2, 0.5)), (0.3, 0.2, 0.1), INERTIA)
    b.add_body("c", 0, mb.Spherical(), (0.1, 0.2, -0.4), INERTIA)
    b.add_body("d", "c", mb.Prismatic("x"), (1, 0, 0), INERTIA)
    b.add_body("e", "d", mb.Cylindrical("y"), (0, 0.5, 0), INERTIA)
    b.add_contact("ball", 0, mb.HalfSpace((1, 2, 3), (0, 0, 1)), "b", mb.Ball(0.2, (0.1, 0, 0.3)))
    plane = mb.HalfSpace((1, -2, 3), (0, 0, 1))
    b.add_contact("box", "e", mb.BoxCorners((0.2, 0.3, 0.4), (1, 0, 0)), "a", plane)
    b.add_contact("disc", "b", plane, "c", mb.Disc(0.7, (1, 1, 0), (0.1, 0.2, 0)))
    b.add_contact("balls", "b", mb.Ball(0.1, (0.3, 0, 0)), "e", mb.Ball(0.2, (0.1, 0.2, 0)))
    b.add_contact("bowl", "b", mb.Bowl(3.0, (0.3, 0, 0)), "a", mb.Ball(0.2, (0.1, 0.2, 0)))
    long = mb.Capsule((-2, 0, 0), (2, 0.3, 0), 0.1)
    b.add_contact("capsules", "a", long, "e", mb.Capsule((0, -2, 0), (0.2, 2, 0.1), 0.1))
    b.add_contact("capsule", "a", long, "d", mb.Ball(0.1, (0, 0.4, 0)), friction=0.3)
    b.add_contact("function", gap=lambda q: q[0] ** 2 * np.sin(q[7]) + q[5] * q[8] - 0.3 * q[12])
    return b.build()


def test_rates_and_biases_are_derivatives_of_gaps(model):
    rng, step = np.random.default_rng(1), 1e-5
    for _ in range(8):
        q, v = model.random(rng), rng.standard_normal(model.nv)
        here = mb.contact_kinematics(model, q, v)
        before, after = (
            mb.contact_kinematics(model, model.integrate(q, v, s), v) for s in (-step, step)
        )
        slope = (after.gap - before.gap) / (2 * step)
        np.testing.assert_allclose(here.gap_rate, slope, atol=2e-7)
        bend = (after.gap_rate - before.gap_rate) / (2 * step)
        np.testing.assert_allclose(here.bias[:, 0], bend, atol=1e-5 * (1 + np.abs(bend).max()))
        speeds = here.T @ v
        np.testing.assert_allclose(speeds[:, 0], here.gap_rate, atol=1e-11)
        np.testing.assert_allclose(speeds[:, 1:], here.slip, atol=1e-11)


def test_frames_are_orthonormal(model):
    k = mb.contact_kinematics(model, model.random(2))
    frames = np.concatenate([k.normal[:-1, None], k.tangents[:-1]], axis=1)  # but for φ(q)
    for frame in frames:
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-14)


def test_segments_by_brute_force(model):
    """The gap of two capsules is the least distance of all pairs of points of their axes."""
    rng = np.random.default_rng(3)
    s = np.linspace(0.0, 1.0, 401)
    for _ in range(6):
        q = model.random(rng)
        k = mb.contact_kinematics(model, q)
        a = [mb.point_position(model, q, "a", x) for x in ((-2, 0, 0), (2, 0.3, 0))]
        b = [mb.point_position(model, q, "e", x) for x in ((0, -2, 0), (0.2, 2, 0.1))]
        first = a[0] + s[:, None] * (a[1] - a[0])
        second = b[0] + s[:, None] * (b[1] - b[0])
        least = np.linalg.norm(first[:, None] - second[None], axis=2).min() - 0.2
        assert least - 1e-3 < k.gap[k.names.index("capsules")] <= least + 1e-12


def test_interpreted_and_compiled_agree(model, monkeypatch):
    from multibody.contact import kinematics

    q, v = model.random(4), np.random.default_rng(4).standard_normal(model.nv)
    compiled = mb.contact_kinematics(model, q, v)
    monkeypatch.setattr(kinematics, "_contacts", kinematics._contacts.function)
    plain = mb.contact_kinematics(model, q, v)
    for first, second in zip(compiled[1:], plain[1:]):
        np.testing.assert_allclose(first, second, atol=1e-12)


@pytest.mark.parametrize("format", ["toml", "json"])
def test_contacts_in_files(format):
    b = mb.ModelBuilder(name="heap")
    for name in ("one", "two"):
        b.add_body(name, 0, mb.Free(), inertia=INERTIA)
    b.add_contact("floor", 0, mb.HalfSpace(), "one", mb.BoxCorners((1, 2, 3)), restitution=0.1)
    b.add_contact("rim", 0, mb.HalfSpace(), "two", mb.Disc(0.3), friction=0.7)
    b.add_contact("pair", "one", mb.Ball(0.1), "two", mb.Capsule((0, 0, 0), (1, 0, 0), 0.2))
    model = b.build()
    text = dumps(model, format)
    assert loads(text, format) == model == pickle.loads(pickle.dumps(model))
    with pytest.raises(ModelFileError, match="did you mean 'ball'"):
        loads(text.replace('"ball"', '"bal"'), format)
    with pytest.raises(ModelFileError, match="restitution"):
        loads(text.replace("0.1\n", "-0.1\n").replace("0.1,\n", "-0.1,\n"), format)
    soft = mb.ModelBuilder(name="soft")
    soft.add_body("one", 0, mb.Free(), inertia=INERTIA)
    soft.add_contact("f", 0, mb.HalfSpace(), "one", mb.Vertex(), law=mb.SpringDamper(1e4, 10.0))
    soft.add_contact("g", 0, mb.HalfSpace(), "one", mb.Ball(0.1), law=mb.HuntCrossley(1e5))
    assert loads(dumps(soft.build(), format), format) == soft.build()


def test_a_function_does_not_go_into_a_file(model):
    with pytest.raises(ValueError, match="Python function"):
        dumps(model)


def careless(**given):
    b = mb.ModelBuilder()
    b.add_body("ball", 0, mb.Free(), inertia=INERTIA)
    pair = {"body_b": "ball", "shape_a": mb.HalfSpace(), "shape_b": mb.Ball(0.1)}
    b.add_contact("floor", **{**pair, **given})
    return b.build()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"restitution": -0.1}, "0 ≤ e ≤ 1, received -0.1"),
        ({"restitution": 1.01}, "would make energy"),
        ({"restitution": np.nan}, "finite"),
        ({"friction": -0.2}, "μ ≥ 0, received -0.2"),
        ({"body_b": 0}, "the base twice"),
        ({"body_b": "bal"}, "did you mean 'ball'"),
        ({"shape_a": mb.Disc(1.0)}, "no law for Disc against Ball"),
        ({"shape_a": mb.Bowl(0.05)}, "does not fit"),
        ({"shape_a": mb.Vertex(), "shape_b": mb.Vertex()}, "never touch"),
        ({"law": mb.HuntCrossley(1e4), "restitution": 0.5}, "leave out restitution"),
        ({"gap": lambda q: q[0]}, "either two shapes or gap"),
        ({"shape_a": None}, "expected a shape"),
    ],
)
def test_careless_contacts_are_refused_in_words(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        careless(**given)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mb.Ball(np.nan),
        lambda: mb.Ball(0.0),
        lambda: mb.HalfSpace((0, 0, 0)),
        lambda: mb.Vertex((0, np.inf, 0)),
        lambda: mb.BoxCorners((1, -1, 1)),
        lambda: mb.Capsule((0, 0, 0), (0, 0, 0), 1.0),
        lambda: mb.SpringDamper(0.0, 1.0),
        lambda: mb.HuntCrossley(1.0, exponent=0.5),
    ],
)
def test_careless_shapes(make):
    with pytest.raises(ValueError, match=r"expected|one point"):
        make()


def test_one_pair_twice():
    b = mb.ModelBuilder()
    b.add_body("ball", 0, mb.Free(), inertia=INERTIA)
    b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Ball(0.1))
    b.add_contact("again", "ball", mb.Ball(0.1), 0, mb.HalfSpace())
    with pytest.raises(ValueError, match="'floor' and 'again' are the same pair"):
        b.build()


def test_forms_that_do_not_know_contacts_say_so():
    model = mb.mechanisms.four_bar()
    from dataclasses import replace

    contact = mb.Contact("stop", 0, mb.HalfSpace(), 1, mb.Vertex())
    with pytest.raises(ValueError, match="has rigid contacts"):
        mb.as_dae(replace(model, contacts=(contact,)))
