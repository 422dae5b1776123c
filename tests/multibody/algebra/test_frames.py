"""Moving frames: group laws of all six parts, operators, labels, storage, the paper's example."""

from __future__ import annotations

import pickle

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multibody.algebra.frames import Frame, FrameLabelWarning, FrameMoving, label_checks
from multibody.algebra.orientation import quaternions
from tests.multibody.mechanics_strategies import unit_quaternions, vectors

# Chains of a few products with rates up to two: second derivatives are sums of some forty terms.
ROUNDING = 1e-11
# Derivatives in 40 digits with step 1e-12 have truncation error 1e-24; what remains is rounding.
DERIVATIVE = 1e-12
# float32 has seven digits.
SINGLE = 1e-5

PARTS = (
    "position",
    "rotation",
    "velocity",
    "angular_velocity",
    "acceleration",
    "angular_acceleration",
)

frames = st.builds(Frame, vectors(3), unit_quaternions)
moving = st.builds(
    FrameMoving, vectors(3), unit_quaternions, vectors(3), vectors(3), vectors(3), vectors(3)
)

# Reference values computed in 40 digits; ω·r = 1.4: ω and r are not perpendicular.
B_IN_C = FrameMoving(
    [1, 2, 3],
    [np.sqrt(0.5), 0, 0, np.sqrt(0.5)],
    [0.5, -1, 2],
    [0.1, 0.2, 0.3],
    [0, 1, -1],
    [-0.2, 0.4, 0.1],
)
A_IN_B = FrameMoving([0.2, -0.1, 0.4], [1, 0, 0, 0], [1, 0, 0], [0, 0, 0.5])


def close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def same(a, b, tolerance=ROUNDING):
    assert a.isclose(b, tolerance), f"{a}\n{b}"


def test_golden_inverse():
    inverse = ~B_IN_C
    golden = (
        [-2, 1, -3],
        [np.sqrt(0.5), 0, 0, -np.sqrt(0.5)],
        [1.9, 0.8, -2.5],
        [0.2, -0.1, -0.3],
        [1.59, -0.52, 0.85],
        [0.4, 0.2, -0.1],
    )
    for name, value in zip(PARTS, golden):
        close(getattr(inverse, name), value, 1e-14)


def test_golden_composition():
    composed = B_IN_C * A_IN_B
    golden = {
        "position": [1.1, 2.2, 3.4],
        "velocity": [0.48, 0.11, 1.95],
        "angular_velocity": [0.1, 0.2, 0.8],
        "acceleration": [-0.738, 1.154, -1.48],
        "angular_acceleration": [-0.1, 0.35, 0.1],
    }
    for name, value in golden.items():
        close(getattr(composed, name), value, 1e-14)


# --- group laws, all parts --------------------------------------------------------------------


@given(moving, moving, moving)
def test_group_of_moving_frames(a, b, c):
    identity = FrameMoving.identity()
    same(a * identity, a)
    same(identity * a, a)
    same(~a * a, identity)
    same(a * ~a, identity)
    same(~~a, a)
    same((a * b) * c, a * (b * c), 1e-9)
    same((a >> b) >> c, a >> (b >> c), 1e-9)
    same(~(a * b), ~b * ~a, 1e-9)


@given(frames, frames, frames)
def test_group_of_frames(a, b, c):
    same(~a * a, Frame.identity())
    same((a * b) * c, a * (b * c))


def test_not_commutative():
    assert not (B_IN_C * A_IN_B).isclose(A_IN_B * B_IN_C, 0.1)


@given(moving, moving, moving)
def test_operators(a, b, c):
    same(a >> b, b * a, 0.0)
    same(a % b, ~a * b)
    same(a << b, a >> ~b)
    same(a << b, b % a, 0.0)
    same((a >> b) << b, a, 1e-10)
    same(a % (a * b), b, 1e-10)
    same((c << b) << a, c >> ~b >> ~a, 1e-9)


