"""Strategies: ways to run a pool, which the twin compares on the same jobs, and their YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import fsum
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
from sharectl.times import CRON_JOB_CTL_SECONDS, CRON_PERIOD_SECONDS
from sharectl.words import did_you_mean, printable, quoted
from sharectl_lab.twin.records import NodeSpec
from sharectl_lab.twin.settings import Defrag, Loop

STEERING = {
    "live": "slots count their jobs themselves, and job_ctl looks for targets every 30 s",
    "cron": "job_ctl counts the jobs of its node every 13 minutes (the original method)",
}
"""Ways in which nodes act on targets."""
CRON = {
    "period_seconds": float(CRON_PERIOD_SECONDS),
    "job_ctl_seconds": float(CRON_JOB_CTL_SECONDS),
}
"""Defaults of `Loop` in cron mode."""


@dataclass(frozen=True)
class Static:
    """Nodes whose START takes multicore jobs alone."""

    ratio: Optional[float] = setting(None, least=0, most=1)
    """Part of the pool's power; null: the part of all pledges that is for multicore jobs."""


@dataclass(frozen=True)
class Strategy:
    """A way to run a pool, as its file has it; the scenario decides all else."""

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
    name: str = ""
    """Its file's name, with the options behind it."""
    control_settings: tuple[str, ...] = ()
    """Keys that its `control` has, such as `control.law=pid`."""
    loop_settings: tuple[tuple[str, Any], ...] = ()
    """Keys that its `loop` has, with their values."""

    def loop_of(self, loop: Loop) -> Loop:
        """The loop of a scenario, with cron mode's defaults and the strategy's own fields."""
        own = dict(self.loop_settings)
        if self.steering == "cron":
            defaults = Loop()
            own = {k: v for k, v in CRON.items() if getattr(loop, k) == getattr(defaults, k)} | own
        return replace(loop, **own)


def multicore_ratio(pledge_hs06: Mapping[str, float], multicore: Mapping[str, float]) -> float:
    """Part of all pledges that is for multicore jobs; ``multicore`` has that part of each group."""
    pledges = fsum(pledge_hs06.values())
    parts = (pledge * multicore.get(group, 0.0) for group, pledge in pledge_hs06.items())
    return fsum(parts) / pledges if pledges else 0.0


def with_static(nodes: Sequence[NodeSpec], ratio: float) -> tuple[NodeSpec, ...]:
    """``nodes``, of which so large a part, spread over the pool, takes multicore jobs alone."""
    chosen, power_hs06, static_hs06 = [], 0.0, 0.0
    for node in nodes:
        node_hs06 = node.cores * node.hs06_per_core
        power_hs06 += node_hs06
        # A node is static where that brings the part of the nodes so far nearer to the ratio.
        is_static = ratio * power_hs06 - static_hs06 > node_hs06 / 2
        static_hs06 += node_hs06 * is_static
        chosen.append(replace(node, multicore_only=True) if is_static else node)
    return tuple(chosen)


# ---- files

USUAL = ("nothing", "defrag", "static", "static+defrag", "grace", "cron", "live")
"""Strategies that are compared unless others are named."""
_FOLDER = Path(__file__).parent / "strategies"
_SUFFIXES = (".yaml", ".yml")
LEAST = "write at least summary: and one of grace, steering, defrag, static"


class _Section(NamedTuple):
    """Section of a strategy's file whose keys are options."""

    record: type
    switch: str
    """Key of a strategy without which it has no effect."""
    remedy: str


_SECTIONS: Mapping[str, _Section] = {
    "defrag": _Section(Defrag, "defrag", "condor_defrag does not run in it; write defrag{}"),
    "static": _Section(Static, "static", "it has no static nodes; write static{}"),
    "loop": _Section(Loop, "steering", "sharectl does not run in it; write live{}"),
    "control": _Section(ControlConfig, "steering", "sharectl does not run in it; write live{}"),
}


def shipped() -> dict[str, str]:
    """Shipped strategy -> its summary."""
    paths = {path.stem: path for path in sorted(_FOLDER.glob(f"*{_SUFFIXES[0]}"))}
    names = sorted(paths, key=[*USUAL, *paths].index)
    return {name: yaml.read(text_of(paths[name], LEAST)).data["summary"] for name in names}


def read_strategies(text: str) -> tuple[Strategy, ...]:
    """Strategies of a list, or of files; raises SettingError or ConfigError with all problems."""
    items = [item.strip() for item in text.split(",") if item.strip()]
    problems = [] if items else [f"there is no strategy; write one of {', '.join(shipped())}"]
    of_files: dict[str, None] = {}
    strategies: dict[str, Strategy] = {}
    for item in items:
        try:
            strategy = _strategy(item)
        except SettingError as error:
            problems += [f"{printable(item)}: {problem}" for problem in error.problems]
            continue
        except ConfigError as error:
            of_files.update(dict.fromkeys(error.problems))
            continue
        if strategies.setdefault(strategy.name, strategy) != strategy:
            name = quoted(strategy.name)
            problems.append(f"{printable(item)}: another strategy is {name}; rename the file")
    problems = [f"--strategies: {problem}" for problem in problems]
    if of_files:
        raise ConfigError([*of_files, *problems])
    if problems:
        raise SettingError(problems)
    return tuple(strategies.values())


