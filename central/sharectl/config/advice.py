"""Advice about a sound configuration, and what it names that cannot be used on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Callable, Optional

from sharectl.config.files import clashes, on_disk, written
from sharectl.config.groups import all_groups, place_of
from sharectl.config.load import steering_of
from sharectl.config.model import Config
from sharectl.config.service_unit import SERVICE, Unit, unit_of
from sharectl.control.laws import Ewma, Pid
from sharectl.control.setpoints import CarryOver
from sharectl.errors import ConfigError
from sharectl.files.yaml import place
from sharectl.publish import signing

_SIGN = (
    "write signing_key_file: /etc/sharectl/keys, and there a line `KEYID HEX` "
    "(docs/transports.md), so that nodes tell these targets from forged ones"
)
_EXTRAS = {
    "optimise": ("scipy", "plans are chosen greedily"),
    "parquet": ("pyarrow", "`ledger export --format parquet` exits 69"),
}
"""Extra → its library, and what happens without it."""


def findings(config: Config, file: Path) -> tuple[list[str], list[str]]:
    """Problems of the configuration in ``file`` on this machine, and recommendations."""
    unit = unit_of()
    problems, unknown = unusable(config, file)
    refused = protected(config, unit)
    needed, extras = missing_extras(config)
    # Without an installed unit cycles may run in another way.
    by_service = unit is not None and unit.installed
    problems += [*(refused if by_service else []), *needed]
    recommended = [*unknown, *absent(config, unit), *([] if by_service else refused)]
    return problems, [*recommended, *advice(config), *idle(config), *extras]


def is_installed(library: str) -> bool:
    """Whether a library can be imported."""
    return find_spec(library) is not None


def advice(config: Config, mounts: Path = signing.MOUNTS) -> list[str]:
    """Recommendations about signatures."""
    if config.signing_key_file is None:
        return [f"{place}: {why}; {_SIGN}" for place, why in _boundaries(config, mounts)]
    if any(way.collector is None for way in config.publish):
        return []
    return [
        "signing_key_file: signs nothing: ads in collectors are known by their sender; remove it"
    ]


def _boundaries(config: Config, mounts: Path) -> Iterator[tuple[str, str]]:
    """Entries of ``publish`` whose targets others could replace on their way, and how."""
    owners = [os.geteuid()]
    if os.path.exists(config.state_directory):  # noqa: PTH110 - no right to look is no exception
        owners.append(config.state_directory.stat().st_uid)
    for number, way in enumerate(config.publish):
        at = f"publish[{number}]"
        if way.https is not None:
            yield f"{at}.https", "crosses the network, and the web server is trusted with it"
        elif way.file is not None:
            why = signing.why_untrusted(way.file, mounts, owners)
            if why is not None:
                yield f"{at}.file", f"{way.file}: {why}"


def absent(config: Config, unit: Optional[Unit] = None) -> list[str]:
    """Folders to write to that are not there, but for those that an installed unit makes."""
    own = config.state_directory
    made = unit.makes if unit is not None and unit.installed else frozenset[Path]()
    first = "the first cycle makes it; correct state_directory if that is not what it should be"
    return [
        f"{places}: there is no folder {folder} on this machine; "
        + (first if folder == own and _is_folder(own.parent) else "make it before cycles run here")
        for folder, places in _folders(config).items()
        if folder not in made and not os.path.exists(folder)  # noqa: PTH110 - as above
    ]


def missing_extras(
    config: Config, is_installed: Callable[[str], bool] = is_installed
) -> tuple[list[str], list[str]]:
    """Problems with extras that the configuration needs, and a recommendation of all."""
    missing = {extra: use for extra, (library, use) in _EXTRAS.items() if not is_installed(library)}
    if not missing:
        return [], []
    install = f"`pip install '.[{','.join(missing)}]'` in the checkout"
    uses = "; ".join(f"{extra} ({use})" for extra, use in missing.items())
    problems = []
    many = config.control.strategy == "many" and config.control.assigning.solver == "highs"
    if many and "optimise" in missing:
        needs = "control.solver: `highs` needs scipy, which is not installed"
        problems = [f"{needs}; {install}, or write auto"]
    return problems, [f"extras that are not installed: {uses}; {install} brings them"]


def protected(config: Config, unit: Optional[Unit]) -> list[str]:
    """Folders that the unit of cycles keeps them from writing to."""
    lines = []
    for folder, places in _folders(config).items() if unit is not None else ():
        setting = unit.protection(folder) if unit is not None else None
        if setting is not None and unit is not None:
            by_path = setting.startswith("ProtectSystem")
            line = f"`systemctl edit {SERVICE}`, and write there [Service] and below it "
            remedy = f"{line}ReadWritePaths={folder}" if by_path else "name a folder elsewhere"
            fact = f"{unit.file} lets cycles write nothing to {folder} that others see ({setting})"
            lines.append(f"{places}: {fact}; {remedy}")
    return lines


def unusable(config: Config, file: Path) -> tuple[list[str], list[str]]:
    """Problems of cycles on this machine, and what this user has no right to look at."""
    problems = [*_missing(config), *_in_the_way(config)]
    problems += [f"{place(at)}: {message}" for at, message in clashes(config, file, on_disk)]
    try:
        if config.signing_key_file is not None:
            signing.read_keys(config.signing_key_file)
    except ConfigError as error:
        of_keys = [f"signing_key_file: {problem}" for problem in error.problems]
        if isinstance(error.__cause__, PermissionError):
            return problems, of_keys
        problems += of_keys
    return problems, []


def _missing(config: Config) -> Iterator[str]:
    """Files that the source of pledges reads, and that are not there."""
    source, cric = config.pledges.source, config.pledges.cric
    named = {"negotiator.file": config.pledges.negotiator.file} if source == "negotiator" else {}
    if source == "cric" and cric is not None:
        named = {"cric.ca_file": cric.ca_file, "cric.ca_directory": cric.ca_directory}
    for key, path in named.items():
        if path is not None and not os.path.exists(path):  # noqa: PTH110 - as above
            absent = f"there is no {path} on this machine"
            yield f"pledges.{key}: {absent}; put it there, or write another"


def _in_the_way(config: Config) -> Iterator[str]:
    """What is there and cannot be written to, or replaced."""
    for folder, places in _folders(config).items():
        if os.path.exists(folder) and not _is_folder(folder):  # noqa: PTH110 - as above
            yield f"{places}: {folder} is no folder; name another path, or move what is there"
    for file in written(config):
        if file.at[0] != "history" and _is_folder(file.path) and not file.path.is_symlink():
            remedy = f"name the file in it that nodes are to read, such as {file.path}/sharectl.txt"
            yield f"{file.name}: {file.path} is a folder; {remedy}"


def _folders(config: Config) -> dict[Path, str]:
    """Folder that is written to → the places that name it, or a file in it."""
    folders = {config.state_directory: "state_directory"}
    for file in written(config):
        folder = file.path.parent
        if file.at[0] != "history" or folder != config.state_directory:
            folders[folder] = f"{folders[folder]}, {file.name}" if folder in folders else file.name
    return folders


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - no right to look is no exception


def idle(config: Config) -> list[str]:
    """Settings without effect, each with its place, the reason and the remedy."""
    return [*_idle_loans(config), *_idle_control(config), *_idle_laws(config)]


def _idle_loans(config: Config) -> Iterator[str]:
    pledges, loans = config.tree.pledge_hs06, steering_of(config).entitlement.loans
    lenders = {name for name, most in loans.max_lent_hs06.items() if most}
    for name, most in loans.max_lent_hs06.items():
        pledge = pledges.get(name, 0.0)
        if 0 < pledge < most and config.pledges.source == "yaml":
            yield (
                f"{place_of(name)}.max_lent_hs06: {most:g} bounds nothing while its share is no "
                f"more than its pledge, {pledge:g} HS06: all of it may be lent; write less than "
                "that"
            )
    for name in loans.max_borrowed_hs06:
        if not lenders - {name}:
            yield (
                f"{place_of(name)}.max_borrowed_hs06: has no effect, because no other group lends; "
                "write max_lent_hs06 for those that may, or remove it"
            )


def _idle_control(config: Config) -> Iterator[str]:
    carry = config.control.entitlement.carry_over
    if not carry.carries and carry != CarryOver(carry.pledge_hours, carry.hs06_hours):
        yield (
            "control.carry_over: has no effect without an amount; write pledge_hours, such as 24, "
            "or hs06_hours in it, or remove it"
        )
    dwell, validity = config.control.limits.dwell_seconds, config.validity_seconds
    if dwell > validity:
        yield (
            f"control.dwell_seconds: {dwell} is above validity_seconds, {validity}: a target lasts "
            f"that long only while cycles renew it. {validity} s after the last cycle nodes drop "
            "it, and the next cycle decides again; write cycles closer than that, or a longer "
            "validity_seconds"
        )


def _idle_laws(config: Config) -> Iterator[str]:
    """Parameters of laws by which no group is controlled."""
    default, steering = config.control.acting, steering_of(config)
    groups = dict(all_groups(config.groups))
    law_of = {name: steering.by_group.get(name, steering.control).law for name in groups}
    written = {("", "control.ewma", "ewma")} if default.ewma != Ewma() else set()
    written |= {("", "control.pid", "pid")} if default.pid != Pid() else set()
    for name, line in groups.items():
        own = line[-1].control
        for law in ("ewma", "pid"):
            if own is not None and getattr(own, law) is not None:
                written.add((name, f"{place_of(name)}.control.{law}", law))
    for name, at, law in sorted(written):
        within = [one for one in groups if not name or f"{one}.".startswith(f"{name}.")]
        if law not in {law_of[one] for one in within}:
            remedy = f"write law: {law} beside it, or remove it"
            yield f"{at}: has no effect, because no group is controlled by it; {remedy}"
