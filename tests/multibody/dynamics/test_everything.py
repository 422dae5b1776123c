"""A sample of ``combinations``, of which thousands can be drawn by hand."""

import pytest

from tests.multibody.dynamics.combinations import Doubtful, check


@pytest.mark.parametrize("seed", range(24))
def test_all_roads_lead_to_the_same_numbers(seed):
    try:
        check(seed, traced=seed % 12 == 0, run=seed % 6 == 0)
    except Doubtful:
        pytest.skip("next to a singular position")
