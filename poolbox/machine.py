"""Requirements of a box on this machine, and the remedies."""

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
KEYRING = "usr/share/keyrings/debian-archive-keyring.gpg"
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


def check_can_run(system: Path = Path("/")) -> None:
    """Raise CannotBuildError with what to install or allow before a box can run here."""
    _check_programs(TO_RUN, [])
    probe = [
        "bwrap",
        "--unshare-user",
        "--unshare-pid",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "true",
    ]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
    if done.returncode:
        remedies = "; ".join(_forbidden(system / "proc" / "sys"))
        raise CannotBuildError(
            f"bubblewrap cannot make a sandbox here: {done.stderr.strip()}\n"
            f"Allow user namespaces{f': as root, {remedies}' if remedies else ''}; "
            "in a container, start it with leave to mount /proc, or run outside of it"
        )


def check_can_build(system: Path = Path("/")) -> None:
    """Raise CannotBuildError with what to install before a root can be built here."""
    _check_programs(TO_BUILD, [] if (system / KEYRING).exists() else ["debian-archive-keyring"])
    check_can_run(system)
    if os.geteuid() != 0:
        check_has_subordinate_ids(pwd.getpwuid(os.geteuid()).pw_name, system)


def check_has_subordinate_ids(user: str, system: Path) -> None:
    """Raise CannotBuildError if an ordinary user has no subordinate ids to unpack with."""
    for name in ("subuid", "subgid"):
        path = system / "etc" / name
        lines = path.read_text().splitlines() if path.exists() else []
        if not any(line.split(":")[0] in (user, str(os.geteuid())) for line in lines):
            raise CannotBuildError(
                f"{path}: no range for {user}, who needs one to unpack packages.\n"
                f"As root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}"
            )


def _check_programs(programs: dict[str, str], missing: list[str]) -> None:
    missing = [
        package for program, package in programs.items() if shutil.which(program) is None
    ] + missing
    if missing:
        raise CannotBuildError(
            "no pool can run here: there must be an HTCondor of this machine's own "
            "(condor_master on PATH) and "
            f"bubblewrap, or the tools to build one.\nInstall: apt install {' '.join(missing)}"
        )


def _forbidden(settings: Path) -> Iterator[str]:
    for name, value, remedy in FORBIDDING:
        path = settings / name
        if path.exists() and path.read_text().strip() == value:
            yield remedy
