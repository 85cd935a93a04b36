"""Advice about a sound configuration, and keys that cannot be used on this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sharectl.config import laws
from sharectl.config.files import clashes, kept, written
from sharectl.config.load import steering_of
from sharectl.config.model import OBSERVE, Config
from sharectl.errors import ConfigError
from sharectl.plan.nodes import ALL_NODES
from sharectl.publish import signing
from sharectl.shares.pledges import SOURCES

SERVICE = "sharectl.service"
Unit = Mapping[str, str]
"""Settings of the unit of cycles as systemd has them; empty without systemd or unit."""

_SYSTEMD_SECONDS = 10.0
_SETTINGS = ("LoadState", "StateDirectory", "ReadWritePaths", "ProtectSystem")
_SIGN = (
    "write signing_key_file: /etc/sharectl/keys, and there a line `KEYID HEX` "
    "(docs/transports.md), so that nodes tell these targets from forged ones"
)


def findings(config: Config, file: Path) -> tuple[list[str], list[str]]:
    """Problems of the configuration in ``file`` on this machine, and recommendations."""
    unit = unit_of()
    problems, unknown = unusable(config, file)
    return (
        [*problems, *protected(config, unit)],
        [*unknown, *absent(config, unit), *advice(config), *unlimited(config)],
    )


# ---- this machine


def unit_of(name: str = SERVICE, settings: Sequence[str] = _SETTINGS) -> Unit:
    """Unit that is installed, with its drop-ins; ``settings`` begin with LoadState."""
    command = ["systemctl", "show", name, f"--property={','.join(settings)}"]
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        shown = subprocess.check_output(command, text=True, timeout=_SYSTEMD_SECONDS, **streams)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    unit = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    return unit if unit.get("LoadState") == "loaded" else {}


def protected(config: Config, unit: Unit) -> Iterator[str]:
    """Folders that the unit keeps cycles from writing to."""
    writable = [path.lstrip("-+") for path in unit.get("ReadWritePaths", "").split()]
    for folder, places in _folders(config).items() if unit.get("ProtectSystem") == "strict" else ():
        real = Path(os.path.realpath(folder))
        if {str(path) for path in (real, *real.parents)}.isdisjoint((*writable, *_made(unit))):
            yield (
                f"{places}: {SERVICE} lets cycles write nothing to {folder} that others see; "
                f"`systemctl edit {SERVICE}`, and write there [Service] and below it "
                f"ReadWritePaths={folder} (instead of /home, /root or /tmp name another folder)"
            )


def _made(unit: Unit) -> list[str]:
    """Folders that systemd makes before a cycle."""
    return [f"/var/lib/{name}" for name in unit.get("StateDirectory", "").split()]


def absent(config: Config, unit: Unit) -> list[str]:
    """Folders to write to that are not there, but for those that systemd or a cycle makes."""
    own = config.state_directory
    made = [*_made(unit), *([str(own)] if _is_folder(own.parent) else [])]
    return [
        f"{places}: there is no folder {folder} on this machine; make it before cycles run here"
        for folder, places in _folders(config).items()
        if not os.access(folder, os.F_OK) and str(folder) not in made
    ]


def unusable(config: Config, file: Path) -> tuple[list[str], list[str]]:
    """Problems of cycles on this machine, and files that this user has no right to look at."""
    problems = [*_missing(config, file), *_other_kinds(config), *clashes(config, file)]
    problems += laws.problems(steering_of(config))
    try:
        if config.signing_key_file is not None:
            signing.read_keys(config.signing_key_file)
    except ConfigError as error:
        of_keys = [f"signing_key_file: {problem}" for problem in error.problems]
        if isinstance(error.__cause__, PermissionError):
            return problems, of_keys
        problems += of_keys
    return problems, []


def _missing(config: Config, file: Path) -> Iterator[str]:
    """Files that are read, and that are not there; a file of keys is read itself."""
    unused = tuple(f"pledges.{source}." for source in SOURCES if source != config.pledges.source)
    for read in kept(config, file):
        is_used = "." in read.name and not read.name.startswith(unused)
        if read.is_read and is_used and not os.access(read.path, os.F_OK):
            fact = f"there is no {read.path} on this machine"
            yield f"{read.name}: {fact}; put it there, or write another"


def _other_kinds(config: Config) -> Iterator[str]:
    """Files to write that are folders, and folders that are something else."""
    for file in written(config):
        if _is_folder(file.path):
            yield f"{file.name}: {file.path} is a folder; name a file"
    for folder, places in _folders(config).items():
        if os.access(folder, os.F_OK) and not _is_folder(folder):
            yield f"{places}: {folder} is no folder; move it away, or name a folder"


def _folders(config: Config) -> dict[Path, str]:
    """Folder that is written to → the places that name it, or a file in it."""
    folders = {config.state_directory: "state_directory"}
    for file in written(config):
        folder = file.path.parent
        if not file.name.startswith("history.") or folder != config.state_directory:
            folders[folder] = f"{folders[folder]}, {file.name}" if folder in folders else file.name
    return folders


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - no right to look is no exception


# ---- signatures


def advice(config: Config, mounts: Path = signing.MOUNTS) -> list[str]:
    """Recommendations about signatures."""
    if config.signing_key_file is None:
        return [f"{place}: {why}; {_SIGN}" for place, why in _boundaries(config, mounts)]
    if any(way.collector is None for way in config.publish):
        return []
    fact = "signs nothing: ads in collectors are known by their sender"
    return [f"signing_key_file: {fact}; remove it"]


def _boundaries(config: Config, mounts: Path) -> Iterator[tuple[str, str]]:
    """Entries of ``publish`` whose targets others could replace on their way, and how."""
    owners = [os.geteuid()]
    if os.access(config.state_directory, os.F_OK):
        owners.append(config.state_directory.stat().st_uid)
    for number, way in enumerate(config.publish):
        at = f"publish[{number}]"
        if way.https is not None:
            yield f"{at}.https", "crosses the network, and the web server is trusted with it"
        elif way.file is not None:
            why = signing.why_untrusted(way.file, mounts, owners)
            if why is not None:
                yield f"{at}.file", f"{way.file}: {why}"


# ---- nodes


def unlimited(config: Config) -> Iterator[str]:
    """Advice where the first cycle may steer all nodes."""
    limits = config.control.limits
    bounds = (limits.max_nodes, limits.max_target_ratio, limits.max_changed_nodes)
    all_nodes = config.nodes.controlled == ALL_NODES
    if config.mode != OBSERVE and all_nodes and bounds == (None, None, None):
        yield (
            "nodes.controlled: all nodes, and no limit: the first cycle may steer the whole pool; "
            'write a share such as "5%" first, control.max_nodes, or mode: observe'
        )
