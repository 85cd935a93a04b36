"""The units pass systemd's tools, and forbid nothing that sharectl needs."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sharectl.config.advice import protected
from sharectl.config.load import parse
from sharectl.config.model import TARGETS_FILE

UNITS = Path(__file__).parents[2] / "systemd"
SERVICE, TIMER, USERS = "sharectl.service", "sharectl.timer", "sharectl.sysusers.conf"
EXPOSURE = 20  # in tenths

# Takes away what the unit takes away, for itself and for what it becomes: memory that is writable
# and executable
# (prctl PR_SET_MDWE), and the system calls that are not in argv[1].
CONFINED = """
import ctypes, errno, os, sys
libc, seccomp = ctypes.CDLL(None, use_errno=True), ctypes.CDLL("libseccomp.so.2")
if libc.prctl(65, 1, 0, 0, 0):
    print("no PR_SET_MDWE here:", os.strerror(ctypes.get_errno()), file=sys.stderr)
seccomp.seccomp_init.restype = ctypes.c_void_p
rules = ctypes.c_void_p(seccomp.seccomp_init(0x00050000 | errno.EPERM))
for name in sys.argv[1].split():
    number = seccomp.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:
        seccomp.seccomp_rule_add(rules, 0x7FFF0000, number, 0)
if libc.prctl(38, 1, 0, 0, 0) or seccomp.seccomp_load(rules):
    sys.exit("cannot confine")
os.execv(sys.argv[2], sys.argv[2:])
"""

WORK = """
import ctypes, mmap, os
import classad2, htcondor2
assert classad2.ExprTree("6 * 7").eval() == 42
try:
    htcondor2.Collector("127.0.0.1:1").query()
except htcondor2.HTCondorException:
    print("asked")
