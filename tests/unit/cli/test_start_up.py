"""Libraries that a verb loads when it needs them, not when it starts (bench/start_up.py)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from poolbox.waiting import HANG_SECONDS

LIBRARIES = """asyncio classad2 difflib htcondor2 jinja2 multiprocessing prometheus_client
pydantic requests ssl"""


@pytest.mark.parametrize("verb", ["main", "cycle", "status", "plan"])
def test_a_start_loads_no_library_that_is_needed_later(verb: str) -> None:
    code = f"import sys, sharectl.cli.{verb}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    modules = set(done.stdout.split())
    assert f"sharectl.cli.{verb}" in modules
    assert modules.intersection(LIBRARIES.split()) == set()