def test_inverse_shift_is_not_associative():
    a, b, c = B_IN_C, A_IN_B, ~B_IN_C
    assert not ((a << b) << c).isclose(a << (b << c), 0.1)


@given(moving, moving)
def test_in_place_operators(a, b):
    product, chain = a * b, a >> b
    x = a.copy()
    before = id(x)
    x *= b
    assert id(x) == before
    assert x == product
    x = a.copy()
    x >>= b
    assert id(x) != id(a)
    assert x == chain
    close(x.matrix, chain.matrix, 0.0)


@given(frames, moving)
def test_mixed_kinds(f, m):
    """A Frame in a mixed product is a FrameMoving that stands still; the result moves."""
    still = FrameMoving.from_frame(f)
    for mixed, pure in (
        (f * m, still * m),
        (m * f, m * still),
        (f >> m, still >> m),
        (f % m, still % m),
        (m << f, m << still),
        (m % f, m % still),
    ):
        assert isinstance(mixed, FrameMoving)
        assert mixed == pure
    assert type(f * f) is Frame
    with pytest.raises(TypeError, match="cannot hold"):
        f *= m


# --- against derivatives ----------------------------------------------------------------------


def mp_product(p, q):
    p0, p1, p2, p3 = p
    q0, q1, q2, q3 = q
    return [
        p0 * q0 - p1 * q1 - p2 * q2 - p3 * q3,
        p0 * q1 + p1 * q0 + p2 * q3 - p3 * q2,
        p0 * q2 - p1 * q3 + p2 * q0 + p3 * q1,
        p0 * q3 + p1 * q2 - p2 * q1 + p3 * q0,
    ]


def mp_curve(frame):
    """r(t) and unit q(t) in high precision with the frame's value and first two derivatives."""

    def row(x):
        return [mpmath.mpf(float(c)) for c in x]

    r0, r1, r2 = row(frame.position), row(frame.velocity), row(frame.acceleration)
    q0 = row(frame.rotation)
    q1, q2 = (row(x) for x in frame.rotation_rates)

    def at(t):
        r = [a + b * t + c * t * t / 2 for a, b, c in zip(r0, r1, r2)]
        q = [a + b * t + c * t * t / 2 for a, b, c in zip(q0, q1, q2)]
        norm = mpmath.sqrt(sum(c * c for c in q))
        return r, [c / norm for c in q]

    return at


def mp_rotate(q, v):
    conjugate = [q[0], -q[1], -q[2], -q[3]]
    return mp_product(mp_product(q, [mpmath.mpf(0), *v]), conjugate)[1:]


def derivatives(curve):
    """Value, first and second derivative of a curve of lists, as floats."""
    h = mpmath.mpf(10) ** -12
    low, mid, high = curve(-h), curve(mpmath.mpf(0)), curve(h)
    first = [(b - a) / (2 * h) for a, b in zip(low, high)]
    second = [(b - 2 * m + a) / (h * h) for a, m, b in zip(low, mid, high)]
    return tuple(np.array([float(x) for x in v]) for v in (mid, first, second))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("operation", ["compose", "inverse", "relative"])
def test_all_parts_against_derivatives_of_the_composed_motion(seed, operation):
    rng = np.random.default_rng(seed)

    def draw():
        return FrameMoving(
            rng.normal(size=3), quaternions.normalise(rng.normal(size=4)), *rng.normal(size=(4, 3))
        )

    a, b = draw(), draw()
    result = {"compose": lambda: b * a, "inverse": lambda: ~a, "relative": lambda: b % a}[
        operation
    ]()
    with mpmath.workdps(50):
        A, B = mp_curve(a), mp_curve(b)

        def curve(t):
            ra, qa = A(t)
            rb, qb = B(t)
            if operation == "compose":
                moved = mp_rotate(qb, ra)
                return [x + y for x, y in zip(rb, moved)] + mp_product(qb, qa)
            if operation == "inverse":
                back = [qa[0], -qa[1], -qa[2], -qa[3]]
                return [-x for x in mp_rotate(back, ra)] + back
            back = [qb[0], -qb[1], -qb[2], -qb[3]]
            apart = [x - y for x, y in zip(ra, rb)]
            return mp_rotate(back, apart) + mp_product(back, qa)

        value, first, second = derivatives(curve)
    close(result.position, value[:3], DERIVATIVE)
    close(result.rotation, value[3:], DERIVATIVE)
    close(result.velocity, first[:3], DERIVATIVE)
    close(result.acceleration, second[:3], DERIVATIVE * 10)
    close(result.angular_velocity, quaternions.angular_velocity(value[3:], first[3:]), DERIVATIVE)
    close(
        result.angular_acceleration,
        quaternions.angular_acceleration(value[3:], first[3:], second[3:]),
        DERIVATIVE * 10,
    )


