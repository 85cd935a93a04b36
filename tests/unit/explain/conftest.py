"""A ledger of three busy cycles, and the commands that read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.cli.cycle import digest_of
from sharectl.cli.main import main
from sharectl.config.load import load
from sharectl.plan.records import CycleRecord
from tests.ledgers import busy, law, write
from tests.verbs import Ended

CYCLES = 3
CONFIG = """
groups:
  alice: {{pledge_hs06: 71400}}
  atlas: {{pledge_hs06: 105300}}
  cms: {{pledge_hs06: 87100}}
control: {{strategy: pair, max_nodes: {max_nodes}, give_up_seconds: 604800}}
state_directory: {folder}
"""


Run = Callable[..., Ended]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return configured(tmp_path)


def configured(folder: Path, *, max_nodes: int = 4) -> Path:
    """Write the configuration that the ledger was made by, or one with another limit."""
    path = folder / "sharectl.yaml"
    path.write_text(CONFIG.format(folder=folder, max_nodes=max_nodes), encoding="utf-8")
    return path


@pytest.fixture
def kept(tmp_path: Path, config: Path) -> list[CycleRecord]:
    looks = [busy(number) for number in range(CYCLES)]
    return write(tmp_path, law(max_nodes=4), looks, digest_of(load(config)))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], config: Path) -> Run:
    """Run ``sharectl`` with the configuration."""

    def ended(*arguments: object) -> Ended:
        try:
            code = main([*map(str, arguments), "--config", str(config)])
        except SystemExit as error:
            code = int(error.code or 0)
        return Ended(code, *capsys.readouterr())

    return ended
