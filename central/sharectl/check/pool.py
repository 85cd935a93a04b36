"""Checks of a running pool: a table over its ads, its daemons, and the machine of the cycles."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Optional, Union

from sharectl import __version__
from sharectl.check.findings import Finding, Level, some
from sharectl.check.pool_rules import CONFIGURATION, OUR_CRON_KNOBS, daemons_of, to_ask
from sharectl.check.pool_subject import CHECKS, MOST_SHOWN, PoolSubject, finding
from sharectl.check.snippet_subject import CLAUSES, SnippetSubject, subject_of
from sharectl.condor.configuration import source_of
from sharectl.condor.daemons import bindings
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.condor.pool_look import PoolLook, ask_daemons, look_at_pool, version_of
from sharectl.condor.service import pool_of
from sharectl.config.advice import unit_of
from sharectl.errors import InputError
from sharectl.times import span
from sharectl.words import counted

__all__ = ["CHECKS", "FAIL", "OK", "UNKNOWN", "WARN", "PoolReport", "check", "look_of"]

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
        levels = {
            check.id: {f.level for f in self.findings if f.id == check.id} for check in CHECKS
        }
        states = {
            check: next((state for level, state in STATES.items() if level in seen), OK)
            for check, seen in levels.items()
        }
        return {**states, **dict.fromkeys(self.ignored.intersection(states), IGNORED)}

    def without(self, ignored: Iterable[str]) -> PoolReport:
        """Report that leaves out these checks."""
        names = frozenset(ignored)
        findings = tuple(finding for finding in self.findings if finding.id not in names)
        return replace(self, findings=findings, ignored=names)


def look_of() -> Callable[..., dict[str, Any]]:
    """Question to the collector, in the place of `look_at_nodes`; the answer has a ``look``."""
    return partial(look_at_pool, clauses=CLAUSES)


def without_bindings() -> Optional[PoolReport]:
    """Report of a machine whose bindings of HTCondor cannot be loaded; None if they can."""
    try:
        bindings()
    except ImportError as error:
        why = "HTCondor's bindings cannot be loaded"
        others = [Finding("-", why, "-", Level.UNKNOWN, check.id) for check in CHECKS[1:]]
        return PoolReport((finding("no bindings", "htcondor2", why=error), *others))
    return None


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
        silent = "the collector did not answer"
        findings += [Finding("-", silent, "-", Level.UNKNOWN, name) for name in OF_COLLECTOR]
        findings.sort(key=lambda result: order.index(result.id))
    return PoolReport(tuple(findings), dict(_evidence(whole)))


def timer_of(file: Path) -> str:
    """Timer that runs cycles with the configuration in ``file``."""
    pool = pool_of(file)
    return f"sharectl@{pool}.timer" if pool is not None else "sharectl.timer"


def _local(
    process: CondorProcess,
) -> Union[SnippetSubject, UnreadableConfigurationError, OSError, None]:
    """`PoolSubject.local`; None where there is no configuration."""
    try:
        return subject_of(source_of(None, with_local=False), process, {}, {})
    except InputError:
        return None
    except (UnreadableConfigurationError, OSError) as error:
        return error


def _evidence(subject: PoolSubject) -> Iterator[tuple[str, str]]:
    versions = Counter(
        (kind, ".".join(map(str, daemon.version)) or "unknown")
        for kind, daemons in daemons_of(subject).items()
        for daemon in daemons
    )
    seen = [f"{counted(count, kind)} {version}" for (kind, version), count in versions.items()]
    own = ".".join(map(str, version_of(bindings().version())))
    here = f"sharectl {__version__}, Python {platform.python_version()}, htcondor2 {own}"
    yield "versions", "; ".join([here, some(seen, 3 * MOST_SHOWN, ", ")])
    if subject.local is None:
        yield CONFIGURATION, "no configuration of HTCondor's daemons on this machine"
    if "taken_at" in subject.cycle:
        age, state = subject.now - subject.cycle["taken_at"], subject.timer.get("ActiveState")
        when = f"{span(age)} ago" if age >= 0 else f"{span(-age)} in the future"
        yield "timer", f"last cycle {when}; timer of systemd: {state or 'no answer for it'}"
    if subject.status["disabled"]:
        yield "targets", "sharectl is disabled: no target is published"
    elif subject.observes:
        yield "targets", "mode: observe: no target is published"
    if subject.look is not None:
        yield from _evidence_of_pool(subject, subject.look)


def _evidence_of_pool(subject: PoolSubject, look: PoolLook) -> Iterator[tuple[str, str]]:
    answered = Counter(
        name.split()[0] for name, answer in subject.answers.items() if answer.source.problem is None
    )
    others = (counted(answered[kind], kind) for kind in ("negotiator", "schedd", "startd"))
    yield "reach", ", ".join(["collector", *others])
    skews = [
        abs(daemon.ahead_seconds or 0)
        for kind, daemons in daemons_of(subject).items()
        for daemon in daemons
        if kind != "collector"
    ]
    most = max(skews, default=0)
    yield "clocks", f"{len(skews)} daemons, at most {most} s from the collector's"
    snippets, nodes = sum(slot.has_snippet for slot in look.slots), subject.status["nodes"]
    yield "groups", f"asked {counted(answered['schedd'], 'access point')}"
    own = counted(len(subject.expected), "slot")
    yield "cron", f"asked {answered['startd']} of {own} under control with the snippet"
    yield "start", f"{snippets} of {counted(len(look.slots), 'slot')} have the snippet"
    off = nodes["disabled"] + nodes["disabled_by_knob"]
    controlled, acting = len(subject.controlled), nodes["with_target"]
    yield "nodes", f"{controlled} under control, {acting} with a target, {off} switched off"
    drain, daemons = sum(slot.is_draining for slot in look.slots), look.daemons["Defrag"]
    yield "defrag", f"{counted(len(daemons), 'condor_defrag')}, {counted(drain, 'slot')} drained"
