"""Pools that have what ours have not: fixtures are those of tests/pool."""

from __future__ import annotations

from tests.pool.conftest import (  # noqa: F401 - pytest finds them here
    box,
    open_box,
    pool,
    pool_suite,
    pytest_generate_tests,
    pytest_runtest_makereport,
    sharectl,
)
