"""Checks of a running pool: a table over its ads, its daemons, and the machine of the cycles."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Optional

from sharectl import __version__
from sharectl.check.findings import Finding, Level, some
from sharectl.check.pool_rules import (
    CHECKS,
    MOST_SHOWN,
    OUR_CRON_KNOBS,
    Local,
    PoolSubject,
    daemons_of,
    finding,
    to_ask,
)
from sharectl.check.snippet_subject import CLAUSES, subject_of
from sharectl.condor.configuration import source_of
from sharectl.condor.daemons import bindings
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.condor.pool_look import ask_daemons, dotted, look_at_pool, version_of
from sharectl.condor.service import pool_of
from sharectl.config.advice import unit_of
from sharectl.errors import InputError
from sharectl.times import span
from sharectl.words import counted

OK, WARN, FAIL, UNKNOWN, IGNORED = "ok", "warn", "fail", "unknown", "ignored"
STATES = {Level.ERROR: FAIL, Level.ADVICE: WARN, Level.UNKNOWN: UNKNOWN}
"""Levels, the worst first -> state of a check."""
OF_COLLECTOR = ("clocks", "groups", "cron", "start", "fresh", "nodes", "cores", "defrag")
"""Checks that need the collector's answer."""


@dataclass(frozen=True)
class PoolReport:
    """Findings, and what each check saw."""

    findings: tuple[Finding, ...]
    """By check, in the order of `CHECKS`."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """Check -> facts that hold whether or not something is found."""
    ignored: frozenset[str] = frozenset()
    """Checks that are left out."""

    @property
    def states(self) -> dict[str, str]:
        """Check -> `OK`, `WARN`, `FAIL` or `UNKNOWN` by its worst finding, or `IGNORED`."""
        states = {}
        for check in CHECKS:
            levels = {finding.level for finding in self.findings if finding.id == check.id}
            worst = next((state for level, state in STATES.items() if level in levels), OK)
            states[check.id] = IGNORED if check.id in self.ignored else worst
        return states

    def without(self, ignored: Iterable[str]) -> PoolReport:
        """Report that leaves out these checks."""
        names = frozenset(ignored)
        findings = tuple(finding for finding in self.findings if finding.id not in names)
        return replace(self, findings=findings, ignored=names)


look_of = partial(look_at_pool, clauses=CLAUSES)
"""Question to the collector, in the place of `look_at_nodes`; the answer has a ``look``."""


def without_bindings() -> Optional[PoolReport]:
    """Report of a machine whose bindings of HTCondor cannot be loaded; None if they can."""
    try:
        bindings()
    except ImportError as error:
        others = _untold("HTCondor's bindings cannot be loaded", [c.id for c in CHECKS[1:]])
        return PoolReport((finding("no bindings", "htcondor2", why=error), *others))
    return None


def _untold(why: str, checks: Iterable[str]) -> list[Finding]:
    return [Finding("-", why, "-", Level.UNKNOWN, name) for name in checks]


def check(subject: PoolSubject) -> PoolReport:
    """Findings about a pool; daemons are asked here, and HTCondor reads its configuration."""
    look, answers = subject.look, {}
    if look is not None:
        answers = ask_daemons(look, to_ask(subject.expected), OUR_CRON_KNOBS, subject.config.pool)
    name = timer_of(subject.file)
    timer = unit_of(name, ("LoadState", "ActiveState"))
    with CondorProcess() as process:
        local = _local(process)
        whole = replace(subject, answers=answers, local=local, timer=timer, timer_name=name)
        findings = CHECKS.findings(whole)
    if look is None:
        order = [check.id for check in CHECKS]
        findings += _untold("the collector did not answer", OF_COLLECTOR)
        findings.sort(key=lambda result: order.index(result.id))
    return PoolReport(tuple(findings), dict(_evidence(whole)))


def timer_of(file: Path) -> str:
    """Timer that runs cycles with the configuration in ``file``."""
    pool = pool_of(file)
    return f"sharectl@{pool}.timer" if pool is not None else "sharectl.timer"


def _local(process: CondorProcess) -> Local:
    """Configuration of this machine; None without one."""
    try:
        return subject_of(source_of(None), process, {}, {})
    except InputError:
        return None
    except (UnreadableConfigurationError, OSError) as error:
        return error


def _evidence(subject: PoolSubject) -> Iterator[tuple[str, str]]:
    versions = Counter(
        (kind, dotted(daemon.version) or "unknown")
        for kind, daemons in daemons_of(subject).items()
        for daemon in daemons
    )
    seen = [f"{counted(count, kind)} {version}" for (kind, version), count in versions.items()]
    own = dotted(version_of(bindings().version()))
    here = f"sharectl {__version__}, Python {platform.python_version()}, htcondor2 {own}"
    yield "versions", "; ".join([here, some(seen, 3 * MOST_SHOWN, ", ")])
    if "taken_at" in subject.cycle:
        age, state = subject.now - subject.cycle["taken_at"], subject.timer.get("ActiveState")
        when = f"{span(age)} ago" if age >= 0 else f"{span(-age)} in the future"
        yield "timer", f"last cycle {when}; timer of systemd: {state or 'no answer for it'}"
    if subject.status["disabled"]:
        yield "targets", "sharectl is disabled: no target is published"
    elif subject.observes:
        yield "targets", "mode: observe: no target is published"
    if subject.look is not None:
        answers = [answer.value for answer in subject.of("startd").values()]
        number = len([value for value in answers if value is not None])
        slots, nodes = counted(len(subject.expected), "slot"), subject.status["nodes"]
        yield "cron", f"asked {number} of {slots} under control with the snippet"
        off = nodes["disabled"] + nodes["disabled_by_knob"]
        acting = nodes["with_target"]
        controlled = f"{len(subject.controlled)} under control"
        yield "nodes", f"{controlled}, {acting} with a target, {off} switched off"