# --- points -----------------------------------------------------------------------------------


@given(moving, moving, vectors((4, 3)))
def test_points(f1, f2, points):
    close(points >> f1 >> f2, f2 * (f1 * points))
    close(points >> f1 >> f2, (f2 * f1) * points)
    close(points >> f1, np.stack([p >> f1 for p in points]))
    close(points >> f1 << f1, points)
    close(f1 % (f1 * points), points)
    close(f1 * points[0], quaternions.rotate(f1.rotation, points[0]) + f1.position)
    close(f1.transform_direction(points), points >> f1 << Frame(f1.position))
    assert isinstance([1.0, 2.0, 3.0] >> f1, np.ndarray)


def test_left_to_right_chains_of_points_form_no_frame_products(monkeypatch):
    from multibody.algebra import frames as module

    def forbidden(*_):
        raise AssertionError("a frame product was formed")

    monkeypatch.setattr(module, "_compose", forbidden)
    np.ones((5, 3)) >> A_IN_B >> B_IN_C


@given(moving, vectors(3), vectors(3), vectors(3))
def test_point_rates_agree_with_composition(f, p, v, a):
    composed = f * FrameMoving(p, velocity=v, acceleration=a)
    close(f.point_velocity(p, v).total, composed.velocity)
    close(f.point_acceleration(p, v, a).total, composed.acceleration)


def test_meaningless_operands_raise():
    for bad in (
        lambda: B_IN_C * "abc",
        lambda: B_IN_C * [1, 2],
        lambda: 3 % B_IN_C,
        lambda: np.ones(3) * B_IN_C,
        lambda: B_IN_C >> np.ones(3),
        lambda: B_IN_C + B_IN_C,
    ):
        with pytest.raises((TypeError, ValueError)):
            bad()
    frame = Frame()
    with pytest.raises(TypeError, match="expected a frame"):
        frame *= np.ones(3)


# --- state ------------------------------------------------------------------------------------


def test_cached_matrix_follows_the_rotation():
    frame = FrameMoving(
        rotation=[1, 0, 0, 0], angular_velocity=[1, 2, 3], angular_acceleration=[4, 5, 6]
    )
    first = frame.matrix
    assert frame.matrix is first  # computed once
    q = quaternions.normalise([1.0, 2.0, 3.0, 4.0])
    frame.rotation = q
    close(frame.matrix, quaternions.to_matrix(q))
    close(frame.angular_velocity, [1, 2, 3])  # ω and α are kept
    close(frame.angular_acceleration, [4, 5, 6])
    frame.rotation = np.eye(3)  # a matrix is accepted
    close(frame.matrix, np.eye(3))
    frame *= B_IN_C
    close(frame.matrix, B_IN_C.matrix)
    with pytest.raises(ValueError, match="read-only"):
        frame.rotation[0] = 2.0


@given(moving, vectors(3), vectors(3))
def test_rates_set_and_get(f, w, dw):
    f = f.copy()
    alpha = f.angular_acceleration
    f.angular_velocity = w
    close(f.angular_velocity, w)
    close(f.angular_acceleration, alpha)
    f.angular_acceleration = dw
    close(f.angular_velocity, w)
    close(f.angular_acceleration, dw)
    g = FrameMoving(f.position, f.rotation)
    g.velocity, g.acceleration = f.velocity, f.acceleration
    g.rotation_rates = f.rotation_rates
    same(g, f)
    g.position = [1, 2, 3]
    close(g.position, [1, 2, 3])


