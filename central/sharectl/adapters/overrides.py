"""A configuration with some keys set otherwise, for one command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sharectl.adapters import config_file, yaml_tree
from sharectl.adapters.config_model import Config
from sharectl.adapters.config_text import as_data, flow
from sharectl.adapters.wording import quoted
from sharectl.adapters.yaml_syntax import NotYamlError
from sharectl.errors import ConfigError

_LINE = re.compile(r"\A--set:[0-9]+: ")


def overridden(config: Config, settings: Sequence[str]) -> Config:
    """``config`` with each of ``settings``, such as ``control.law=pid``, judged as a whole.

    Raises
    ------
    ConfigError
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
    if problems:
        raise ConfigError(problems)
    try:
        return config_file.parse(flow(data), "--set")
    except ConfigError as error:
        # There is no file with such a line.
        raise ConfigError([_LINE.sub("--set: ", problem) for problem in error.problems]) from error


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
