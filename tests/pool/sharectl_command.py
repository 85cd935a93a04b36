"""The command ``sharectl`` as users run it, with the pool in CONDOR_CONFIG."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Optional

import yaml

from poolbox import Box
from poolbox.waiting import HANG_SECONDS
from sharectl.model import Plan, Target
from tests.schemas import problems

CHECKOUT = Path(__file__).parents[2]
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT / "central")}
GROUPS = {"cms": 300.0, "atlas": 200.0}
"""Group -> pledge, HS06, unless a test says otherwise."""


@dataclass(frozen=True)
class Sharectl:
    """``sharectl`` for one pool, its files in one folder."""

    box: Box
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beyond that of the pool's user, such as another CONDOR_CONFIG."""
    within: tuple[str, ...] = ()
    """Command that starts the command, such as nsenter."""

    @property
    def targets(self) -> Path:
        """Where it publishes."""
        return self.folder / "sharectl.txt"

    @property
    def jobs_file(self) -> Path:
        """``AcctGroup_hs06.txt``."""
        return self.folder / "AcctGroup_hs06.txt"

    @property
    def errors_log(self) -> Path:
        """``shares_Error.log``."""
        return self.folder / "shares_Error.log"

    def start(
        self, *arguments: str, program: Sequence[str] = ("-m", "sharectl"), **configuration: Any
    ) -> subprocess.Popen[str]:
        """The command, started with the sections ``configuration`` laid over the least form."""
        path = self._configured(configuration)
        return subprocess.Popen(
            [*self.within, sys.executable, *program, *arguments, "--config", str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**ENVIRONMENT, **self.box.client_environment, **self.environment},
        )

    def run(
        self, *arguments: str, expect: Optional[int] = 0, **configuration: Any
    ) -> subprocess.CompletedProcess[str]:
        """What became of the command; its exit code must be ``expect`` unless that is None."""
        started = self.start(*arguments, **configuration)
        try:
            out, err = started.communicate(timeout=HANG_SECONDS)
        finally:
            started.kill()
        done = subprocess.CompletedProcess(arguments, started.returncode, out, err)
        assert expect in (None, done.returncode), f"{done.returncode}\n{out}\n{err}"
        return done

    def json(self, *arguments: str, **configuration: Any) -> dict[str, Any]:
        """The JSON that a verb prints, which has to fit its schema."""
        printed: dict[str, Any] = json.loads(self.run(*arguments, "--json", **configuration).stdout)
        assert problems(printed) == []
        return printed

    def publish(
        self, plan: Plan, expect: int = 0, **configuration: Any
    ) -> subprocess.CompletedProcess[str]:
        """Publish that plan as a cycle publishes its own."""
        path = self.folder / "plan.json"
        path.write_text(json.dumps(asdict(plan)))
        program = str(CHECKOUT / "tests" / "publish_plan.py")
        return self.run(str(path), expect=expect, program=(program,), **configuration)

    def _configured(self, configuration: dict[str, Any]) -> Path:
        content: dict[str, Any] = {
            "groups": {name: {"pledge_hs06": pledge} for name, pledge in GROUPS.items()},
            "publish": [{"file": str(self.targets)}],
            "history": {"jobs_file": str(self.jobs_file), "errors_log": str(self.errors_log)},
            "state_directory": str(self.folder),
        }
        content.update(configuration)
        path = self.folder / f"sharectl-{abs(hash(repr(configuration)))}.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path


def with_bindings(
    program: str, question: object, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """A program of somebody else, in a process with HTCondor's bindings; asked by its argument."""
    return subprocess.run(
        [sys.executable, "-c", program, json.dumps(question)],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )


def plan_for(nodes: Sequence[str], validity_seconds: int, cap: int, sequence: int = 0) -> Plan:
    """Plan that holds back atlas to that many cores on all these nodes, for cms."""
    now = int(time.time())
    targets = tuple(Target(node, "atlas", cap, "cms", 8) for node in nodes)
    until = now + validity_seconds
    return Plan(sequence or now, now, until, tuple(GROUPS), targets, "targets", "atlas", "cms")


def bare(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Outcome of the command as a user types it, without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "sharectl", *arguments],
        env={**ENVIRONMENT, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )


def offline(*arguments: str, expect: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """The JSON that a verb prints without configuration and pool."""
    done = bare(*arguments, "--json")
    assert done.returncode in expect, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def consumption_report(box: Box, folder: Path, host: str) -> dict[str, Any]:
    """Report of `sharectl consumption check` on the dump of a host's configuration."""
    dump = folder / f"{host}.dump"
    dump.write_text(box.run(["condor_config_val", "-dump", "-verbose"], host=host).stdout)
    return offline("consumption", "check", str(dump), expect=(0, 1))


def consumption_findings(box: Box, folder: Path, host: str) -> list[dict[str, Any]]:
    """Errors among its findings."""
    findings = consumption_report(box, folder, host)["findings"]
    return [finding for finding in findings if finding["level"] == "error"]
