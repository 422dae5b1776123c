"""Stability of multistep methods against published numbers and against what runs do."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

from integrators import Multistep, solve
from integrators.analysis import (
    a_alpha,
    a_stability,
    characteristic_roots,
    convergence,
    in_stability_region,
    multistep_report,
    plot,
    root_locus,
    stability_function,
    stability_interval,
    zero_stability,
)
from integrators.methods.multistep import multistep, multistep_names
from integrators.methods.multistep.names import bdf

NAMES = multistep_names()
SEED = 77


@pytest.mark.parametrize(
    ("name", "degrees"),
    [
        ("BDF1", 90),
        ("BDF2", 90),
        ("BDF3", 86.03),
        ("BDF4", 73.35),
        ("BDF5", 51.84),
        ("BDF6", 17.84),
    ],
)
def test_angles_of_the_bdf(name, degrees):
    """Hairer and Wanner II, V.2, table 2.1. BDF1 is asked as a multistep method."""
    assert float(a_alpha(multistep(name))) == pytest.approx(degrees, abs=0.005)
    assert bool(a_stability(multistep(name))) == (degrees == 90)


def test_the_angle_is_that_of_the_roots():
    """Rays a little inside and outside of the sector, without the locus."""
    r = np.geomspace(1e-2, 1e2, 1500)
    for k in range(3, 7):
        alpha = np.radians(float(a_alpha(bdf(k))))
        inside, outside = (-r * np.exp(1j * (alpha + d)) for d in (-1e-4, 1e-4))
        assert in_stability_region(bdf(k), inside).all()
        assert not in_stability_region(bdf(k), outside).all()


@pytest.mark.parametrize(
    ("name", "length"),
    [("AB1", 2), ("AB2", 1), ("AB3", 6 / 11), ("AB4", 3 / 10), ("AB5", 90 / 551), ("AB6", 5 / 57),
     ("AM3", 6), ("AM4", 3), ("AM5", 90 / 49), ("AM6", 45 / 38), ("ABM2", 2), ("Leapfrog", 0),
     ("AM2", np.inf), ("BDF3", np.inf)],
)  # fmt: skip
def test_real_intervals(name, length):
    """Hairer and Wanner II, V.1: the ends are ρ(−1)/σ(−1)."""
    assert float(stability_interval(name)) == pytest.approx(length, rel=1e-11)


def test_imaginary_intervals():
    """z = i sin θ for the leapfrog; z = 3i sin θ/(2 + cos θ) for Milne, largest √3."""
    assert float(stability_interval("Leapfrog", "imaginary")) == pytest.approx(1, rel=1e-6)
    assert float(stability_interval("Milne", "imaginary")) == pytest.approx(np.sqrt(3), rel=1e-6)
    assert float(stability_interval("AB3", "imaginary")) == pytest.approx(0.7236, abs=1e-4)
    assert float(stability_interval("AB2", "imaginary")) == 0


@pytest.mark.parametrize("name", NAMES)
def test_runs_grow_as_the_largest_root_says(name):
    """y' = λy with a random λ: the ratio of late values is the root of largest size."""
    method = multistep(name)
    rng = np.random.default_rng([SEED, *map(ord, name)])
    z = complex(*rng.uniform([-0.8, 0.1], [-0.1, 0.9]))
    sizes = np.abs(characteristic_roots(method, z))
    steps = 400
    run = solve(lambda t, y: z * y, (0, steps), np.array([1 + 0j]), method=method, step=1.0)
    assert run.success
    late = abs(run.y[0, -1] / run.y[0, -201]) ** (1 / 200)
    assert late == pytest.approx(sizes.max(), rel=0.02)
    assert bool(in_stability_region(method, z)) == bool(sizes.max() <= 1)


