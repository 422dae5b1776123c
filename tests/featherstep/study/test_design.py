"""Parameters of run k: laws against SciPy's, designs against what defines them."""

import logging

import numpy as np
import pytest
from scipy import stats

from featherstep import (
    Choice,
    LogNormal,
    LogUniform,
    Normal,
    Triangular,
    TruncatedNormal,
    Uniform,
)
from featherstep.study.sampling.design import design_of
from featherstep.study.sampling.distributions import LAWS, distribution_of

U = np.array([1e-9, 0.03, 0.25, 0.5, 0.77, 0.999, 1 - 1e-9])

EXAMPLES = {
    "normal": (Normal(2.0, 0.3), stats.norm(2.0, 0.3)),
    "truncated_normal": (
        TruncatedNormal(2.0, 0.3, 1.7, 2.9),
        stats.truncnorm(-1.0, 3.0, loc=2.0, scale=0.3),
    ),
    "log_normal": (LogNormal(2.0, 1.5), stats.lognorm(np.log(1.5), scale=2.0)),
    "uniform": (Uniform(-1.0, 3.0), stats.uniform(-1.0, 4.0)),
    "log_uniform": (LogUniform(1e-3, 10.0), stats.loguniform(1e-3, 10.0)),
    "triangular": (Triangular(1.0, 1.5, 4.0), stats.triang(0.5 / 3.0, loc=1.0, scale=3.0)),
}


@pytest.mark.parametrize("kind", sorted(set(LAWS) - {"choice"}))
def test_laws_are_those_of_scipy(kind):
    law, peer = EXAMPLES[kind]
    assert np.allclose(law.quantile(U), peer.ppf(U), rtol=1e-10, atol=1e-12)
    assert distribution_of(law.plain()) == law
    assert law.middle == pytest.approx(peer.median(), rel=1e-12)


def test_choice_draws_with_its_weights():
    law = Choice([3.0, 1.0, 2.0], weights=[1, 2, 1])
    assert law.quantile(np.array([0.1, 0.3, 0.7, 0.8])).tolist() == [3.0, 1.0, 1.0, 2.0]
    assert distribution_of(law.plain()) == law
    assert distribution_of(Choice([1, 2]).plain()) == Choice([1, 2])


SAMPLINGS = ("random", "sobol", "latin_hypercube", "saltelli")


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_rows_do_not_depend_on_the_block(sampling):
    vary = {"a": Uniform(0, 1), "b": Normal(0, 1)}
    design = design_of(vary, 9000, 5, sampling)
    whole = design.rows(0, 9000)
    rng = np.random.default_rng(1)
    for first, stop in np.sort(rng.integers(0, 9001, (8, 2)), axis=1):
        if first < stop:
            for name, column in design.rows(int(first), int(stop)).items():
                assert np.array_equal(column, whole[name][first:stop])
    assert np.isfinite(whole["b"]).all()
    other = design_of(vary, 9000, 6, sampling).rows(0, 9000)
    assert not np.array_equal(other["a"], whole["a"])


def test_random_columns_are_independent_and_have_their_law():
    design = design_of({"a": Uniform(0, 1), "b": Normal(0, 1)}, 20_000, 3, None)
    rows = design.rows(0, 20_000)
    assert stats.kstest(rows["a"], stats.uniform().cdf).pvalue > 1e-3
    assert stats.kstest(rows["b"], stats.norm().cdf).pvalue > 1e-3
    assert abs(np.corrcoef(rows["a"], rows["b"])[0, 1]) < 0.03
    # One more parameter, or more runs, change nothing that was there.
    more = design_of({"a": Uniform(0, 1), "c": Uniform(0, 1)}, 30_000, 3, None)
    assert np.array_equal(more.rows(0, 20_000)["a"], rows["a"])


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_latin_hypercube_has_one_run_in_each_stratum(n):
    rows = design_of({"a": Uniform(0, 1), "b": Uniform(0, 1)}, n, 2, "latin_hypercube").rows(0, n)
    for column in rows.values():
        assert sorted(np.floor(column * n).astype(int)) == list(range(n))
    if n == 1000:
        assert abs(np.corrcoef(rows["a"], rows["b"])[0, 1]) < 0.1


def test_sobol_points_are_balanced(caplog):
    rows = design_of({"a": Uniform(0, 1), "b": Uniform(0, 1)}, 256, 2, "sobol").rows(0, 256)
    counts = np.histogram2d(rows["a"], rows["b"], bins=4, range=[[0, 1], [0, 1]])[0]
    assert (counts == 16).all()
    with caplog.at_level(logging.INFO):
        design_of({"a": Uniform(0, 1)}, 100, 2, "sobol")
    assert "64 or 128" in caplog.text


def test_saltelli_changes_one_coordinate_at_a_time():
    rows = design_of({"a": Uniform(0, 1), "b": Uniform(0, 1)}, 40, 2, "saltelli").rows(0, 40)
    points = np.array([rows["a"], rows["b"]]).T.reshape(10, 4, 2)
    a, from_a, from_b, b = np.moveaxis(points, 1, 0)
    assert np.array_equal(from_a, np.array([b[:, 0], a[:, 1]]).T)
    assert np.array_equal(from_b, np.array([a[:, 0], b[:, 1]]).T)


def test_grid_is_the_product():
    design = design_of({"a": [1, 2], "b": [5, 6, 7]}, None, 0, "grid")
    rows = design.rows(1, 6)
    assert rows["a"].tolist() == [1, 1, 2, 2, 2]
    assert rows["b"].tolist() == [6, 7, 5, 6, 7]


def test_tables_and_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, np.nan]})
    design = design_of(frame, None, 0, None)
    assert design.sampling == "table"
    assert design.rows(1, 2)["a"].tolist() == [2.0]
    assert design.plain()["sha256"] != design_of({"a": [1, 2], "b": [3, 4]}, 2, 0, None).plain()


@pytest.mark.parametrize(
    ("vary", "n", "sampling", "words"),
    [
        ({}, 3, None, "laws by name"),
        ({"a": Uniform(0, 1)}, None, None, "how many runs"),
        ({"a": Uniform(0, 1)}, 0, None, "whole number ≥ 1"),
        ({"a": Uniform(0, 1)}, 10, "sobl", "did you mean sobol"),
        ({"a": Uniform(0, 1)}, 10, "saltelli", "take 9"),
        ({"a": [1, 2], "b": [1]}, None, None, "one length"),
        ({"a": [1, 2]}, 3, None, "2 rows"),
        ({"a": [1, 2], "b": Uniform(0, 1)}, 5, None, "Choice"),
        ({"a": Uniform(0, 1)}, 5, "grid", "numbers of an axis"),
        ({"a": 3.0}, 5, None, "fixed"),
        ({"a": {"normal": [1]}}, 5, None, "mean, deviation"),
        ({"a": {"norml": [1, 2]}}, 5, None, "did you mean normal"),
    ],
)
def test_refusals_say_what_was_expected(vary, n, sampling, words):
    with pytest.raises(ValueError, match=words):
        design_of(vary, n, 0, sampling)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Normal(0, 0),
        lambda: Normal("a", 1),
        lambda: Uniform(2, 1),
        lambda: LogUniform(0, 1),
        lambda: Triangular(0, 3, 2),
        lambda: TruncatedNormal(0, 1, 2, 1),
        lambda: LogNormal(1, 0.5),
        lambda: Choice([]),
        lambda: Choice([1, 2], weights=[0, 0]),
        lambda: Normal(np.nan, 1),
    ],
)
def test_laws_refuse_nonsense(make):
    with pytest.raises(ValueError, match="expected"):
        make()
