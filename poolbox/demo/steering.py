"""Runs `sharectl` on a box as its timer does: a process with a configuration file."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

from poolbox import Box, PoolboxError
from poolbox.demo import scenario

CYCLE_DEADLINE_SECONDS = 60.0
MEASURE, STEER = "0%", "*"


@dataclasses.dataclass(frozen=True)
class Cycle:
    """Result of one run of ``sharectl cycle``."""

    exit_code: int
    errors: str
    """Standard error: the problems."""
    record: Optional[dict[str, Any]]
    """Its JSON (taken_at, errors, plan …); None if it printed none."""

    def error_hs06(self, group: str) -> float:
        """DHS of a group; `KeyError` if this cycle measured none."""
        rows = self.record["errors"] if self.record else []
        return {row["group"]: float(row["error_hs06"]) for row in rows}[group]

    @property
    def taken_at(self) -> int:
        """Unix seconds of its look; `KeyError` if it printed no JSON."""
        return int((self.record or {})["taken_at"])

    @property
    def measured(self) -> bool:
        """True if it has the errors of the groups."""
        return bool(self.record and self.record["errors"])


class Sharectl:
    """sharectl on the central manager of a box; its files are in ``directory``."""

    def __init__(self, box: Box, directory: Path) -> None:
        self.box = box
        self.directory = directory
        self.errors_log = directory / "shares_Error.log"
        self.targets_file = box.shared_directory / scenario.TARGETS_FILE
        for controlled, path in self._configurations.items():
            path.write_text(scenario.sharectl_yaml(directory, self.targets_file, controlled))

    def cycle(self, controlled: str) -> Cycle:
        """Run one cycle; ``controlled`` is `MEASURE` or `STEER`."""
        return run_cycle(self.box, self._configurations[controlled])

    def switch(self, *, enabled: bool) -> None:
        """Switch the snippet's clauses on every node on or off, as an admin would."""
        for node in self.box.spec.execute_points:
            self.box.write_config(node.name, scenario.node_config(enabled=enabled))
            self.box.reconfig(node.name)

    @property
    def _configurations(self) -> dict[str, Path]:
        return {MEASURE: self.directory / "measure.yaml", STEER: self.directory / "steer.yaml"}


def run_cycle(box: Box, configuration: Path) -> Cycle:
    """Run ``sharectl cycle`` once, as its timer does."""
    command = [sys.executable, "-m", "sharectl", "cycle", "--json", "--config", str(configuration)]
    try:
        done = subprocess.run(
            command,
            env={
                **os.environ,
                **box.client_environment,
                "PYTHONPATH": str(scenario.CHECKOUT / "central"),
            },
            capture_output=True,
            text=True,
            timeout=CYCLE_DEADLINE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PoolboxError(
            f"{' '.join(command)} took longer than {CYCLE_DEADLINE_SECONDS:g} s"
        ) from None
    record = json.loads(done.stdout) if done.stdout.startswith("{") else None
    return Cycle(done.returncode, done.stderr.strip(), record)
