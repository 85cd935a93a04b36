"""The configuration file as a `Config`, or everything wrong in it with its line and remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from sharectl.config.groups import all_groups, group_faults
from sharectl.config.model import TARGETS_FILE, Config, HistoryConfig
from sharectl.config.read import Reader
from sharectl.config.text import as_data, flow
from sharectl.control.laws import Control
from sharectl.control.setpoints import Loans
from sharectl.control.steering import SteeringConfig
from sharectl.errors import ConfigError, SettingError
from sharectl.files import yaml
from sharectl.files.yaml import ValuePath, problem_lines, text_of
from sharectl.model import Way
from sharectl.shares.pledges import SOURCES
from sharectl.words import quoted

T = TypeVar("T")
_LINE = re.compile(r"\A--set:[0-9]+: ")


def load(path: Path) -> Config:
    """Configuration in the file at ``path``.

    Raises ConfigError if it cannot be read, or is wrong: ``problems`` has all of it, in the order
    of the lines, each as ``FILE:LINE: place: fact; remedy``.
    """
    first = f"`sharectl init -o {path}` writes a first one, which only observes"
    return parse(text_of(path, first, " with --config"), str(path))


def parse(text: str, name: str) -> Config:
    """Configuration of the YAML ``text``; ``name`` is that of the file. Raises as `load`."""
    tree = yaml.read(text)
    reader = Reader(tree, Config, _source(tree.data))
    if isinstance(tree.data, dict):
        config: Config = reader.section(Config, _with_files(tree.data), ())
        faults = () if ("groups",) in reader.broken else group_faults(config.groups)
        for path, message in (*faults, *_published_twice(config.publish or ())):
            reader.fault(path, message)
        if not tree.faults:
            return replace(config, written=frozenset(tree.keys))
    elif () not in tree.refused:
        fact = "empty" if tree.data is None else "not a mapping of keys to values"
        least = "write at least groups: {cms: {pledge_hs06: 87100}}"
        reader.fault((), f"the file is {fact}; {least}")
    raise ConfigError(problem_lines(name, text, tree.faults))


def _source(data: Any) -> Optional[str]:
    """Source of pledges; None if it is wrong."""
    pledges = data.get("pledges", {}) if isinstance(data, dict) else None
    source = pledges.get("from", "yaml") if isinstance(pledges, dict) else None
    return source if isinstance(source, str) and source in SOURCES else None


def _with_files(data: Mapping[str, Any]) -> dict[str, Any]:
    """``data`` with the files that lie in ``state_directory`` where nothing else is written."""
    folder, history = data.get("state_directory"), data.get("history", {})
    if not isinstance(folder, str) or not isinstance(history, dict):
        return dict(data)
    if not folder.startswith("/") or not folder.isprintable():
        return dict(data)
    files = (HistoryConfig.jobs_file, HistoryConfig.errors_log, TARGETS_FILE)
    jobs_file, errors_log, targets = (f"{Path(folder, file.name)}" for file in files)
    logs = {"jobs_file": jobs_file, "errors_log": errors_log, **history}
    return {"publish": [{"file": targets}], **data, "history": logs}


def _published_twice(ways: Sequence[Way]) -> Iterator[tuple[ValuePath, str]]:
    """Entries that would withdraw each other's ads, or are served at one address."""
    seen: dict[str, int] = {}
    for number, way in enumerate(ways):
        kind = "https" if way.https is not None else "collector"
        at = way.https.url if way.https is not None else way.collector and kind
        if at and seen.setdefault(at, number) != number:
            yield ("publish", number, kind), f"is the same as publish[{seen[at]}]; keep one of them"


def steering_of(config: Config) -> SteeringConfig:
    """Setpoints and controllers, for `sharectl.control.steering.steer`; no law is loaded."""
    acting = config.control.acting
    by_group: dict[str, Control] = {}
    most: dict[str, dict[str, float]] = {"max_lent_hs06": {}, "max_borrowed_hs06": {}}
    for name, line in all_groups(config.groups):
        controls = [group.control for group in line if group.control is not None]
        if controls:
            # Its law, else that of the group above it, else that of all.
            laws = [acting.law, *(control.law for control in controls if control.law is not None)]
            by_group[name] = replace(acting, law=laws[-1])
        for key, bounds in most.items():
            if (hs06 := getattr(line[-1], key)) is not None:
                bounds[name] = hs06
    entitlement = replace(config.control.entitlement, loans=Loans(**most))
    return SteeringConfig(acting, by_group, entitlement)


def overridden(config: Config, settings: Sequence[str]) -> Config:
    """``config`` with ``settings``, such as ``control.law=pid``. Raises as `by_settings`."""
    return by_settings(as_data(config), settings, parse) if settings else config


def by_settings(data: dict[str, Any], settings: Sequence[str], make: Callable[[str, str], T]) -> T:
    """Value that ``make`` makes of YAML: of ``data`` with ``settings``. Raises SettingError."""
    problems: list[str] = []
    for setting in settings:
        try:
            _set_key(data, setting)
        except ValueError as error:
            problems.append(f"--set {quoted(setting)}: {error}")
    try:
        made = make(flow(data), "--set")
    except ConfigError as error:
        # There is no file with such a line.
        problems += [_LINE.sub("--set: ", problem) for problem in error.problems]
    else:
        if not problems:
            return made
    raise SettingError(problems)


def _set_key(data: dict[str, Any], setting: str) -> None:
    """Set a key of plain data by a text such as ``control.law=pid``; ValueError if it is wrong."""
    key, equals, text = setting.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise ValueError("write KEY=VALUE, such as control.law=pid or control.pid.gain=0.5")
    tree = yaml.read(text)
    if tree.faults:
        raise ValueError(tree.faults[0].message)
    section = data
    for part in parts[:-1]:
        if section.get(part) is None:
            section[part] = {}
        inner = section[part]
        if not isinstance(inner, dict):
            raise ValueError(f"{quoted(part)} is not a section; docs/configuration.md has the keys")  # noqa: TRY004 - an option
        section = inner
    section[parts[-1]] = tree.data