@pytest.mark.parametrize("name", NAMES)
def test_the_locus_has_roots_on_the_circle(name):
    theta = np.linspace(0.3, 6.0, 12)
    for branch in root_locus(multistep(name), theta):
        known = np.isfinite(branch)
        roots = characteristic_roots(multistep(name), branch[known])
        gap = np.abs(roots - np.exp(1j * theta[known])[:, None]).min(axis=1)
        assert gap.max(initial=0.0) < 1e-7


def test_principal_root_is_exponential_to_the_order():
    """ζ(z) = eᶻ − (C/σ(1)) z^(p+1) + …: error constants from the roots alone."""
    z = 0.02
    for name in ("AB2", "AM3", "BDF2", "BDF3", "Milne", "NY3", "ABM3"):
        method = multistep(name)
        roots = characteristic_roots(method, z)
        principal = roots[np.argmin(np.abs(roots - np.exp(z)))].real
        found = (np.exp(z) - principal) / z ** (method.order + 1)
        assert found == pytest.approx(float(method.global_error_constant), rel=0.12)


def test_zero_stability_has_exact_multiplicities():
    assert zero_stability("AB4")
    assert zero_stability("Milne")
    assert "1.022" in str(zero_stability(bdf(7)))
    double = Multistep([1, -2, 1], [0, 0, 1])  # (ζ − 1)²
    assert zero_stability(double).certificate["roots"] == ((1 + 0j, 2),)
    assert "multiplicity 2" in str(zero_stability(double))
    assert dict(zero_stability("AB4").certificate["roots"]) == {1 + 0j: 1, 0j: 3}


def test_barriers_are_told():
    text = str(multistep_report("BDF3"))
    assert "first barrier: order 3; zero-stable implicit 3-step methods have at most 4" in text
    assert "second barrier: order 3; A-stable methods have at most 2: this one cannot be" in text
    # The most accurate explicit two-step method, order 3, is beyond the first one.
    eager = Multistep([-5, 4, 1], [2, 4, 0])
    assert (eager.order, eager.is_zero_stable) == (3, False)
    assert "at most 2: this one cannot be" in str(multistep_report(eager))
    assert multistep_report("BDF3")._repr_html_().startswith("<pre>")


def test_dahlquists_barriers_hold_for_random_methods():
    """Methods of highest order for random ρ: none is stable beyond its barrier."""
    rng = np.random.default_rng(SEED)
    from integrators.methods.multistep.names import _weights

    for _ in range(40):
        k = int(rng.integers(1, 5))
        other = [F(int(c), 3) for c in rng.integers(-3, 4, size=k - 1)] + [F(1)]
        alpha = [a - b for a, b in zip([F(0), *other], [*other, F(0)])]  # (ζ − 1)·other
        if alpha[0] == 0:
            continue
        for places, most in ((range(k), k), (range(k + 1), k + 2 if k % 2 == 0 else k + 1)):
            method = Multistep(alpha, _weights(alpha, places))
            if method.is_zero_stable and (method.beta[-1] > 0) == (len(places) > k):
                assert method.order <= most
            if a_stability(method):
                assert method.order <= 2


def test_what_has_no_stability_function_says_so():
    for method in ("AB3", multistep("BDF2")):
        with pytest.raises(TypeError, match="multistep_report"):
            stability_function(method)
    with pytest.raises(TypeError, match="'AB3'"):
        root_locus(3)
    with pytest.raises(ValueError, match="did you mean"):
        multistep_report("Milner")


def test_regions_are_drawn():
    for methods in ("ABM2", ["Leapfrog", "BDF2", "RK4"]):
        ax = plot.stability_region(methods)
        assert ax.get_xlabel() == "Re z"
    with pytest.raises(ValueError, match="order_star"):
        plot.stability_region("AB2", order_star=True)


def test_convergence_studies_take_them():
    study = convergence("minus_2ty2", ["AB3", "BDF2", "ABM4"], [0.04, 0.02, 0.01, 0.005])
    assert [curve.verdict for curve in study.curves] == ["as expected"] * 3
