"""The command with a configuration in a folder, and jobs that call for targets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.cli.main import main

Run = Callable[..., tuple[int, str, str]]
"""Runs a command; its exit code, output and errors."""

ROWS = ["2 cn-1 alice 60 1 10"] * 64 + ["2 cn-2 Alice.prod 60 8 12.5"] * 2
WAITING = ["1 PEND cms 0 8 10"] * 3 + ["1 PEND cms 0 1 10"]


def configured(folder: Path, more: str = "") -> Path:
    """Configuration of two groups, with ``more`` of YAML; no pool is there."""
    path = folder / "sharectl.yaml"
    path.write_text(
        f"groups: {{alice: {{pledge_hs06: 100}}, cms: {{pledge_hs06: 300}}}}\n"
        f"state_directory: {folder}\nlock_wait_seconds: 0\n{more}",
        encoding="utf-8",
    )
    return path


def add(config: Path, text: str) -> None:
    """Add YAML to a configuration."""
    config.write_text(config.read_text(encoding="utf-8") + text, encoding="utf-8")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    more = "pool: {collector: '127.0.0.1:1', collector_deadline_seconds: 5}\n"
    return configured(tmp_path, f'{more}nodes: {{controlled: "cn-*"}}\n')


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "jobs"
    path.write_text("".join(f"{row}\n" for row in (*ROWS, *WAITING)), encoding="utf-8")
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], config: Path) -> Run:
    """The command with the configuration."""

    def ended(*arguments: object) -> tuple[int, str, str]:
        try:
            code = main([*map(str, arguments), "--config", str(config)])
        except SystemExit as error:
            code = int(error.code or 0)
        return (code, *capsys.readouterr())

    return ended
