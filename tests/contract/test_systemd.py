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
SERVICE, TIMER, USERS = "sharectl.service", "sharectl.timer", "sharectl.sysusers.conf"
SERVICES = (SERVICE, "sharectl@.service")
FOLDERS = "sharectl.tmpfiles.conf"
MOST_EXPOSURE = 1.5
"""HTCondor's default, and that of SCHEDD_INTERVAL."""


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
    """Systemd's measure of a service's rights beyond its task, 0 to 10."""
    command = ("systemd-analyze", "security", "--offline=true", "--no-pager")
    done = systemd(*command, str(unit))
    match = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert match is not None, done.stdout + done.stderr
    return float(match[1])


def test_verify_is_silent_but_of_a_misspelt_setting(installed: Path) -> None:
    command = ("systemd-analyze", "verify", str(installed / SERVICE), str(installed / TIMER))
    done = systemd(*command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with (installed / TIMER).open("a") as timer:
        timer.write("[Timer]\nOnUnitActivSec=1min\n")
    assert "OnUnitActivSec" in systemd(*command).stderr


@pytest.mark.parametrize("service", SERVICES)
def test_the_service_is_hardened(installed: Path, service: str) -> None:
    unit = (installed / service).rename(installed / service.replace("@", "@siteA"))
    assert exposure(unit) <= MOST_EXPOSURE
    unit.write_text("[Service]\nType=oneshot\nExecStart=/bin/true\n")
    assert exposure(unit) > MOST_EXPOSURE, "without its settings"


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


def test_the_service_runs_as_a_user_of_sysusers_and_all_read_its_files(tmp_path: Path) -> None:
    service = settings(SERVICE, "Service")
    (tmp_path / "etc").mkdir()
    assert systemd("systemd-sysusers", f"--root={tmp_path}", str(UNITS / USERS)).returncode == 0
    users = [line.split(":") for line in (tmp_path / "etc" / "passwd").read_text().splitlines()]
    ((name, _, number, _, _, home, shell),) = [user for user in users if user[0] == "sharectl"]
    assert service["User"] == service["Group"] == [name]
    assert home == f"/var/lib/{service['StateDirectory'][0]}"
    assert int(number) < 1000, "a system user"
    assert shell.endswith("nologin")
    assert (service["UMask"], service["StateDirectoryMode"]) == (["0022"], ["0755"])


def test_tmpfiles_makes_folders_that_all_may_enter() -> None:
    words = [line.split() for line in (UNITS / FOLDERS).read_text().splitlines() if line[0] != "#"]
    state = f"/var/lib/{settings(SERVICE, 'Service')['StateDirectory'][0]}"
    assert words == [
        ["d", "/etc/sharectl", "0755", "root", "root"],
        ["d", state, "0755", "sharectl", "sharectl"],
    ]


def test_the_token_is_a_credential_that_may_be_absent() -> None:
    service = settings(SERVICE, "Service")
    name, _, path = service["LoadCredential"][0].partition(":")
    assert path == "/etc/sharectl/pool.token"
    stand_in = service["SetCredential"][0]
    assert stand_in == f"{name}:#", "a comment; systemd takes no empty one"
    copy = service["ExecStartPre"][0].split()
    assert copy[:4] == ["/usr/bin/install", "-m", "0600", f"%d/{name}"]
    assert service["Environment"] == [f"_CONDOR_SEC_TOKEN_DIRECTORY={Path(copy[4]).parent}"]
    assert Path(copy[4]).parent == Path("%t", service["RuntimeDirectory"][0])


def test_the_drop_in_of_two_central_managers_has_one_condition() -> None:
    assert settings("sharectl.negotiator.conf", "Service").keys() == {"ExecCondition"}


def test_the_defaults_name_one_place_for_targets_that_the_service_can_write_to() -> None:
    unit = {name: " ".join(values) for name, values in settings(SERVICE, "Service").items()}
    assert Path("/var/lib", unit["StateDirectory"]) == TARGETS_FILE.parent
    groups = "groups: {cms: {pledge_hs06: 1}}\n"
    assert list(protected(parse(groups, "F"), unit)) == []
    assert list(protected(parse(f"{groups}publish: [{{file: /shared/targets}}]", "F"), unit)) != []
    default = f"file:{TARGETS_FILE}"
    snippet = (UNITS.parent / "config.d" / "60-sharectl-execute-point.conf").read_text()
    assert re.findall(r"^SHARECTL_SOURCE = (.*)$", snippet, re.MULTILINE) == [default]
    assert [job.OPTIONS["--source"][0] for job in (job_ctl, target)] == [default, default]