def _is_file(name: str) -> bool:
    return "/" in name or name.endswith(_SUFFIXES)


def _strategy(item: str) -> Strategy:
    """Parts that are joined, with the options behind them; raises SettingError or ConfigError."""
    name, *settings = item.split(":")
    parts = [name] if _is_file(name) else name.split("+")
    unknown = [part for part in parts if not _is_file(part) and part not in shipped()]
    otherwise = f"write one of {', '.join(shipped())}, or the path of a file (NAME.yaml)"
    problems = [
        f"{quoted(part)} is no strategy; {did_you_mean(part, shipped(), otherwise)}"
        for part in unknown
    ]
    data: dict[str, Any] = {}
    for part in parts if not unknown else ():
        more = _data(Path(part) if _is_file(part) else _FOLDER / f"{part}{_SUFFIXES[0]}")
        problems += [
            f"both have {key}; join strategies that differ in their parts"
            for key in data.keys() & more.keys() - {"summary"}
            if data[key] != more[key]
        ]
        summary = "; ".join(one["summary"] for one in (data, more) if one)
        data = {**data, **more, "summary": summary}
    if problems:
        raise SettingError(problems)
    label = Path(name).stem if _is_file(name) else name
    for text in settings:
        try:
            data = _with_setting(data, text, label)
        except ValueError as error:
            problems.append(str(error))
    tree = yaml.read(flow(data))
    record = _read(tree)
    problems += [f"{place(fault.path or ())}: {fault.message}" for fault in tree.faults]
    if problems:
        raise SettingError(problems)
    return replace(
        record,
        name=":".join((label, *settings)),
        control_settings=tuple(_flat("control", data.get("control") or {})),
        loop_settings=tuple((name, getattr(record.loop, name)) for name in data.get("loop") or {}),
    )


def _data(path: Path) -> dict[str, Any]:
    """Data of a file. Raises ConfigError with its problems."""
    text = text_of(path, LEAST)
    tree = yaml.read(text)
    _read(tree)
    if tree.faults:
        raise ConfigError(problem_lines(str(path), text, tree.faults))
    data: dict[str, Any] = tree.data
    return data


def _read(tree: Tree) -> Strategy:
    """Record of a file; the tree gets its faults."""
    reader = Reader(tree, Strategy)
    record: Strategy = reader.section(Strategy, tree.data, ())
    if isinstance(tree.data, dict):
        for name, section in _SECTIONS.items():
            if name in tree.data and tree.data.get(section.switch) is None:
                words = f"has no effect without {section.switch}; write {section.switch} too"
                reader.fault((name,), words)
    return record


def _with_setting(data: Mapping[str, Any], text: str, names: str) -> dict[str, Any]:
    """``data`` with one option. Raises ValueError if it is no option, or has no effect."""
    key, equals, value = text.partition("=")
    tree = yaml.read(value)
    if not equals or not key or not value:
        raise ValueError(f"{quoted(text)}: write KEY=VALUE behind a colon, such as live:law=pid")
    if tree.faults:
        raise ValueError(f"{quoted(text)}: {tree.faults[0].message}")
    path = key.split(".")
    if len(path) == 1 or path[0] not in _SECTIONS:
        of_key = {k: name for name, section in _SECTIONS.items() for k in keys_of(section.record)}
        if path[0] not in of_key:
            advice = did_you_mean(path[0], of_key, f"write a key of {', '.join(_SECTIONS)}")
            raise ValueError(f"{quoted(key)} is no option; {advice}")
        path.insert(0, of_key[path[0]])
    _record, switch, remedy = _SECTIONS[path[0]]
    if data.get(switch) is None:
        joined = "" if names == "nothing" else f"+{names}"
        raise ValueError(f"{quoted(key)} has no effect: {remedy.format(joined)}")
    changed = deepcopy(dict(data))
    inner = changed
    for part in path[:-1]:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ValueError(f"{quoted(key)}: {part} has no keys below it; leave out the rest")  # noqa: TRY004 - an option
    inner[path[-1]] = tree.data
    return changed


def _flat(place_of: str, section: Mapping[str, Any]) -> Iterator[str]:
    """Settings of a section, such as ``control.pid.gain=0.5``."""
    for name, value in section.items():
        at = f"{place_of}.{name}"
        if isinstance(value, dict):
            yield from _flat(at, value)
        else:
            yield f"{at}={flow(value)}"
