"""Random mechanisms, thousands; ``combinations`` says what is drawn and compared."""

import pytest

from tests.multibody.dynamics.combinations import CHEAP, PARTS, Doubtful, check

#: Draws of one test, and how many tests. Every draw goes through a part that costs little, in
#: turns (some 220 each); each test has one draw that goes through everything, four tests one that
#: is traced, too.
AT_A_TIME, TIMES = 100, 20


@pytest.mark.parametrize("first", range(1000, 1000 + AT_A_TIME * TIMES, AT_A_TIME))
def test_thousands_of_mechanisms(first):
    doubtful = 0
    for seed in range(first, first + AT_A_TIME):
        parts = PARTS if seed == first else (CHEAP[seed % len(CHEAP)],)
        try:
            check(seed, parts, traced=seed % 500 == 0)
        except Doubtful:
            doubtful += 1
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    assert doubtful < AT_A_TIME / 4
