"""Elements × loops × gears × free joints × drives × formulations; ``combinations`` says how."""

import pytest

from tests.multibody.elements.combinations import Doubtful, check


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 6])
def test_elements_on_random_mechanisms(seed):
    check(seed, traced=False)


def test_elements_on_random_mechanisms_traced_and_in_lanes():
    check(2)


def test_a_singular_start_is_not_judged():
    with pytest.raises(Doubtful):
        check(4, traced=False)
