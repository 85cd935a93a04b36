"""Strategies of the command line and their YAML: shipped ones, and files of a user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Optional

from sharectl.config.fields import keys_of
from sharectl.config.model import ControlConfig
from sharectl.config.read import Reader
from sharectl.config.text import flow
from sharectl.errors import ConfigError, SettingError
from sharectl.files import yaml
from sharectl.files.yaml import Tree, place, problem_lines, text_of
from sharectl.settings import setting
from sharectl.words import did_you_mean, printable, quoted
from sharectl_lab.scenarios.strategies import STEERING, Static, Strategy
from sharectl_lab.twin.settings import Defrag, Loop

SYNTAX = "NAME[+NAME…][:KEY=VALUE…]"
USUAL = ("nothing", "defrag", "static", "static+defrag", "grace", "cron", "live")
"""Strategies that are compared unless others are named."""
_FOLDER = Path(__file__).parent / "strategies"
_SUFFIXES = (".yaml", ".yml")
LEAST = "write at least summary: and one of grace, steering, defrag, static"


@dataclass(frozen=True)
class StrategyFile:
    """Content of a strategy's file."""

    summary: str = setting(kind="text")
    """One line for `--list`."""
    grace: bool = setting(default=False)
    """START keeps 8 free cores for multicore jobs for a time (MC_GRACE)."""
    steering: Optional[str] = setting(None, choices=tuple(STEERING))
    """sharectl runs, and nodes act on its targets in that way; null: it does not run."""
    control: ControlConfig = setting(ControlConfig())
    """Keys of `control` of sharectl's configuration that go before the scenario's."""
    loop: Loop = setting(Loop())
    """Keys of the scenario's `loop` that go before its own."""
    defrag: Optional[Defrag] = setting(None)
    """condor_defrag runs, with these settings."""
    static: Optional[Static] = setting(None)
    """Nodes that take multicore jobs alone."""
    recipes: Optional[Mapping[str, Defrag]] = setting(None)
    """Names for the option `recipe`, each with keys of `defrag` that are otherwise."""


_SECTIONS: Mapping[str, tuple[type, str, str]] = {
    "defrag": (Defrag, "defrag", "condor_defrag does not run in it; write defrag{}"),
    "static": (Static, "static", "it has no static nodes; write static{}"),
    "loop": (Loop, "steering", "sharectl does not run in it; write live{}"),
    "control": (ControlConfig, "steering", "sharectl does not run in it; write live{}"),
}
"""Section -> its record, the key of a strategy in which it has an effect, the remedy without."""
_FLAGS = ("grace", "steering")
_RECIPE = "recipe"


class _Text(NamedTuple):
    """A strategy as the command line has it."""

    text: str
    names: tuple[str, ...]
    """Shipped names, or one file."""
    settings: tuple[str, ...]


class _Part(NamedTuple):
    """A shipped strategy or a file, and its problems."""

    data: Mapping[str, Any]
    faults: tuple[str, ...] = ()


def shipped() -> dict[str, str]:
    """Shipped strategy -> its summary."""
    paths = {path.stem: path for path in sorted(_FOLDER.glob(f"*{_SUFFIXES[0]}"))}
    names = sorted(paths, key=[*USUAL, *paths].index)
    return {name: yaml.read(text_of(paths[name], LEAST)).data["summary"] for name in names}


def read_strategies(text: str) -> tuple[Strategy, ...]:
    """Strategies of a list such as ``defrag,live:law=pid``, or of files.

    Raises SettingError with all problems of the list, or ConfigError if a file has some.
    """
    texts = [_split(item.strip()) for item in text.split(",") if item.strip()]
    names = dict.fromkeys(name for item in texts for name in item.names)
    parts = {name: _part(name) for name in names}
    of_files = [fault for part in parts.values() for fault in part.faults]
    problems = [] if texts else [f"there is no strategy; write one of {', '.join(shipped())}"]
    strategies: dict[str, Strategy] = {}
    for item in texts:
        if any(parts[name].faults for name in item.names):
            continue
        try:
            strategy = _strategy(item, [parts[name].data for name in item.names])
        except SettingError as error:
            problems += [f"{printable(item.text)}: {problem}" for problem in error.problems]
            continue
        if strategies.setdefault(strategy.name, strategy) != strategy:
            name = quoted(strategy.name)
            problems.append(f"{printable(item.text)}: another strategy is {name}; rename the file")
    if of_files and any(_is_file(name) and parts[name].faults for name in names):
        raise ConfigError(of_files + [f"--strategies: {problem}" for problem in problems])
    if of_files or problems:
        raise SettingError([f"--strategies: {problem}" for problem in (*of_files, *problems)])
    return tuple(strategies.values())


def _split(item: str) -> _Text:
    name, *settings = item.split(":")
    names = (name,) if _is_file(name) else tuple(name.split("+"))
    return _Text(item, names, tuple(settings))


def _is_file(name: str) -> bool:
    return "/" in name or name.endswith(_SUFFIXES)


