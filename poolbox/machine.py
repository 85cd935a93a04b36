"""What this machine must have and allow to build and run a box, and what to do where it does not."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from poolbox.errors import CannotBuildError

PROBE_SECONDS = 20
# Program → Debian and Ubuntu package that brings it.
TO_RUN = {"bwrap": "bubblewrap"}
TO_BUILD = {**TO_RUN, "mmdebstrap": "mmdebstrap", "newuidmap": "uidmap", "tar": "tar"}
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Kernel setting, the value that forbids user namespaces to ordinary users, what to run as root.
FORBIDDING = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=15000"),
)


def check_can_run() -> None:
    """Nothing, or `CannotBuildError` that says what to install or allow before a box can run here."""
    _check_programs(TO_RUN, [])
    probe = ["bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
    if done.returncode:
        remedies = list(_forbidden(Path("/proc/sys")))
        raise CannotBuildError(
            f"bubblewrap cannot make a sandbox here: {done.stderr.strip()}\n"
            f"Allow user namespaces{': as root, ' + '; '.join(remedies) if remedies else ', or run as root'}"
        )


def check_can_build() -> None:
    """Nothing, or `CannotBuildError` that says what to install or set up before a root can be built here."""
    _check_programs(TO_BUILD, [] if KEYRING.exists() else ["debian-archive-keyring"])
    check_can_run()
    if os.geteuid() != 0:
        user = pwd.getpwuid(os.geteuid()).pw_name
        for path in (Path("/etc/subuid"), Path("/etc/subgid")):
            if not _has_range(path, user):
                raise CannotBuildError(
                    f"{path}: no range for {user}, who needs one to unpack packages.\n"
                    f"As root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}"
                )


def _check_programs(programs: dict[str, str], missing: list[str]) -> None:
    missing = [package for program, package in programs.items() if shutil.which(program) is None] + missing
    if missing:
        raise CannotBuildError(
            "no pool can be built here: neither an HTCondor of this machine's own (condor_master on PATH) with "
            f"bubblewrap around it, nor the tools to build one.\nInstall: apt install {' '.join(missing)}"
        )


def _forbidden(settings: Path) -> Iterator[str]:
    for name, value, remedy in FORBIDDING:
        path = settings / name
        if path.exists() and path.read_text().strip() == value:
            yield remedy


def _has_range(path: Path, user: str) -> bool:
    ids = {user, str(os.geteuid())}
    return path.exists() and any(line.split(":")[0] in ids for line in path.read_text().splitlines())
