"""``sharectl check config``, ``snippets`` and ``pool``, and the output of every check."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from sharectl.check.findings import Check, Finding, as_content, as_lines, has_errors
from sharectl.cli import options
from sharectl.errors import ConfigError
from sharectl.report import plugin
from sharectl.report.tables import print_hanging
from sharectl.words import counted, printable

if TYPE_CHECKING:  # the other checks start without the pool's
    from sharectl.check.pool import PoolReport

_ATTRIBUTE = re.compile(r"([A-Za-z_]\w*)(?:=(.*\S.*))?", re.DOTALL)

_TEXT = re.compile(
    r"\s*(?!(?:true|false|undefined|error)\s*$|(?:MY|TARGET)\.)[A-Za-z_][\w.-]*\s*", re.IGNORECASE
)


def attributes(text: str) -> list[tuple[str, str]]:
    """Names and values of ``NAME,…`` or ``NAME=VALUE``; the default value is True."""
    parts = [text] if "=" in text else [part.strip() for part in text.split(",")]
    matches = [match for part in parts if (match := _ATTRIBUTE.fullmatch(part))]
    if len(matches) < len(parts):
        raise ValueError(f"{text!r}: write NAME or NAME=VALUE, such as NODE_IS_HEALTHY=True")
    if lost := next((match for match in matches if _TEXT.fullmatch(match[2] or "")), None):
        name, value = lost.groups()
        problem = f"{value} is a text without quotes, which HTCondor takes for an attribute"
        raise ValueError(f"{text!r}: {problem}; write {name}='\"{value.strip()}\"'")
    return [(match[1], (match[2] or "True").strip()) for match in matches]


def _config(arguments: argparse.Namespace) -> int:
    """Print the configuration with its defaults; 78 if it is faulty, 1 if it cannot work here."""
    from sharectl.config.advice import findings
    from sharectl.config.load import load
    from sharectl.config.text import as_data, render

    try:
        config = load(arguments.config)
    except ConfigError as error:
        if not arguments.json:
            raise
        refused = {"valid": False, "problems": error.problems, "recommendations": []}
        options.show(arguments, "config", {**refused, "config": None}, ())
        return error.exit_code
    problems, recommendations = findings(config, arguments.config)
    report = {"valid": True, "problems": problems, "recommendations": recommendations}
    content = {**report, "config": as_data(config)}
    options.show(arguments, "config", content, render(config).splitlines())
    if not arguments.json:
        sys.stdout.flush()
        options.say([*problems, *(f"recommended: {line}" for line in recommendations)])
        # A comment of YAML: what was printed can be used as a configuration.
        advice = f", {len(recommendations)} recommended" if recommendations else ""
        refusal = f"not ok: {counted(len(problems), 'problem')} on this machine"
        print(f"# {refusal if problems else 'ok'}{advice}")
    return 1 if problems else 0


def _add_snippets(parser: argparse.ArgumentParser) -> None:
    from sharectl.check.snippets import CHECKS

    parser.add_argument(
        "directory",
        nargs="?",
        type=options.path,
        metavar="DIR",
        help="check the files of this folder, on top of HTCondor's defaults (default: all that "
        "this machine's HTCondor reads)",
    )
    add_published(parser)
    list_checks(parser, CHECKS)


def add_published(parser: argparse.ArgumentParser) -> None:
    """Add ``--published`` and ``--carried``."""
    for option, whose in (
        (
            "--published",
            "a STARTD_CRON job of the site publishes, with its value on a healthy node",
        ),
        ("--carried", "jobs of the site carry, with its value in a typical job"),
    ):
        parser.add_argument(
            option,
            action="extend",
            default=[],
            type=attributes,
            metavar="NAME[=VALUE]",
            help=f"an attribute that {whose} (default: True), or several names with commas; may "
            "be repeated",
        )


def _snippets(arguments: argparse.Namespace) -> int:
    """Print knobs as the files make them, then the findings; 1 for more than advice."""
    from sharectl.check.snippets import CHECKS, check
    from sharectl.condor.configuration import source_of

    source = source_of(arguments.directory)
    report = check(source, dict(arguments.published), dict(arguments.carried))
    lines = [f"read: {name}" for name in report.files]
    lines += [f"{knob} = {text}" for knob, text in report.made.items()]
    content = {"files": list(report.files), "made": dict(report.made)}
    return show(arguments, "snippets", content, lines, CHECKS, report.findings)


def list_checks(parser: argparse.ArgumentParser, checks: Sequence[Check]) -> None:
    """Add the list of checks to the help."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(len(check.id) for check in checks)
    listed = "\n".join(f"  {check.id:{width}}  {check.holds}" for check in checks)
    parser.epilog = f"checks, and what holds if nothing is found:\n{listed}".replace("%", "%%")


def show(
    arguments: argparse.Namespace,
    kind: str,
    content: Mapping[str, Any],
    lines: Iterable[str],
    checks: Sequence[Check],
    findings: Sequence[Finding],
) -> int:
    """Print the findings after what was read; 1 if any of them is more than advice."""
    # Files are outside text: nothing in them reaches a terminal's control.
    text = (
        printable(line.replace("\n", " ").replace("\t", " "))
        for line in (*lines, *as_lines(findings, checks))
    )
    options.show(arguments, kind, {**content, **as_content(findings, checks)}, text)
    return 1 if has_errors(findings) else 0


