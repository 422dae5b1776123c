"""Machine code called as a builtin function: the same answers, and nothing breaks on odd input."""

import gc
import threading
import weakref

import numpy as np
import pytest

from integrators import traced
from integrators.tracing import entry as native

pytestmark = pytest.mark.skipif(not native.available(), reason="needs CPython and a compiler")


def swing(t, y, p):
    return np.array([y[1] + t, -p[0] * np.sin(y[0])])


@pytest.fixture
def code():
    return traced(swing, n=2, params=1).machine_code()


def refused(*arguments):
    return ("ordinary", len(arguments))


Y, P = np.array([0.3, 0.7]), np.array([9.81])


def test_plain_arguments_reach_the_code(code):
    f = native.slope_entry(code.address, 2, 1, (2,), refused, code)
    for t in (0.5, np.float64(0.5)):
        np.testing.assert_allclose(f(t, Y, P), swing(0.5, Y, P), rtol=1e-15)
    first, second = f(0.5, Y, P), f(0.5, 2 * Y, P)
    assert first is not second
    assert first.flags.owndata
    assert first.flags.writeable
    assert first[1] != second[1]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (0.5,),
        (0.5, Y),
        (0.5, Y, P, P),
        (1, Y, P),
        ("0.5", Y, P),
        (None, Y, P),
        (0.5, [0.3, 0.7], P),
        (0.5, np.arange(4.0)[::2], P),
        (0.5, Y.astype(np.float32), P),
        (0.5, np.arange(2), P),
        (0.5, Y.astype(">f8"), P),
        (0.5, Y.reshape(1, 2), P),
        (0.5, np.zeros(3), P),
        (0.5, Y, np.zeros(0)),
        (0.5, np.ma.array(Y), P),
        (0.5, 0.3, P),
    ],
)
def test_everything_else_takes_the_ordinary_way(code, arguments):
    f = native.slope_entry(code.address, 2, 1, (2,), refused, code)
    assert f(*arguments) == ("ordinary", len(arguments))


def test_errors_of_the_ordinary_way_come_through(code):
    def complain(*arguments):
        raise ValueError("expected something else")

    f = native.slope_entry(code.address, 2, 1, (2,), complain, code)
    with pytest.raises(ValueError, match="something else"):
        f(0.5, [1, 2], P)
    with pytest.raises(TypeError):
        f(t=0.5)


def test_the_builtin_keeps_what_it_needs_and_lets_go_of_it():
    f = traced(swing, n=2, params=1)
    f(0.5, Y, P)
    call, alive = f._entry, weakref.ref(f)
    del f
    gc.collect()
    np.testing.assert_allclose(call(0.5, Y, P), swing(0.5, Y, P), rtol=1e-15)
    del call
    gc.collect()
    assert alive() is None


def test_traced_functions_answer_alike_on_all_ways():
    f = traced(swing, n=2, params=1)
    expected = f._evaluate(0.5, Y, P)
    for arguments in ((0.5, Y, P), (0.5, [0.3, 0.7], [9.81]), (np.float32(0.5), tuple(Y), P)):
        np.testing.assert_array_equal(f(*arguments), expected)
    with pytest.raises(ValueError, match=r"expected y of shape \(2,\), got shape \(3,\)"):
        f(0.5, np.zeros(3), P)


def test_results_keep_their_shape():
    J = traced(swing, n=2, params=1).jacobian()
    for _ in range(2):  # the first call makes the builtin, the second takes it
        assert J(0.0, Y, P).shape == (2, 2)
        np.testing.assert_allclose(J(0.0, Y, P), [[0, 1], [-9.81 * np.cos(0.3), 0]], rtol=1e-15)


def test_threads_do_not_disturb_each_other():
    f = traced(swing, n=2, params=1)
    wrong = []

    def work(k):
        y = np.array([0.1 * k, float(k)])
        expected = swing(0.0, y, P)
        for _ in range(20_000):
            if abs(f(0.0, y, P) - expected).max() > 1e-14:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_no_array_is_lost(code):
    import sys

    f = native.slope_entry(code.address, 2, 1, (2,), refused, code)
    before = sys.getrefcount(Y), sys.getrefcount(P)
    result = f(0.5, Y, P)
    assert sys.getrefcount(result) == 2
    for _ in range(1000):
        f(0.5, Y, P)
        f(0.5, [1], P)
    assert (sys.getrefcount(Y), sys.getrefcount(P)) == before
