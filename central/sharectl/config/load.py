"""The configuration file, read and judged: everything that is wrong at once, each with its line and its remedy.

What is left of a configuration without what is wrong in it: sound, so that whatever else is wrong
comes to light.

Setpoints and controllers, as the configuration has them.

A configuration with some keys set otherwise, for one command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path as FilePath
from typing import Any, Optional, Union

from pydantic import ValidationError

from sharectl.config.control import ControlConfig, GroupControlConfig
from sharectl.config.files import as_written, clashes
from sharectl.config.groups import GroupConfig, SubgroupConfig
from sharectl.config.model import Config
from sharectl.config.places import context_of
from sharectl.config.problems import fault_at, fault_of, section_at
from sharectl.config.text import as_data, flow
from sharectl.control.laws import Control
from sharectl.control.setpoints import Entitlement, Loans
from sharectl.control.steering import SteeringConfig
from sharectl.errors import ConfigError, SettingError
from sharectl.files import yaml
from sharectl.files.yaml import (
    MAX_PROBLEMS,
    Fault,
    NotYamlError,
    Tree,
    ValuePath,
    not_following,
    problem_lines,
    text_of,
)
from sharectl.words import quoted, shown

_ANY_GROUP = "any-group-at-all"
_GROUPS = "groups"
_PROMISES = ("pledge_hs06", "pledge_hepscore23", "share")


def sound_part(data: dict[str, Any], unsound: Iterable[ValuePath]) -> dict[str, Any]:
    """A copy of ``data`` without what lies at the paths ``unsound``; where something has to be, something sound is.

    What is put in meets nothing else: a file of its own, a group that no other is.
    """
    sound = deepcopy(data)
    for path in sorted(set(unsound), key=len, reverse=True):
        if path[:1] == (_GROUPS,):
            _without_in_groups(sound, path)
        elif path[:1] == ("publish",):
            _without_in_publish(sound, path)
        elif path:
            _without(sound, path)
    return sound


def _without(sound: dict[str, Any], path: ValuePath) -> None:
    """Take the value at ``path`` away; of what is no section all of it."""
    holder: Any = sound
    for level, key in enumerate(path[:-1]):
        inner = holder.get(key)
        if not isinstance(inner, dict) or section_at(path[: level + 1]) is None:
            path = path[: level + 1]
            break
        holder = inner
    holder.pop(path[-1], None)
    if path in _STANDS_IN:
        holder[path[-1]] = deepcopy(_STANDS_IN[path])


_STANDS_IN: dict[ValuePath, Any] = {
    ("state_directory",): "/unsound/state",
    ("history", "jobs_file"): "/unsound/jobs",
    ("history", "errors_log"): "/unsound/errors",
    ("pledges", "cric"): {"federations": ["unsound"]},
    ("pledges", "cric", "federations"): ["unsound"],
}
"""What is there instead of values whose default, or absence, could be wrong beside others."""


def _without_in_publish(sound: dict[str, Any], path: ValuePath) -> None:
    ways = sound.get("publish")
    number = path[1] if path[1:] else None
    if not isinstance(ways, list) or not isinstance(number, int) or number >= len(ways):
        sound.pop("publish", None)
        return
    instead = {"file": f"/unsound/{number}"}
    way = ways[number]
    if path[2:] and isinstance(way, dict):
        served = {**instead, "url": f"https://unsound/{number}"}
        known: dict[str, Any] = {**instead, "https": served, "collector": {}}
        way.pop(path[2], None)
        if path[2] in known:
            way[path[2]] = known[str(path[2])]
        if any(way.values()) or "collector" in way:
            return
    ways[number] = instead


def _without_in_groups(sound: dict[str, Any], path: ValuePath) -> None:
    """Take away what is at ``path``; with a promise, the group, since what others may have is known only with it."""
    level = 1
    while path[level + 1 : level + 2] == (_GROUPS,) and path[level + 2 :]:
        level += 2
    holder: Any = sound
    for part in path[:level]:
        holder = holder.get(part) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or not path[level:]:
        sound[_GROUPS] = {_ANY_GROUP: {"pledge_hs06": 1.0}}
        return
    group, key = holder.get(path[level]), path[level + 1 : level + 2]
    if key and isinstance(group, dict) and key[0] not in _PROMISES:
        group.pop(key[0], None)
        if any(promise in group for promise in _PROMISES):
            return
    if key:
        holder[path[level]] = {"pledge_hs06": 1.0} if level == 1 else {"share": 0.0}
        return
    holder.pop(path[level], None)
    if level == 1:
        holder.setdefault(_ANY_GROUP, {"pledge_hs06": 1.0})


_LEAST = "write at least groups: {cms: {pledge_hs06: 87100}}"


def load(path: FilePath) -> Config:
    """Configuration in the file at ``path``.

    Raises
    ------
    ConfigError
        If it cannot be read or something is wrong in it: ``problems`` has all of it, in the order
        of the lines, each as ``FILE:LINE: where: what is wrong; what to write instead``.
    """
    return parse(text_of(path, _LEAST, " with --config"), str(path))


def parse(text: str, name: str) -> Config:
    """Configuration of the YAML ``text``; ``name`` is what messages call the file.

    Raises as `load`.
    """
    try:
        tree = yaml.read(text)
    except NotYamlError as error:
        raise ConfigError(problem_lines(name, text, error.faults)) from error
    if not isinstance(tree.data, dict):
        what = "the file is empty" if tree.empty else "the file is no mapping of keys to values"
        top = [] if () in tree.refused else [Fault(tree.values.get((), 0), (), f"{what}; {_LEAST}")]
        raise ConfigError(problem_lines(name, text, [*tree.faults, *top]))
    _fold_groups(tree, tree.data, ())
    config, faults = _validated(tree, FilePath(name))
    if config is None or tree.faults:
        raise ConfigError(problem_lines(name, text, [*tree.faults, *faults]))
    return config


def _fold_groups(tree: Tree, above: Any, at: ValuePath) -> None:
    """Note groups of any level below ``above`` whose names differ in case only, and keep the first of each."""
    groups = above.get("groups") if isinstance(above, dict) else None
    if not isinstance(groups, dict):
        return
    at = (*at, "groups")
    first: dict[str, str] = {}
    for name in list(groups):
        kept = first.setdefault(name.lower(), name)
        here, there = (*at, name), (*at, kept)
        if here == there:
            _fold_groups(tree, groups[name], here)
        else:
            line = tree.line(tree.keys[there])
            message = (
                f"is the same group as {kept} at line {line}, case does not count; keep one of them"
            )
            tree.faults.append(Fault(tree.keys[here], here, message))
            del groups[name]


def _validated(tree: Tree, file: FilePath) -> tuple[Optional[Config], list[Fault]]:
    """The configuration, or None, and what the models say about it.

    What concerns several values is looked at only once each of them is sound: so again and again
    without the unsound, until nothing more is found.
    """
    context = context_of(tree.data)
    config, faults = _judged(tree, tree.data, context, file)
    found = faults
    while found and len(faults) <= MAX_PROBLEMS:
        unsound = [*tree.refused, *(fault.path or () for fault in faults)]
        _, more = _judged(tree, sound_part(tree.data, unsound), context, file)
        found = [fault for fault in more if fault not in faults]
        faults = [*faults, *found]
    return config, not_following(faults, tree.refused)


def _judged(
    tree: Tree, data: Mapping[str, Any], context: dict[str, Optional[str]], file: FilePath
) -> tuple[Optional[Config], list[Fault]]:
    try:
        config = Config.model_validate(data, context=context)
    except ValidationError as error:
        return None, _faults(error, tree)
    faults = [fault_at(at, message, tree) for at, message in clashes(config, file, as_written)]
    return (None if faults else config), faults


def _faults(error: ValidationError, tree: Tree) -> list[Fault]:
    found = error.errors(include_url=False)
    # A list whose entries are all unsound is also called too short.
    return [fault_of(one, tree) for one in found if one["type"] != "too_short" or not one["input"]]


_AnyGroup = Union[GroupConfig, SubgroupConfig]


def steering_of(config: Config) -> SteeringConfig:
    """What `sharectl.control.steering.steer` needs of the configuration."""
    control = config.control
    groups = dict(_all_groups("", config.groups, ()))
    return SteeringConfig(
        control=_control(control, ()),
        by_group={
            name: _control(control, [one.control for one in line])
            for name, line in groups.items()
            if any(one.control is not None for one in line)
        },
        entitlement=Entitlement(
            setpoint=control.setpoint,
            loans=Loans(
                max_lent_hs06=_written(
                    {name: line[-1].max_lent_hs06 for name, line in groups.items()}
                ),
                max_borrowed_hs06=_written(
                    {name: line[-1].max_borrowed_hs06 for name, line in groups.items()}
                ),
            ),
            carry_over=control.carry_over.params(control.gap_seconds),
        ),
    )


def _all_groups(
    above: str, groups: Mapping[str, _AnyGroup], line: tuple[_AnyGroup, ...]
) -> Iterator[tuple[str, tuple[_AnyGroup, ...]]]:
    """Full name, and the group with those that it is within, the first level first."""
    for name, group in groups.items():
        yield f"{above}{name}", (*line, group)
        yield from _all_groups(f"{above}{name}.", group.groups or {}, (*line, group))


def _control(control: ControlConfig, own: Iterable[Optional[GroupControlConfig]]) -> Control:
    """The law and parameters of a group: what it says itself, else what the group above it does, else ``control``."""
    law, ewma, pid = control.law, control.ewma, control.pid
    for said in own:
        if said is not None:
            law, ewma, pid = said.law or law, said.ewma or ewma, said.pid or pid
    return Control(law, ewma.params, pid.params(control.gap_seconds))


def _written(values: Mapping[str, Optional[float]]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


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
        decides = parse(flow(data), "--set")
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
        f"since the pool is what was recorded; a replay takes {', '.join(REPLAYED)}, {groups}, "
        "and with --pledges configured "
        "what says the pledges"
    )


def _set(data: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise ValueError("write KEY=VALUE, such as control.law=pid or control.pid.gain=0.5")
    try:
        tree = yaml.read(text)
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
