"""YAML files of scenarios, and those that are shipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from sharectl.cadence.file import history_jobs, left_out_notes
from sharectl.config.groups import group_faults
from sharectl.config.load import by_settings
from sharectl.config.read import Reader
from sharectl.config.text import as_data, flow
from sharectl.errors import ConfigError, SettingError
from sharectl.files import yaml
from sharectl.files.yaml import ValuePath, problem_lines
from sharectl.words import did_you_mean, shown
from sharectl_lab.scenarios.extent import faults_of
from sharectl_lab.scenarios.scenario import MOST_NODES, Scenario
from sharectl_lab.scenarios.swf import swf_jobs
from sharectl_lab.workload.logged import LogSource

LEAST = "write such as what `sharectl simulate --show small-site` prints"
_FOLDER = Path(__file__).with_name("shipped")
SHIPPED = sorted(path.stem for path in _FOLDER.glob("*.yaml"))
"""Names of the shipped scenarios."""
_SOURCES = ("jobs", "swf", "history")
_MOST_NAMES = 10


def shipped() -> Mapping[str, str]:
    """Name of each shipped scenario -> its summary."""
    return {name: load(name).summary for name in SHIPPED}


def shipped_text(name: str) -> Optional[str]:
    """YAML of a shipped scenario; None for another name."""
    path = _FOLDER / f"{name}.yaml"
    is_name = name.replace("-", "").isalnum()
    return path.read_text(encoding="utf-8") if is_name and path.is_file() else None


def load(name: str) -> Scenario:
    """Scenario of a shipped name, of a file, or of standard input for ``-``, with its log read.

    ConfigError has all faults in the order of the lines, as ``NAME:LINE: place: fact; remedy``;
    InputError those of a log. SettingError: no scenario has the name.
    """
    text = shipped_text(name)
    if text is not None:
        return parse(text, name)
    path = Path(name)
    if name != "-" and "/" not in name and not path.suffix and not path.exists():
        advice = did_you_mean(name, SHIPPED, f"shipped are {', '.join(SHIPPED)}")
        raise SettingError([f"{name}: there is no such scenario or file; {advice}"])
    return parse(yaml.text_of(path, LEAST), name, path.parent)


def parse(text: str, name: str, folder: Path = Path()) -> Scenario:
    """Scenario of the YAML ``text``, whose files are in ``folder``. Raises as `load`."""
    return _with_log(scenario_of(text, name, folder), name)


def _with_log(scenario: Scenario, name: str) -> Scenario:
    source = scenario.swf or scenario.history
    if source is None:
        return scenario
    left_out: Counter[str] = Counter()
    read = swf_jobs if scenario.swf else history_jobs
    jobs = tuple(read(source.file, left_out, skip=source.skip_broken))
    names = Counter(source.name_of(job) for job in jobs)
    unmapped = Counter({key: n for key, n in names.items() if source.account_of(key) is None})
    if len(unmapped) == len(names):
        key = "swf" if scenario.swf else "history"
        names_of = ", ".join(shown(name) for name, _ in names.most_common(_MOST_NAMES))
        fact = f"no job of the log has such a {source.by}"
        raise ConfigError([f'{name}: {key}.groups: {fact}; write some of {names_of}, or "*"'])
    notes = [
        f"jobs left out: {count} ({source.by} {shown(key)} is not in groups)"
        for key, count in unmapped.most_common(_MOST_NAMES)
    ]
    return replace(scenario, logged=jobs, notes=(*left_out_notes(left_out), *notes))


def scenario_of(text: str, name: str, folder: Path = Path()) -> Scenario:
    """Scenario without the jobs of its log. Raises ConfigError as `load`."""
    tree = yaml.read(text)
    reader = Reader(tree, Scenario, "yaml")
    scenario: Scenario = reader.section(Scenario, tree.data, ())
    if isinstance(tree.data, dict) and not tree.faults:
        for path, message in _faults(scenario):
            reader.fault(path, message)
    if tree.faults:
        raise ConfigError(problem_lines(name, text, tree.faults))
    return replace(
        scenario,
        name=Path(name).stem,
        swf=_placed(scenario.swf, folder),
        history=_placed(scenario.history, folder),
    )


def changed(scenario: Scenario, settings: Sequence[str]) -> Scenario:
    """``scenario`` with settings such as ``days=3``; raises SettingError with all problems."""
    if not settings:
        return scenario
    made = by_settings(yaml.read(render(scenario)).data, settings, scenario_of)
    is_same = (made.swf, made.history) == (scenario.swf, scenario.history)
    made = replace(made, name=scenario.name, logged=scenario.logged, notes=scenario.notes)
    return made if is_same else _with_log(made, "--set")


def render(scenario: Scenario) -> str:
    """YAML that `parse` reads as ``scenario``, without what is default."""
    data, default = as_data(scenario), as_data(Scenario(nodes=(), groups={}))
    lines = []
    for key, value in data.items():
        if value == default[key]:
            continue
        if isinstance(value, list):
            lines += [f"{key}:", *(f"  - {flow(_without_nulls(row))}" for row in value)]
        else:
            lines.append(f"{key}: {flow(_without_nulls(value))}")
    return "".join(f"{line}\n" for line in lines)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return value


def _placed(source: Optional[LogSource], folder: Path) -> Optional[LogSource]:
    """Source of a log whose path begins at the working directory."""
    return source and replace(source, file=folder / source.file)


def _faults(scenario: Scenario) -> Iterator[tuple[ValuePath, str]]:
    """Faults between values: place and message."""
    yield from group_faults(scenario.groups)
    sources = [name for name in _SOURCES if getattr(scenario, name)]
    if len(sources) != 1:
        fact = f"it has {' and '.join(sources) or 'no jobs'}"
        yield tuple(sources[1:2]), f"{fact}; write one of {', '.join(_SOURCES)}"
    for number, stream in enumerate(scenario.jobs):
        for at, message in stream.faults():
            yield ("jobs", number, *at), message
    names = Counter(node.name.lower() for node in scenario.nodes)
    for number, node in enumerate(scenario.nodes):
        if names[node.name.lower()] > 1:
            yield ("nodes", number, "name"), "is that of other nodes too; choose another"
        if node.slots > node.cores:
            yield ("nodes", number, "slots"), f"is more than its {node.cores} cores; lower it"
    if sum(node.count for node in scenario.nodes) > MOST_NODES:
        yield ("nodes",), f"are more than {MOST_NODES}; lower count"
    else:
        yield from faults_of(scenario, scenario.end_seconds)
