"""Random mechanisms, a thousand and more; ``combinations`` says what is drawn and compared."""

import pytest

from tests.multibody.dynamics.combinations import PARTS, Doubtful, check

#: Draws of one test, and how many tests: every draw goes through one part, in turns.
AT_A_TIME, TIMES = 40, 30


@pytest.mark.parametrize("seed", range(16))
def test_all_roads_lead_to_the_same_numbers(seed):
    try:
        check(seed, traced=seed % 8 == 0)
    except Doubtful:
        pytest.skip("next to a singular position")


@pytest.mark.parametrize("first", range(1000, 1000 + AT_A_TIME * TIMES, AT_A_TIME))
def test_a_thousand_mechanisms(first):
    doubtful = 0
    for seed in range(first, first + AT_A_TIME):
        try:
            check(seed, PARTS[seed % len(PARTS) : seed % len(PARTS) + 1])
        except Doubtful:
            doubtful += 1
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    assert doubtful < AT_A_TIME / 4
