"""A configuration with some keys set otherwise, for one command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Optional

from sharectl.adapters import config_file, yaml_tree
from sharectl.adapters.config_model import Config
from sharectl.adapters.config_text import as_data, flow
from sharectl.adapters.wording import quoted, shown
from sharectl.adapters.yaml_syntax import NotYamlError
from sharectl.errors import ConfigError, SettingError

REPLAYED = ("control", "validity_seconds")
"""Keys of the top level that a replay decides by, and all that is below them."""
REPLAYED_OF_GROUPS = ("control", "max_borrowed_hs06", "max_lent_hs06")
"""Keys of a group that it decides by."""
PLEDGING = ("pledge_hs06", "pledge_hepscore23", "share", "cric_vo")
"""Keys of a group that it decides by only with the pledges of the configuration."""

_LINE = re.compile(r"\A--set:[0-9]+: ")


def overridden(config: Config, settings: Sequence[str]) -> Config:
    """``config`` with each of ``settings``, such as ``control.law=pid``, judged as a whole.

    Raises
    ------
    SettingError
        If one is no setting, or the whole is no configuration; all problems at once.
    """
    if not settings:
        return config
    data = as_data(config)
    problems: list[str] = []
    for setting in settings:
        try:
            _set(data, setting)
        except ValueError as error:
            problems.append(f"--set {quoted(setting)}: {error}")
    try:
        decides = config_file.parse(flow(data), "--set")
    except ConfigError as error:
        # There is no file with such a line.
        problems += [_LINE.sub("--set: ", problem) for problem in error.problems]
    if problems:
        raise SettingError(problems)
    return decides


def idle_in_replay(settings: Sequence[str], *, own_pledges: bool) -> list[str]:
    """What is wrong with those of ``settings``, each of a sound configuration, that no replay decides by.

    Parameters
    ----------
    own_pledges
        Whether it goes by the pledges of the configuration.
    """
    problems = []
    for setting in settings:
        key = setting.partition("=")[0].strip()
        instead = _why_idle(key.split("."), own_pledges=own_pledges)
        if instead is not None:
            problems.append(f"--set {quoted(setting)}: {shown(key)} has no effect here, {instead}")
    return problems


def _why_idle(parts: Sequence[str], *, own_pledges: bool) -> Optional[str]:
    """Why a replay does not decide by a key, and what to write; None if it does."""
    of_pledges = parts[0] == "pledges"
    if parts[0] == "groups":
        level = 2
        while parts[level : level + 1] == ["groups"]:
            level += 2
        key = parts[level] if parts[level:] else None
        if key is None or key in REPLAYED_OF_GROUPS:
            return None
        of_pledges = key in PLEDGING
    if of_pledges:
        return (
            None
            if own_pledges
            else "since each cycle goes by its recorded pledges; write --pledges configured"
        )
    if parts[0] in REPLAYED:
        return None
    groups = ", ".join(f"groups.NAME.{key}" for key in REPLAYED_OF_GROUPS)
    return (
        f"since the pool is what was recorded; a replay takes {', '.join(REPLAYED)}, {groups}, and with --pledges configured "
        "what says the pledges"
    )


def _set(data: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise ValueError("write KEY=VALUE, such as control.law=pid or control.pid.gain=0.5")
    try:
        tree = yaml_tree.read(text)
    except NotYamlError as error:
        raise ValueError(f"its value is no YAML: {error.faults[0].message}") from error
    if tree.faults:
        raise ValueError(tree.faults[0].message)
    section = data
    for part in parts[:-1]:
        inner = section.get(part)
        if inner is None:
            inner = section[part] = {}
        if not isinstance(inner, dict):
            raise ValueError(f"{quoted(part)} is no section; docs/configuration.md has the keys")  # noqa: TRY004 - what was typed
        section = inner
    section[parts[-1]] = tree.data
