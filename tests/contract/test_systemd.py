"""The units pass systemd's tools, and fit each other and the defaults.

tests/pool/test_service.py runs them under a systemd that is PID 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import job_ctl
import target
from poolbox.waiting import HANG_SECONDS
from sharectl.config.advice import protected
from sharectl.config.load import parse
from sharectl.config.model import TARGETS_FILE
from sharectl.control.laws import GAP_SECONDS
from sharectl.cycle.doubts import WARMUP_SECONDS
from sharectl.plan.settings import OBEY_SECONDS
from sharectl.times import CRON_PERIOD_SECONDS, PERIOD_SECONDS, UPDATE_INTERVAL_SECONDS

UNITS = Path(__file__).parents[2] / "systemd"
SERVICE, TIMER = "sharectl.service", "sharectl.timer"
SERVICES = (SERVICE, "sharectl@.service")
MOST_EXPOSURE = 1.5
"""Of systemd's measure, 0 to 10."""


def systemd(*words: str) -> subprocess.CompletedProcess[str]:
    """Run of one of systemd's tools. Skips the test without it, unless none may be skipped."""
    if shutil.which(words[0]) is None:
        required = os.environ.get("POOL_REQUIRED") == "1"
        (pytest.fail if required else pytest.skip)(f"install systemd: no {words[0]}")
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=HANG_SECONDS)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units, with a program that is there on this machine."""
    for unit in (*SERVICES, TIMER):
        text = (UNITS / unit).read_text()
        (tmp_path / unit).write_text(text.replace("=/usr/bin/sharectl", "=/bin/true"))
    return tmp_path


def settings(unit: str, section: str) -> dict[str, list[str]]:
    """Setting -> its values, in order, of a section of a unit."""
    values: dict[str, list[str]] = {}
    name = ""
    for line in (UNITS / unit).read_text().replace("\\\n", " ").splitlines():
        key, equals, value = line.partition("=")
        if line.startswith("["):
            name = line.strip("[]")
        elif equals and not line.startswith("#") and name == section:
            values.setdefault(key, []).append(value)
    return values


def exposure(unit: Path) -> float:
    """Systemd's measure of a service's rights beyond its task."""
    done = systemd("systemd-analyze", "security", "--offline=true", "--no-pager", str(unit))
    match = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert match is not None, done.stdout + done.stderr
    return float(match[1])


def test_verify_is_silent(installed: Path) -> None:
    done = systemd("systemd-analyze", "verify", str(installed / SERVICE), str(installed / TIMER))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("service", SERVICES)
def test_the_service_is_hardened(installed: Path, service: str) -> None:
    unit = (installed / service).rename(installed / service.replace("@", "@siteA"))
    assert exposure(unit) <= MOST_EXPOSURE


def test_the_units_of_several_pools_differ_from_the_one_only_in_their_names() -> None:
    several, one = (settings(unit, "Service") for unit in ("sharectl@.service", SERVICE))
    own = {name: value for name, value in several.items() if value != one.get(name)}
    assert own == {
        "ExecStart": ["/usr/bin/sharectl cycle --config /etc/sharectl/%i.yaml"],
        "ExecStartPre": ["/usr/bin/install -m 0600 %d/pool.token %t/sharectl-%i/pool.token"],
        "LoadCredential": ["pool.token:/etc/sharectl/%i.token"],
        "RuntimeDirectory": ["sharectl-%i"],
        "Environment": ["_CONDOR_SEC_TOKEN_DIRECTORY=%t/sharectl-%i"],
        "StateDirectory": ["sharectl/%i"],
        "SyslogIdentifier": ["sharectl-%i"],
    }
    assert several.keys() == one.keys()
    assert settings("sharectl@.timer", "Timer") == settings(TIMER, "Timer")


def test_the_periods_fit_each_other_and_the_intervals_of_htcondor() -> None:
    timer = settings(TIMER, "Timer")
    boot, period = (
        60 * int(timer[key][0].removesuffix("min")) for key in ("OnBootSec", "OnUnitActiveSec")
    )
    assert boot >= WARMUP_SECONDS >= UPDATE_INTERVAL_SECONDS
    config = parse("groups: {cms: {pledge_hs06: 1}}", "sharectl.yaml")
    assert config.validity_seconds > 2 * period + UPDATE_INTERVAL_SECONDS
    assert (period, GAP_SECONDS) == (PERIOD_SECONDS, 3 * CRON_PERIOD_SECONDS)
    assert 2 * period < OBEY_SECONDS, "two cycles after its target"


def test_the_defaults_name_one_place_for_targets_that_the_service_can_write_to() -> None:
    unit = {name: " ".join(values) for name, values in settings(SERVICE, "Service").items()}
    assert Path("/var/lib", unit["StateDirectory"]) == TARGETS_FILE.parent
    assert (unit["UMask"], unit["StateDirectoryMode"]) == ("0022", "0755"), "all may read it"
    groups = "groups: {cms: {pledge_hs06: 1}}\n"
    assert list(protected(parse(groups, "F"), unit)) == []
    assert list(protected(parse(f"{groups}publish: [{{file: /shared/targets}}]", "F"), unit)) != []
    default = f"file:{TARGETS_FILE}"
    snippet = (UNITS.parent / "config.d" / "60-sharectl-execute-point.conf").read_text()
    assert re.findall(r"^SHARECTL_SOURCE = (.*)$", snippet, re.MULTILINE) == [default]
    assert [job.OPTIONS["--source"][0] for job in (job_ctl, target)] == [default, default]
