"""A package of somebody else with laws, installed as users install one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from poolbox.waiting import HANG_SECONDS

CENTRAL = Path(__file__).parents[3] / "central"
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "site-laws"
version = "1.0"

[project.entry-points."sharectl.laws"]
half = "site_laws:half"
lazy = "site_laws:lazy"
"""
LAWS = """
from poolbox.waiting import HANG_SECONDS
from sharectl.control.laws import Move

def half(policy):
    def step(state, reading, dt_seconds):
        return Move({"steps": state.get("steps", 0) + 1}, reading.error_hs06 / 2)
    return step

def lazy(policy):
    return lambda state, reading, dt_seconds: Move({}, 0.0)
"""
ROWS = ["2 cn-1 alice 60 1 10"] * 64 + ["2 cn-2 cms 60 8 12.5"] * 2 + ["1 PEND cms 0 8 10"] * 3


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the package, built and installed by pip without a network."""
    source, there = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("packages")
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "site_laws.py").write_text(LAWS)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    install = [*pip, "--no-build-isolation", "--target", str(there), str(source)]
    subprocess.run(install, check=True, capture_output=True, timeout=HANG_SECONDS)
    return there


def sharectl(
    packages: Path, folder: Path, control: str, *words: str
) -> subprocess.CompletedProcess[str]:
    config, jobs = folder / "sharectl.yaml", folder / "jobs"
    jobs.write_text("".join(f"{row}\n" for row in ROWS))
    groups = "groups: {alice: {pledge_hs06: 100}, cms: {pledge_hs06: 300}}\n"
    config.write_text(f"{groups}state_directory: {folder}\ncontrol: {control}\n")
    return subprocess.run(
        [sys.executable, "-m", "sharectl", *words, "--config", str(config)],
        env={**os.environ, "PYTHONPATH": f"{packages}:{CENTRAL}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )


def plan(packages: Path, folder: Path, control: str) -> dict[str, Any]:
    done = sharectl(packages, folder, control, "plan", "--jobs", str(folder / "jobs"), "--json")
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def test_a_law_of_a_package_decides(packages: Path, tmp_path: Path) -> None:
    moving, lazy = (plan(packages, tmp_path, f"{{law: {law}}}") for law in ("half", "lazy"))
    assert [target["helped"] for target in moving["targets"]] == ["cms"]
    assert lazy["targets"] == []


def test_fences_act_on_it(packages: Path, tmp_path: Path) -> None:
    for fence in ("deadband_hs06: 100000", 'max_target_share: "0%"'):
        assert plan(packages, tmp_path, f"{{law: half, {fence}}}")["targets"] == []


def test_its_name_is_among_those_of_the_configuration(packages: Path, tmp_path: Path) -> None:
    wrong = sharectl(packages, tmp_path, "{law: hlf}", "check", "config")
    assert wrong.returncode == 78
    assert "write one of latest, ewma, pid, learned, half, lazy" in wrong.stderr
    bare = sharectl(CENTRAL, tmp_path, "{law: half}", "check", "config")
    assert (bare.returncode, '"half" is invalid' in bare.stderr) == (78, True)