def test_inconsistent_quaternion_rates_are_refused_and_projection_helps():
    f = FrameMoving()
    with pytest.raises(ValueError, match="project_rates"):
        f.rotation_rates = [0.1, 0, 0, 1.0], [0, 0, 0, 0]
    f.rotation_rates = quaternions.project_rates(f.rotation, [0.1, 0, 0, 1.0])[1:]
    close(f.angular_velocity, [0, 0, 2])


def test_bad_construction():
    with pytest.raises(ValueError, match="renormalise"):
        Frame(rotation=[1.1, 0, 0, 0])
    with pytest.raises(ValueError, match="reflection"):
        Frame(rotation=-np.eye(3))
    with pytest.raises(ValueError, match="one frame at a time"):
        Frame(rotation=np.stack([[1.0, 0, 0, 0]] * 2))
    with pytest.raises(ValueError, match="three numbers"):
        Frame(np.ones((2, 3)))
    with pytest.raises(ValueError, match="float32 or float64"):
        Frame(dtype=np.float16)


@given(moving)
def test_q_and_minus_q_are_the_same_frame(f):
    twin = FrameMoving(
        f.position,
        -f.rotation,
        f.velocity,
        f.angular_velocity,
        f.acceleration,
        f.angular_acceleration,
    )
    same(twin, f)
    close(twin.matrix, f.matrix)
    close([1, 2, 3] >> twin, [1, 2, 3] >> f)


def test_equality_is_exact_and_kinds_differ():
    assert Frame([1, 2, 3]) == Frame([1, 2, 3])
    assert Frame([1, 2, 3]) != Frame([1, 2, 4])
    assert Frame() != FrameMoving()
    with pytest.raises(TypeError, match="from_frame"):
        Frame().isclose(FrameMoving())


def test_float32_stays_float32():
    f = FrameMoving(
        [1, 2, 3],
        [0.5, 0.5, 0.5, 0.5],
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
        [1, 1, 1],
        dtype=np.float32,
    )
    for frame in (f, f * f, ~f, f % f, f << f, Frame(np.ones(3, np.float32))):
        assert frame.dtype == np.float32
        assert frame.matrix.dtype == np.float32
        assert frame.rotation.dtype == np.float32
        assert (np.ones((2, 3), np.float32) >> frame).dtype == np.float32
    assert (f * f).acceleration.dtype == np.float32
    assert ([1, 2, 3] >> f).dtype == np.float32
    assert (np.ones(3) >> f).dtype == np.float64  # promotes, as NumPy does
    double = FrameMoving(
        f.position,
        f.rotation,
        f.velocity,
        f.angular_velocity,
        f.acceleration,
        f.angular_acceleration,
        dtype=np.float64,
    )
    assert (f * double).dtype == np.float64
    close((f * f).acceleration, (double * double).acceleration, 10 * SINGLE)


# --- labels -----------------------------------------------------------------------------------


def labelled(origin, base):
    return Frame(origin=origin, base=base)


