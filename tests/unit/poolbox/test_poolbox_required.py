"""What the pool tests do on a machine that can have no pool."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
A_POOL_TEST = "tests/pool/test_box.py::test_everything_listens_on_the_loopback_only"


@pytest.mark.parametrize(
    ("required", "outcome", "exit_code"), [("0", "1 skipped", 0), ("1", "1 error", 1)]
)
def test_a_pool_test_is_skipped_unless_a_pool_is_required(
    required: str, outcome: str, exit_code: int, tmp_path: Path
) -> None:
    bare = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "POOL_REQUIRED": required}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", A_POOL_TEST],
        env={**os.environ, **bare},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == exit_code, done.stdout
    assert outcome in done.stdout
    assert "Install: apt install bubblewrap mmdebstrap uidmap" in done.stdout
