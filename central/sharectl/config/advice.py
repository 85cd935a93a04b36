"""What a sound configuration should rather say, and what it names that cannot be used on this machine.

Settings of a sound configuration that do nothing, and what they want to do something.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Callable, Optional, Union

from pydantic import BaseModel

from sharectl.config.control import CarryOverConfig, EwmaConfig, PidConfig
from sharectl.config.files import clashes, on_disk, written
from sharectl.config.groups import GroupConfig, SubgroupConfig
from sharectl.config.model import Config
from sharectl.config.service_unit import SERVICE, Protection, Unit
from sharectl.errors import ConfigError
from sharectl.files.yaml import place
from sharectl.publish import signing

_SIGN = (
    "write signing_key_file: /etc/sharectl/keys, and there a line `KEYID HEX` "
    "(docs/transports.md), so that nodes tell "
    "these targets from forged ones"
)


_EXTRAS = {
    "optimise": ("scipy", "plans are chosen greedily"),
    "parquet": ("pyarrow", "`ledger export --format parquet` exits 69"),
}
"""Extra -> its library, and what happens without it."""


def is_installed(library: str) -> bool:
    """Whether a library can be imported."""
    return find_spec(library) is not None


def advice(config: Config, mounts: Path = signing.MOUNTS) -> list[str]:
    """What should be written instead; a configuration with none of it works too."""
    if config.signing_key_file is None:
        return [f"{place}: {why}; {_SIGN}" for place, why in _boundaries(config, mounts)]
    if any(way.collector is None for way in config.publish):
        return []
    return [
        "signing_key_file: signs nothing: ads in collectors are known by their sender; remove it"
    ]


def absent(config: Config, unit: Optional[Unit] = None) -> list[str]:
    """Folders that are to be written to and are not there on this machine, but for those that an installed unit makes."""
    own = config.state_directory
    made = unit.makes if unit is not None and unit.installed else frozenset[Path]()
    return [
        f"{places}: there is no folder {folder} on this machine; "
        + (
            "the first cycle makes it; correct state_directory if that is not what it should be"
            if folder == own and _is_folder(own.parent)
            else "make it before cycles run here"
        )
        for folder, places in _folders(config).items()
        if folder not in made and not os.path.exists(folder)  # noqa: PTH110 - no right to look is no exception
    ]


def missing_extras(
    config: Config, is_installed: Callable[[str], bool] = is_installed
) -> tuple[list[str], list[str]]:
    """Extras that the configuration needs and that are not installed, and a line for the others."""
    missing = {extra: use for extra, (library, use) in _EXTRAS.items() if not is_installed(library)}
    install = f"`pip install '.[{','.join(missing)}]'` in the checkout"
    problems = []
    if (
        "optimise" in missing
        and config.control.strategy == "many"
        and config.control.solver == "highs"
    ):
        problems = [
            f"control.solver: `highs` needs scipy, which is not installed; {install}, or write auto"
        ]
    uses = "; ".join(f"{extra} ({use})" for extra, use in missing.items())
    return problems, [
        f"extras that are not installed: {uses}; {install} brings them"
    ] if missing else []


def protected(config: Config, unit: Optional[Unit]) -> list[str]:
    """Folders that the unit of cycles keeps them from writing to."""
    if unit is None:
        return []
    protections = {folder: unit.protection(folder) for folder in _folders(config)}
    return [
        f"{places}: {unit.file} lets cycles write nothing to {folder} that others see "
        f"({protection.setting}); {_way_out(folder, protection)}"
        for folder, places in _folders(config).items()
        if (protection := protections[folder]) is not None
    ]


def _way_out(folder: Path, protection: Protection) -> str:
    if not protection.by_path:
        return "name a folder elsewhere"
    return (
        f"`systemctl edit {SERVICE}`, and write there [Service] and below it "
        f"ReadWritePaths={folder}"
    )


def unusable(config: Config, file: Path) -> tuple[list[str], list[str]]:
    """What keeps cycles with the configuration in ``file`` from running on this machine; what this user cannot tell."""
    clashing = [f"{place(at)}: {message}" for at, message in clashes(config, file, on_disk)]
    missing = [*_missing(config), *_in_the_way(config), *clashing]
    if config.signing_key_file is None:
        return missing, []
    try:
        signing.read_keys(config.signing_key_file)
    except ConfigError as error:
        found = [f"signing_key_file: {problem}" for problem in error.problems]
        return (
            (missing, found)
            if isinstance(error.__cause__, PermissionError)
            else ([*missing, *found], [])
        )
    return missing, []


def _missing(config: Config) -> Iterator[str]:
    """Files that the source of pledges reads, and that are not there."""
    source, cric = config.pledges.source, config.pledges.cric
    named = {"negotiator.file": config.pledges.negotiator.file} if source == "negotiator" else {}
    if source == "cric" and cric is not None:
        named = {"cric.ca_file": cric.ca_file, "cric.ca_directory": cric.ca_directory}
    for key, path in named.items():
        if path is not None and not os.path.exists(path):  # noqa: PTH110 - one that cannot be looked at is no exception
            yield f"pledges.{key}: there is no {path} on this machine; put it there, or write another"


def _in_the_way(config: Config) -> Iterator[str]:
    """What is there already and cannot be written to, or replaced, as cycles do."""
    for folder, places in _folders(config).items():
        if os.path.exists(folder) and not _is_folder(folder):  # noqa: PTH110 - as above
            yield f"{places}: {folder} is no folder; name another path, or move what is there"
    for file in written(config):
        if file.at[0] != "history" and _is_folder(file.path) and not file.path.is_symlink():
            yield (
                f"{file.name}: {file.path} is a folder; name the file in it that nodes are to read, such "
                f"as {file.path}/sharectl.txt"
            )


def _folders(config: Config) -> dict[Path, str]:
    """Folder that is written to -> the places that name it, or a file in it."""
    folders = {config.state_directory: "state_directory"}
    for file in written(config):
        if file.at[0] != "history" or file.path.parent != config.state_directory:
            named = folders.get(file.path.parent)
            folders[file.path.parent] = file.name if named is None else f"{named}, {file.name}"
    return folders


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - one that cannot be looked into is no exception


def _boundaries(config: Config, mounts: Path) -> Iterator[tuple[str, str]]:
    """Entries of ``publish`` whose targets others could replace on their way, and how."""
    for number, way in enumerate(config.publish):
        if way.https is not None:
            yield (
                f"publish[{number}].https",
                "crosses the network, and the web server is trusted with it",
            )
        elif way.file is not None:
            why = signing.why_untrusted(way.file, mounts, _owners(config))
            if why is not None:
                yield f"publish[{number}].file", f"{way.file}: {why}"


def _owners(config: Config) -> list[int]:
    """Both this user and the one that cycles run as, who owns ``state_directory``."""
    try:
        return [os.geteuid(), config.state_directory.stat().st_uid]
    except OSError:
        return [os.geteuid()]


_AnyGroup = Union[GroupConfig, SubgroupConfig]
_PARAMETERS: Mapping[str, type[BaseModel]] = {"ewma": EwmaConfig, "pid": PidConfig}
"""Law -> its parameters."""


def idle(config: Config) -> list[str]:
    """Place, why a setting does nothing or not what it says, and what to write instead."""
    return [*_loans(config), *_carry_over(config), *_laws(config), *_dwell(config)]


def _loans(config: Config) -> Iterator[str]:
    groups = dict(_all_groups(config.groups))
    pledges = config.tree.pledge_hs06
    lenders = {name for name, (_, one) in groups.items() if one.max_lent_hs06}
    for name, (path, one) in groups.items():
        most, pledge = one.max_lent_hs06, pledges.get(name, 0.0)
        if most is not None and 0 < pledge < most and config.pledges.source == "yaml":
            yield (
                f"{path}.max_lent_hs06: {most:g} bounds nothing while its share is no more than "
                f"its pledge, {pledge:g} HS06: "
                "all of it may be lent; write less than that"
            )
        if one.max_borrowed_hs06 is not None and not lenders - {name}:
            yield (
                f"{path}.max_borrowed_hs06: has no effect, since no other group lends; write "
                "max_lent_hs06 for those that "
                "may, or remove it"
            )


def _carry_over(config: Config) -> Iterator[str]:
    said = config.control.carry_over
    amount = said.pledge_hours or said.hs06_hours
    if not amount and _differs(
        said, CarryOverConfig(pledge_hours=said.pledge_hours, hs06_hours=said.hs06_hours)
    ):
        yield (
            "control.carry_over: has no effect without an amount; write pledge_hours, such as "
            "24, or hs06_hours in it, or "
            "remove it"
        )


def _laws(config: Config) -> Iterator[str]:
    """Parameters of laws that nobody uses."""
    used = set(_used("", config.groups, dict.fromkeys(_PARAMETERS, "control"), config.control.law))
    written = {
        f"control.{law}": law
        for law, section in _PARAMETERS.items()
        if _differs(getattr(config.control, law), section())
    }
    for path, one in dict(_all_groups(config.groups)).values():
        own = one.control
        written.update(
            (f"{path}.control.{law}", law)
            for law in _PARAMETERS
            if own is not None and getattr(own, law)
        )
    for path, law in written.items():
        if path not in used:
            yield (
                f"{path}: has no effect, since no group goes by it; write law: {law} beside it, or "
                "remove it"
            )


def _used(
    place: str, groups: Mapping[str, _AnyGroup], parameters: Mapping[str, str], law: str
) -> Iterator[str]:
    """Places of the parameters that groups go by; ``parameters`` and ``law`` are those of what they are within."""
    for name, one in groups.items():
        at = f"{place}groups.{name}"
        own = one.control
        here, acts = dict(parameters), law
        if own is not None:
            acts = own.law or law
            here.update(
                {key: f"{at}.control" for key in _PARAMETERS if getattr(own, key) is not None}
            )
        if acts in here:
            yield f"{here[acts]}.{acts}"
        yield from _used(f"{at}.", one.groups or {}, here, acts)


def _dwell(config: Config) -> Iterator[str]:
    dwell, validity = config.control.dwell_seconds, config.validity_seconds
    if dwell > validity:
        yield (
            f"control.dwell_seconds: {dwell} is above validity_seconds, {validity}: a target "
            "lasts that long only while cycles "
            f"renew it. {validity} s after the last cycle nodes drop it, and the next cycle "
            "then decides anew; write cycles "
            "closer than that, or a longer validity_seconds"
        )


def _differs(said: BaseModel, default: BaseModel) -> bool:
    return said.model_dump() != default.model_dump()


def _all_groups(
    groups: Mapping[str, _AnyGroup], above: str = "", place: str = ""
) -> Iterator[tuple[str, tuple[str, _AnyGroup]]]:
    """Full name -> place in the file, and the group."""
    for name, one in groups.items():
        at = f"{place}groups.{name}"
        yield f"{above}{name}", (at, one)
        inner: Optional[Mapping[str, SubgroupConfig]] = one.groups
        yield from _all_groups(inner or {}, f"{above}{name}.", f"{at}.")