# operator: function, labels that chain, resulting labels, labels that do not
LABELS = {
    "*": (lambda a, b: a * b, [("b", "a"), ("c", "b")], ("c", "a"), [("b", "a"), ("b", "c")]),
    ">>": (lambda a, b: a >> b, [("c", "b"), ("b", "a")], ("c", "a"), [("c", "b"), ("a", "b")]),
    "*=": (
        lambda a, b: a.copy().__imul__(b),
        [("b", "a"), ("c", "b")],
        ("c", "a"),
        [("b", "a"), ("b", "c")],
    ),
    ">>=": (
        lambda a, b: a.copy().__irshift__(b),
        [("c", "b"), ("b", "a")],
        ("c", "a"),
        [("c", "b"), ("a", "b")],
    ),
    "%": (lambda a, b: a % b, [("a", "c"), ("b", "c")], ("b", "a"), [("a", "c"), ("c", "b")]),
    "<<": (lambda a, b: a << b, [("b", "c"), ("a", "c")], ("b", "a"), [("b", "c"), ("c", "a")]),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("number", [False, True])
def test_labels_are_checked_on_every_operator(name, number):
    operation, chained, outcome, unchained = LABELS[name]
    key = (lambda x: ord(x)) if number else (lambda x: x)

    def make(pair):
        return [labelled(key(o), key(b)) for o, b in pair]

    result = operation(*make(chained))
    assert (result.origin, result.base) == tuple(key(x) for x in outcome)
    with pytest.raises(ValueError, match="expected frames that chain"):
        operation(*make(unchained))
    with label_checks("warn"), pytest.warns(FrameLabelWarning, match="chain"):
        operation(*make(unchained))
    with label_checks("off"):
        operation(*make(unchained))
    with pytest.raises(ValueError, match="expected frames that chain"):
        operation(*make(unchained))  # the default is back


def test_inverse_swaps_labels_and_unlabelled_frames_are_never_checked():
    inverse = ~labelled("a", "b")
    assert (inverse.origin, inverse.base) == ("b", "a")
    product = Frame() * labelled("a", "b")
    assert (product.origin, product.base) == ("a", None)
    with pytest.raises(ValueError, match="mode"), label_checks("loud"):
        pass


# --- storage ----------------------------------------------------------------------------------


@given(moving, frames, st.sampled_from([np.float32, np.float64]))
def test_storage_is_bit_exact(m, f, dtype):
    m = FrameMoving(
        m.position,
        m.rotation,
        m.velocity,
        m.angular_velocity,
        m.acceleration,
        m.angular_acceleration,
        origin="tool",
        base=3,
        dtype=dtype,
    )
    f = Frame(f.position, f.rotation, dtype=dtype)
    for frame in (m, f):
        kind = type(frame)
        for restored in (kind.from_json(frame.to_json()), pickle.loads(pickle.dumps(frame))):
            assert restored.dtype == dtype
            assert (restored.origin, restored.base) == (frame.origin, frame.base)
            for name in kind._fields:
                assert getattr(restored, name).tobytes() == getattr(frame, name).tobytes()
    with pytest.raises(ValueError, match="stored Frame"):
        Frame.from_json(m.to_json())


# --- the paper's example ----------------------------------------------------------------------


def test_robot_and_conveyor_three_equivalent_forms():
    """§6: item 8 on conveyor 7, seen from the end effector 6 of a robot on the floor 0."""
    rng = np.random.default_rng(8)

    def link(origin, base):
        return FrameMoving(
            rng.normal(size=3),
            quaternions.normalise(rng.normal(size=4)),
            *rng.normal(size=(4, 3)),
            origin=origin,
            base=base,
        )

    x = {(n, n - 1): link(n, n - 1) for n in range(1, 7)}
    x_87, x_70 = link(8, 7), link(7, 0)
    one_by_one = x_87 >> x_70
    for n in range(1, 7):
        one_by_one = one_by_one >> ~x[n, n - 1]
    arm = x[6, 5] >> x[5, 4] >> x[4, 3] >> x[3, 2] >> x[2, 1] >> x[1, 0]
    grouped = x_87 >> x_70 >> ~arm
    x_80 = x_87 >> x_70
    by_inverse_shift = x_80 << arm
    by_remainder = arm % x_80
    step_by_step = x_80
    for n in range(1, 7):
        step_by_step = step_by_step << x[n, n - 1]
    for form in (grouped, by_inverse_shift, by_remainder, step_by_step):
        assert (form.origin, form.base) == (8, 6)
        # Sixteen factors with rates of order one: accelerations of order 100.
        same(form, one_by_one, 1e-9)


def test_repr_can_be_read():
    text = repr(Frame([1, 2, 3], origin="a"))
    assert "position=[1.0, 2.0, 3.0]" in text
    assert "origin='a'" in text
