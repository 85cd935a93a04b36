"""Advice about a sound configuration, and keys that cannot be used on this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Callable

from sharectl.config.files import clashes, kept, written
from sharectl.config.groups import all_groups, place_of
from sharectl.config.load import steering_of
from sharectl.config.model import Config
from sharectl.control.laws import Ewma, Pid
from sharectl.control.setpoints import CarryOver
from sharectl.errors import ConfigError
from sharectl.publish import signing
from sharectl.shares.pledges import SOURCES

SERVICE = "sharectl.service"
Unit = Mapping[str, str]
"""Settings of the unit of cycles as systemd has them; empty without systemd or unit."""

_SYSTEMD_SECONDS = 10.0
_HIDDEN = {"ProtectHome": ("/home", "/root", "/run/user"), "PrivateTmp": ("/tmp", "/var/tmp")}  # noqa: S108
_READ_ONLY = {"strict": ("/",), "full": ("/usr", "/boot", "/etc")}
"""Value of ProtectSystem → folders."""
_SETTINGS = ("LoadState", "StateDirectory", "ReadWritePaths", "ProtectSystem", *_HIDDEN)
_SIGN = (
    "write signing_key_file: /etc/sharectl/keys, and there a line `KEYID HEX` "
    "(docs/transports.md), so that nodes tell these targets from forged ones"
)
_EXTRAS = {
    "optimise": ("scipy", "plans are chosen greedily"),
    "parquet": ("pyarrow", "`ledger export --format parquet` exits 69"),
}
"""Extra → its library, and the effect of its absence."""


def findings(config: Config, file: Path) -> tuple[list[str], list[str]]:
    """Problems of the configuration in ``file`` on this machine, and recommendations."""
    unit = unit_of()
    problems, unknown = unusable(config, file)
    needed, extras = missing_extras(config)
    problems += [*protected(config, unit), *needed]
    return problems, [*unknown, *absent(config, unit), *advice(config), *idle(config), *extras]


# ---- this machine


def unit_of() -> Unit:
    """Unit that is installed, with its drop-ins."""
    command = ["systemctl", "show", SERVICE, f"--property={','.join(_SETTINGS)}"]
    try:
        shown = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SYSTEMD_SECONDS,
            check=True,
        ).stdout
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    unit = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    return unit if unit.get("LoadState") == "loaded" else {}


def protected(config: Config, unit: Unit) -> Iterator[str]:
    """Folders that the unit keeps cycles from writing to."""
    writable = [path.lstrip("-+") for path in unit.get("ReadWritePaths", "").split()]
    system = unit.get("ProtectSystem", "")
    settings = {f"{name}=yes": names for name, names in _HIDDEN.items() if unit.get(name) == "yes"}
    settings[f"ProtectSystem={system}"] = _READ_ONLY.get(system, ())
    for folder, places in _folders(config).items():
        real = Path(os.path.realpath(folder))
        above = {str(path) for path in (real, *real.parents)}
        if above.isdisjoint((*writable, *_made(unit))):
            setting = next((name for name, names in settings.items() if above & {*names}), None)
            if setting is not None:
                line = f"`systemctl edit {SERVICE}`, and write there [Service] and below it "
                remedy = f"{line}ReadWritePaths={folder}"
                remedy = remedy if setting.startswith("ProtectS") else "name a folder elsewhere"
                fact = f"{SERVICE} lets cycles write nothing to {folder} that others see"
                yield f"{places}: {fact} ({setting}); {remedy}"


def _made(unit: Unit) -> list[str]:
    """Folders that systemd makes before a cycle."""
    return [f"/var/lib/{name}" for name in unit.get("StateDirectory", "").split()]


def absent(config: Config, unit: Unit) -> list[str]:
    """Folders to write to that are not there, but for those that systemd makes."""
    own = config.state_directory
    first = "the first cycle makes it; correct state_directory if it should be another"
    return [
        f"{places}: there is no folder {folder} on this machine; "
        + (first if folder == own and _is_folder(own.parent) else "make it before cycles run here")
        for folder, places in _folders(config).items()
        if str(folder) not in _made(unit) and not _is_there(folder)
    ]


def unusable(config: Config, file: Path) -> tuple[list[str], list[str]]:
    """Problems of cycles on this machine, and files that this user has no right to look at."""
    problems = [*_missing(config, file), *_in_the_way(config), *clashes(config, file)]
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
        if read.is_read and is_used and not _is_there(read.path):
            fact = f"there is no {read.path} on this machine"
            yield f"{read.name}: {fact}; put it there, or write another"


def _in_the_way(config: Config) -> Iterator[str]:
    """Files and folders that cannot be written to, or replaced."""
    for folder, places in _folders(config).items():
        if _is_there(folder) and not _is_folder(folder):
            yield f"{places}: {folder} is not a folder; name another path, or move what is there"
    for file in written(config):
        of_history = file.name.startswith("history.")
        if not of_history and _is_folder(file.path) and not file.path.is_symlink():
            remedy = f"name the file in it that nodes are to read, such as {file.path}/sharectl.txt"
            yield f"{file.name}: {file.path} is a folder; {remedy}"


def _folders(config: Config) -> dict[Path, str]:
    """Folder that is written to → the places that name it, or a file in it."""
    folders = {config.state_directory: "state_directory"}
    for file in written(config):
        folder = file.path.parent
        if not file.name.startswith("history.") or folder != config.state_directory:
            folders[folder] = f"{folders[folder]}, {file.name}" if folder in folders else file.name
    return folders


def _is_there(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - no right to look is no exception


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - no right to look is no exception


def missing_extras(
    config: Config, spec_of: Callable[[str], object] = find_spec
) -> tuple[list[str], list[str]]:
    """Problems with extras that the configuration needs, and a recommendation of all."""
    missing = {extra: use for extra, (library, use) in _EXTRAS.items() if spec_of(library) is None}
    install = f"`pip install '.[{','.join(missing)}]'` in the checkout"
    uses = "; ".join(f"{extra} ({use})" for extra, use in missing.items())
    many = config.control.strategy == "many" and config.control.assigning.solver == "highs"
    needs = "control.solver: `highs` needs scipy, which is not installed"
    return (
        [f"{needs}; {install}, or write auto"] if many and "optimise" in missing else [],
        [f"extras that are not installed: {uses}; {install} brings them"] if missing else [],
    )


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
    if _is_there(config.state_directory):
        owners.append(config.state_directory.stat().st_uid)
    for number, way in enumerate(config.publish):
        at = f"publish[{number}]"
        if way.https is not None:
            yield f"{at}.https", "crosses the network, and the web server is trusted with it"
        elif way.file is not None:
            why = signing.why_untrusted(way.file, mounts, owners)
            if why is not None:
                yield f"{at}.file", f"{way.file}: {why}"


# ---- settings without effect


def idle(config: Config) -> list[str]:
    """Settings without effect, each with its place, the reason and the remedy."""
    return [*_idle_loans(config), *_idle_control(config), *_idle_laws(config)]


def _idle_loans(config: Config) -> Iterator[str]:
    pledges, loans = config.tree.pledge_hs06, steering_of(config).entitlement.loans
    lenders = {name for name, most in loans.max_lent_hs06.items() if most}
    for name, most in loans.max_lent_hs06.items():
        pledge = pledges.get(name, 0.0)
        if 0 < pledge < most and config.pledges.source == "yaml":
            fact = f"bounds nothing: it is more than its pledge, {pledge:g} HS06"
            yield f"{place_of(name)}.max_lent_hs06: {most:g} {fact}; write less than that"
    for name in loans.max_borrowed_hs06:
        if not lenders - {name}:
            fact = "has no effect, because no other group lends"
            remedy = "write max_lent_hs06 for those that may, or remove it"
            yield f"{place_of(name)}.max_borrowed_hs06: {fact}; {remedy}"


def _idle_control(config: Config) -> Iterator[str]:
    carry = config.control.entitlement.carry_over
    if not carry.carries and carry != CarryOver(carry.pledge_hours, carry.hs06_hours):
        remedy = "write pledge_hours, such as 24, or hs06_hours in it, or remove it"
        yield f"control.carry_over: has no effect without an amount; {remedy}"
    dwell, validity = config.control.limits.dwell_seconds, config.validity_seconds
    if dwell > validity:
        fact = f"{dwell} is above validity_seconds, {validity}: nodes drop targets before"
        yield f"control.dwell_seconds: {fact}; write a longer validity_seconds"


def _idle_laws(config: Config) -> Iterator[str]:
    """Parameters of laws by which no group is controlled."""
    default, steering = config.control.acting, steering_of(config)
    sections = {name: line[-1].control for name, line in all_groups(config.groups)}
    law_of = {name: steering.by_group.get(name, steering.control).law for name in sections}
    for law, usual in (("ewma", Ewma()), ("pid", Pid())):
        owners = ["", *(name for name, own in sections.items() if own and getattr(own, law))]
        for owner in owners if getattr(default, law) != usual else owners[1:]:
            within = (name for name in law_of if not owner or f"{name}.".startswith(f"{owner}."))
            if law not in {law_of[name] for name in within}:
                place = f"{place_of(owner)}.control" if owner else "control"
                fact = "has no effect, because no group is controlled by it"
                yield f"{place}.{law}: {fact}; write law: {law} beside it, or remove it"
