"""Compiled code of these tests stays out of the user's cache."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _cache_of_these_tests(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEATHERSTEP_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