def _part(name: str) -> _Part:
    """Data of a shipped name or of a file, or its problems."""
    path = Path(name) if _is_file(name) else _FOLDER / f"{name}{_SUFFIXES[0]}"
    if not _is_file(name) and name not in shipped():
        otherwise = f"write one of {', '.join(shipped())}, or the path of a file (NAME.yaml)"
        advice = did_you_mean(name, shipped(), otherwise)
        return _Part({}, (f"{quoted(name)} is no strategy; {advice}",))
    try:
        text = text_of(path, LEAST)
    except ConfigError as error:
        return _Part({}, error.problems)
    tree = yaml.read(text)
    _read(tree)
    faults = problem_lines(str(path), text, tree.faults)
    return _Part({} if faults else tree.data, tuple(faults))


def _read(tree: Tree) -> StrategyFile:
    """Record of a file; the tree gets its faults."""
    reader = Reader(tree, StrategyFile)
    record: StrategyFile = reader.section(StrategyFile, tree.data, ())
    if isinstance(tree.data, dict):
        for name, (_section, switch, _remedy) in _SECTIONS.items():
            if name in tree.data and tree.data.get(switch) is None:
                reader.fault((name,), f"has no effect without {switch}; write {switch} too")
    return record


def _strategy(item: _Text, parts: Iterable[Mapping[str, Any]]) -> Strategy:
    """Parts that are joined, with the options behind them. Raises SettingError."""
    data: dict[str, Any] = {}
    for part in parts:
        data = _joined(data, part)
    data["summary"] = "; ".join(part["summary"] for part in parts)
    names = "+".join(Path(name).stem if _is_file(name) else name for name in item.names)
    problems = []
    for text in item.settings:
        try:
            data = _with_setting(data, text, names)
        except ValueError as error:
            problems.append(str(error))
    tree = yaml.read(flow(data))
    record = _read(tree)
    problems += [f"{place(fault.path or ())}: {fault.message}" for fault in tree.faults]
    if problems:
        raise SettingError(problems)
    return Strategy(
        name=":".join((names, *item.settings)),
        summary=data["summary"],
        grace=record.grace,
        steering=record.steering,
        control=tuple(_flat("control", data.get("control") or {})),
        loop=tuple((name, getattr(record.loop, name)) for name in data.get("loop") or {}),
        defrag=record.defrag,
        static=record.static,
    )


def _joined(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Two strategies as one. Raises SettingError where they contradict each other."""
    for key in before.keys() & more.keys() - {"summary"}:
        if before[key] != more[key]:
            raise SettingError([f"both have {key}; join strategies that differ in their parts"])
    return {**before, **more}


def _with_setting(data: Mapping[str, Any], text: str, names: str) -> dict[str, Any]:
    """``data`` with one option. Raises ValueError if it is no option, or has no effect."""
    key, equals, value = text.partition("=")
    tree = yaml.read(value)
    if not equals or not key or not value:
        raise ValueError(f"{quoted(text)}: write KEY=VALUE behind a colon, such as live:law=pid")
    if tree.faults:
        raise ValueError(f"{quoted(text)}: {tree.faults[0].message}")
    changed = deepcopy(dict(data))
    if key == _RECIPE:
        recipes = data.get("recipes") or {}
        otherwise = f"write one of {', '.join(recipes)}" if recipes else "it has none: leave it out"
        if value not in recipes:
            advice = did_you_mean(value, recipes, otherwise)
            raise ValueError(f"{quoted(value)} is no recipe; {advice}")
        changed["defrag"] = {**changed.get("defrag", {}), **recipes[value]}
        return changed
    path = _path(key)
    _record, switch, remedy = _SECTIONS.get(path[0], (Strategy, "summary", ""))
    if changed.get(switch) is None:
        joined = "" if names == "nothing" else f"+{names}"
        raise ValueError(f"{quoted(key)} has no effect: {remedy.format(joined)}")
    section = changed
    for part in path[:-1]:
        section = section.setdefault(part, {})
        if not isinstance(section, dict):
            raise ValueError(f"{quoted(key)}: {part} has no keys below it; leave out the rest")  # noqa: TRY004 - an option
    section[path[-1]] = tree.data
    return changed


def _path(key: str) -> list[str]:
    """Place of an option in a strategy's file. Raises ValueError without one."""
    path = key.split(".")
    options = {name: [name] for name in _FLAGS}
    for section, (record, _switch, _remedy) in _SECTIONS.items():
        options.update((name, [section, name]) for name in keys_of(record))
    if path[0] in _SECTIONS and len(path) > 1:
        return path
    if path[0] not in options:
        keys = ", ".join((*_FLAGS, _RECIPE, *(f"keys of {name}" for name in _SECTIONS)))
        advice = did_you_mean(path[0], (*options, _RECIPE), f"write one of {keys}")
        raise ValueError(f"{quoted(key)} is no option; {advice}")
    return [*options[path[0]], *path[1:]]


def _flat(place_of: str, section: Mapping[str, Any]) -> Iterator[str]:
    """Settings of a section, such as ``control.pid.gain=0.5``."""
    for name, value in section.items():
        at = f"{place_of}.{name}"
        if isinstance(value, dict):
            yield from _flat(at, value)
        else:
            yield f"{at}={flow(value)}"