libc = ctypes.CDLL(None, use_errno=True)
print("forbidden" if libc.setuid(os.getuid()) and ctypes.get_errno() == 1 else "setuid is allowed")
"""


def tool(name: str) -> str:
    """Path of one of systemd's tools. Skips the test without it, unless none may be skipped."""
    path = shutil.which(name)
    if path is None:
        (pytest.fail if os.environ.get("POOL_REQUIRED") == "1" else pytest.skip)(
            f"install systemd: no {name}"
        )
    return path


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units, with a program that is there on this machine."""
    for unit in (SERVICE, TIMER):
        text = (UNITS / unit).read_text()
        (tmp_path / unit).write_text(
            text.replace("ExecStart=/usr/bin/sharectl", "ExecStart=/bin/true")
        )
    return tmp_path


def settings(unit: str, section: str) -> dict[str, list[str]]:
    """Setting → its values, in order, of a section of a unit."""
    parser = configparser.RawConfigParser(strict=False, dict_type=_Repeated)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # settings have capitals
    parser.read(UNITS / unit)
    return {key: value.splitlines() for key, value in parser.items(section)}


class _Repeated(dict):  # type: ignore[type-arg]
    """Keeps the values of a setting that is there more than once."""

    def __setitem__(self, key: str, value: object) -> None:
        if isinstance(value, list) and isinstance(self.get(key), list):
            value = self[key] + value
        super().__setitem__(key, value)


def verified(folder: Path) -> subprocess.CompletedProcess[str]:
    units = [str(folder / SERVICE), str(folder / TIMER)]
    return subprocess.run(
        [tool("systemd-analyze"), "verify", *units],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def exposure(folder: Path) -> float:
    """What systemd thinks the service could do beyond its task, 0 to 10."""
    done = subprocess.run(
        [
            tool("systemd-analyze"),
            "security",
            "--offline=true",
            "--no-pager",
            str(folder / SERVICE),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    match = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert match is not None, done.stdout
    return float(match[1])


def test_verify_is_silent(installed: Path) -> None:
    done = verified(installed)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_verify_would_speak_of_a_misspelt_setting(installed: Path) -> None:
    with (installed / TIMER).open("a") as timer:
        timer.write("[Timer]\nOnUnitActivSec=1min\n")
    assert "OnUnitActivSec" in verified(installed).stderr


def test_the_service_is_exposed_at_most_2(installed: Path) -> None:
    assert exposure(installed) <= EXPOSURE / 10


def test_an_unhardened_service_would_be_exposed_more(installed: Path) -> None:
    (installed / SERVICE).write_text("[Service]\nType=oneshot\nExecStart=/bin/true\n")
    assert exposure(installed) > EXPOSURE / 10


def test_a_cycle_runs_every_17_minutes_and_no_two_at_once() -> None:
    timer = settings(TIMER, "Timer")
    assert timer["OnUnitActiveSec"] == ["17min"]
    assert timer["OnBootSec"]
    assert settings(SERVICE, "Service")["Type"] == ["oneshot"]


def test_the_service_runs_as_a_user_that_sysusers_makes(tmp_path: Path) -> None:
    service = settings(SERVICE, "Service")
    (tmp_path / "etc").mkdir()
    subprocess.run(
        [tool("systemd-sysusers"), f"--root={tmp_path}", str(UNITS / USERS)],
        check=True,
        capture_output=True,
        timeout=60,
    )
    users = [line.split(":") for line in (tmp_path / "etc" / "passwd").read_text().splitlines()]
    (user,) = [fields for fields in users if fields[0] == "sharectl"]
    assert service["User"] == service["Group"] == ["sharectl"]
    assert user[5] == f"/var/lib/{service['StateDirectory'][0]}"
    assert int(user[2]) < 1000, "a system user"
    assert user[6].endswith("nologin")


def test_the_defaults_name_one_place_for_targets_that_the_service_can_write_to() -> None:
    unit = {name: " ".join(values) for name, values in settings(SERVICE, "Service").items()}
    assert Path("/var/lib", unit["StateDirectory"]) == TARGETS_FILE.parent
    groups = "groups: {cms: {pledge_hs06: 1}}\n"
    assert protected(parse(groups, "F"), unit) == []
    assert protected(parse(f"{groups}publish: [{{file: /shared/targets}}]", "F"), unit) != []
    default = f"file:{TARGETS_FILE}"
    snippet = (UNITS.parent / "config.d" / "60-sharectl-execute-point.conf").read_text()
    assert re.findall(r"^SHARECTL_SOURCE = (.*)$", snippet, re.MULTILINE) == [default]
    for job in ("job_ctl.py", "target.py"):
        text = (UNITS.parent / "startd_cron" / job).read_text()
        assert re.findall(r'"--source": \(\s*"([^"]*)"', text) == [default], job


def test_what_is_published_can_be_read_by_all() -> None:
    service = settings(SERVICE, "Service")
    assert service["UMask"] == ["0022"]
    assert service["StateDirectoryMode"] == ["0755"]


def test_the_bindings_work_within_what_is_left() -> None:
    service = settings(SERVICE, "Service")
    allowed: set[str] = set()
    for words in service["SystemCallFilter"]:
        calls = {call for word in words.lstrip("~").split() for call in calls_in(word)}
        allowed = allowed - calls if words.startswith("~") else allowed | calls
    assert service["MemoryDenyWriteExecute"] == ["yes"]
    done = subprocess.run(
        [sys.executable, "-c", CONFINED, " ".join(sorted(allowed)), sys.executable, "-c", WORK],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "CONDOR_CONFIG": "/dev/null"},
    )
    assert done.stdout.split("\n")[:2] == ["asked", "forbidden"], done.stderr


def calls_in(group: str) -> set[str]:
    """System calls of a group such as ``@system-service``."""
    if not group.startswith("@"):
        return {group}
    done = subprocess.run(
        [tool("systemd-analyze"), "syscall-filter", "--no-pager", group],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    words = [line.strip() for line in done.stdout.splitlines()[1:]]
    return {call for word in words if word and not word.startswith("#") for call in calls_in(word)}