# ---- pool

_PLUGIN_CODES = {"fail": plugin.CRITICAL, "warn": plugin.WARNING, "unknown": plugin.UNKNOWN}
"""State of a check, the worst first -> exit code of a monitoring plugin."""
_STATES = ("ok", "warn", "fail", "unknown", "ignored")
_STATE_WIDTH = 9
_SHOWN_CHARACTERS = 600
"""Text of a finding: what daemons and ads say is bounded."""


def _add_pool(parser: argparse.ArgumentParser) -> None:
    from sharectl.check.pool import CHECKS
    from sharectl.cli.status import add_nagios

    add_nagios(parser)
    list_checks(parser, CHECKS)


def _pool(arguments: argparse.Namespace) -> int:
    """Print what each check of the pool found; 1 for more than advice, or as ``--nagios`` says."""
    from sharectl.check.pool import CHECKS

    if arguments.nagios:
        from sharectl.cli.status import as_plugin

        return as_plugin(lambda: _plugin(*_report_of(arguments)))
    report, _ = _report_of(arguments)
    seen = {"states": report.states, "evidence": dict(report.evidence)}
    content = {**seen, **as_content(report.findings, CHECKS)}
    options.show(arguments, "pool", content, partial(_print_pool, report))
    return 1 if has_errors(report.findings) else 0


def _report_of(arguments: argparse.Namespace) -> tuple[PoolReport, dict[str, plugin.Perfdata]]:
    """Report of the pool without the checks to ignore, and figures for graphs."""
    from sharectl.check.pool import PoolSubject, check, look_of, without_bindings
    from sharectl.cli.status import cycle_problems, figures_of, look_with, place_problems
    from sharectl.report.pool import block_problems

    config = options.config_of(arguments)
    if report := without_bindings():
        return report.without(config.check.ignore), {}
    seen = look_with(config, look_of)
    status, now = seen.status, seen.status["now"]
    look = status["nodes"].pop("look", None)
    problems = {
        "place": [*place_problems(status, config.nodes.job_ctl_stale_seconds)],
        "cycle": [*cycle_problems(status["last_cycle"])],
        "free": [*block_problems(status["blocks"])],
        "future": [seen.of_future] if seen.of_future else [],
    }
    report = check(PoolSubject(now, config, arguments.config, status, problems, look, seen.state))
    return report.without(config.check.ignore), figures_of(status, config)


def _print_pool(report: PoolReport, to: TextIO) -> None:
    """Print a paragraph for each check; checks that say the same have one together.

    A terminal gets lines as wide as it is; a pipe gets a line for each check, fault and remedy.
    """
    paragraphs: dict[tuple[str, ...], list[str]] = {}
    for name, state in report.states.items():
        lines = [line for finding in report.findings if finding.id == name for line in _of(finding)]
        seen = report.evidence.get(name, "")
        paragraphs.setdefault((state, seen, *lines), []).append(name)
    for (state, seen, *lines), names in paragraphs.items():
        print_hanging(f"{state:<{_STATE_WIDTH}}", f"{', '.join(names)}: {seen}".rstrip(": "), to)
        for line in lines:
            print_hanging(" " * _STATE_WIDTH, line, to)
    counts = Counter(report.states.values())
    print(", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state]), file=to)


def _of(finding: Finding) -> Iterator[str]:
    """Fault of a finding, and what to do if there is something."""
    from sharectl.check.pool import STATES

    place = "" if finding.place == "-" else f"{finding.place}: "
    yield printable(f"{STATES[finding.level]}: {place}{finding.fault}", _SHOWN_CHARACTERS)
    if finding.remedy != "-":
        yield printable(f"do: {finding.remedy}", _SHOWN_CHARACTERS)


def _plugin(report: PoolReport, figures: dict[str, plugin.Perfdata]) -> tuple[int, list[str]]:
    """Exit code and lines of a plugin; checks stand in the order of causes."""
    from sharectl.check.pool import STATES

    counts, order = Counter(report.states.values()), list(STATES)
    code = next((code for state, code in _PLUGIN_CODES.items() if counts[state]), plugin.OK)
    worst_first = sorted(report.findings, key=lambda finding: order.index(finding.level))
    details = [f"{finding.id}: {finding.place}: {finding.fault}" for finding in worst_first]
    first = details[0] if details else f"{counted(counts['ok'], 'check')} ok"
    levels = Counter(STATES[finding.level] for finding in worst_first[1:])
    others = ", ".join(f"{number} more {state}" for state, number in levels.items())
    numbers = {state: plugin.Perfdata(counts[state]) for state in _STATES[:-1]}
    return code, plugin.plugin_lines(code, first, others, details, {**numbers, **figures})


_CHECKS = {
    "config": options.Verb(
        _config, summary="validate the YAML file and print it with the defaults filled in"
    ),
    "snippets": options.Verb(
        _snippets,
        _add_snippets,
        ("--json",),
        "what files of config.d make of a node, in HTCondor's own parser",
    ),
    "pool": options.Verb(
        _pool,
        _add_pool,
        ("--config",),
        "look for what keeps a running pool from being steered, or its figures from being right",
    ),
}
VERBS = {"check": options.with_actions("check", _CHECKS)}
