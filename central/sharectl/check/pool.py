"""Checks of a running pool: a table over its ads, its daemons, and the machine of the cycles."""

from __future__ import annotations

import platform
import re
import stat
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Optional

from sharectl import __version__
from sharectl.check.findings import Checks, Finding, Level, some
from sharectl.check.snippet_rules import (
    CLAUSES,
    CRON_JOBS,
    CRON_KNOBS,
    SnippetSubject,
    changeable,
    cron_job,
)
from sharectl.condor.configuration import ConfigSource, Configuration, words_of
from sharectl.condor.daemons import bindings
from sharectl.condor.deadline import Answer
from sharectl.condor.library import CondorProcess
from sharectl.condor.node_ads import CLOCKS_DIFFER_SECONDS
from sharectl.condor.pool_look import (
    GROUP_LISTS,
    LEFTOVERS,
    MOST_ASKED,
    NEEDED,
    ROUTED_BY,
    TESTED,
    DaemonLook,
    PoolLook,
    SlotLook,
    ask_daemons,
    dotted,
    look_at_pool,
    missing_clauses,
    version_of,
)
from sharectl.condor.service import pool_of
from sharectl.config import advice
from sharectl.config.model import OBSERVE, Config
from sharectl.plan.nodes import REMEDIES
from sharectl.plan.plan import State
from sharectl.plan.settings import OBEY_SECONDS
from sharectl.publish.disabled_file import user_name
from sharectl.times import span
from sharectl.words import counted

CHECKS = Checks("pool.txt")
finding = CHECKS.finding

MOST_SHOWN = 3
"""Names in a finding; the others are counted."""
_REMEDY = re.compile(r"; |: (?=write |see |`sharectl )|, or (?=`sharectl )")


@dataclass(frozen=True)
class PoolSubject:
    """A pool and this machine: everything that the checks judge."""

    now: int
    """Unix seconds."""
    config: Config
    file: Path
    """File of ``config``."""
    status: Mapping[str, Any]
    """As ``sharectl status --json`` has it."""
    problems: Mapping[str, Sequence[str]]
    """Name of a finding -> problems that `sharectl status` names."""
    look: Optional[PoolLook] = None
    """Answer of the collector; None if it did not answer."""
    state: State = field(default_factory=State)
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """As of `sharectl.condor.pool_look.ask_daemons`."""
    timer: Mapping[str, str] = field(default_factory=dict)
    """Settings of the timer's unit as systemd has them; empty without systemd or unit."""

    @property
    def slots(self) -> tuple[SlotLook, ...]:
        """Partitionable slots."""
        return self.look.slots if self.look is not None else ()

    @property
    def cycle(self) -> Mapping[str, Any]:
        """Last cycle; empty if there was none."""
        return self.status["last_cycle"] or {}

    @property
    def observes(self) -> bool:
        """True if nothing is steered."""
        return self.config.mode == OBSERVE

    @property
    def controlled(self) -> Collection[str]:
        """Host names of the nodes under control."""
        return self.look.control.controlled if self.look is not None else ()

    @property
    def expected(self) -> tuple[SlotLook, ...]:
        """Slots of nodes that should act on targets."""
        expected = self.look.control.expected if self.look is not None else ()
        return tuple(slot for slot in self.slots if slot.machine in expected)

    def of(self, kind: str) -> dict[str, Answer]:
        """Answers of the daemons of a kind (``schedd``), by the names that they were asked by."""
        return {name: answer for name, answer in self.answers.items() if name.split()[0] == kind}


def named(names: Iterable[str]) -> str:
    """First of these names, and the number of the others."""
    return some(list(dict.fromkeys(names)), MOST_SHOWN, ", ")


def of_slots(kind: str, slots: Sequence[SlotLook], **words: Any) -> Finding:
    """Finding of that name about slots, with their number as ``count``."""
    count = counted(len(slots), "slot")
    return finding(kind, named(slot.machine for slot in slots), count=count, **words)


def divided(problem: str, otherwise: str) -> dict[str, Any]:
    """Fact and remedy of a problem that has both; ``otherwise`` is for one without a remedy."""
    matches = list(_REMEDY.finditer(problem))
    if not matches:
        return {"fault": problem, "remedy": otherwise}
    return {"fault": problem[: matches[-1].start()], "remedy": problem[matches[-1].end() :]}


# ---- files


def unseen(place: str, error: OSError) -> Finding:
    """Finding about a file that this user cannot read."""
    return finding("not looked at", place, why=error.strerror or error)


@CHECKS.rule()
def readers(subject: PoolSubject) -> Iterator[Finding]:
    """Files that nodes and monitoring read as other users, and folders above them."""
    files = {way.file: "nodes" for way in subject.config.publish}
    files[subject.config.metrics.textfile] = "node_exporter"
    files[subject.config.report.file] = "web servers"
    for path, who in ((path, who) for path, who in files.items() if path is not None):
        for part in (path, *path.parents):
            needed, right = (stat.S_IROTH, "o+r") if part == path else (stat.S_IXOTH, "o+x")
            try:
                mode = stat.S_IMODE(part.stat().st_mode)
            except FileNotFoundError:
                continue  # a cycle makes it, or `own_files` names it
            except OSError as error:
                yield unseen(str(part), error)
                continue
            if not mode & needed:
                words: dict[str, Any] = {"mode": mode, "readers": who, "right": right, "path": part}
                yield finding("kept from readers", str(part), **words)


@CHECKS.rule()
def strangers(subject: PoolSubject) -> Iterator[Finding]:
    """Files that cycles append to, and that somebody else owns; a folder that no cycle makes."""
    folder, log = subject.config.state_directory, subject.config.history.errors_log
    try:
        owner = folder.stat().st_uid
        files = [folder / "lock", log, *sorted(folder.glob("ledger/*"))]
        owners = {path: path.stat().st_uid for path in files if path.is_file()}
    except FileNotFoundError:
        if not folder.parent.is_dir():
            yield finding("no folder", str(folder))
        return  # no cycle has run yet
    except OSError as error:
        yield unseen(str(error.filename or folder), error)
        return
    user = user_name(owner)
    for path, uid in owners.items():
        if owner not in (0, uid):
            yield finding("stranger's", str(path), owner=user_name(uid), user=user, path=path)


# ---- cycles


@CHECKS.rule()
def timer(subject: PoolSubject) -> Iterator[Finding]:
    """A last cycle that is too old, and a timer that is off."""
    validity, taken_at = subject.config.validity_seconds, subject.cycle.get("taken_at")
    age = subject.now - taken_at if taken_at is not None else 0
    unit = timer_of(subject.file)
    # validity_seconds is three periods, so that one failed cycle withdraws no target.
    if age > 2 * validity / 3:
        kind, service = "too late" if age > validity else "late", unit.replace(".timer", ".service")
        yield finding(kind, "last cycle", age=span(age), service=service)
    if not subject.timer and not subject.cycle and not subject.problems.get("state"):
        yield finding("no timer", unit, unit=unit)
    if subject.timer and subject.timer.get("ActiveState") != "active":
        state = subject.timer.get("ActiveState", "unknown")
        yield finding("stopped", unit, state=state, unit=unit)


@CHECKS.rule()
def status_problems(subject: PoolSubject) -> Iterator[Finding]:
    """Problems that `sharectl status` names, but for those of nodes."""
    places = {
        "state": "state_directory",
        "cycle": "last cycle",
        "place": "publish",
        "free": "cores",
        "future": "this machine",
    }
    for kind, place in places.items():
        level = Level.ADVICE if kind == "cycle" and not subject.cycle else Level.ERROR
        for problem in subject.problems.get(kind, ()):
            words = divided(problem.removeprefix("last cycle: "), "`sharectl status` tells more")
            yield finding(kind, place, level, **words)


# ---- daemons

OUR_JOBS = ("JOB_CTL", "SHARECTL_OFF", "MC_GRACE")
OUR_CRON_KNOBS = (
    CRON_JOBS,
    *(f"STARTD_CRON_{job}_{knob}" for job in OUR_JOBS for knob in CRON_KNOBS),
)
"""Knobs that some nodes are asked for."""
_GROUP = re.compile(r"\b(AcctGroup|AccountingGroup)\b", re.IGNORECASE)


def grouped(rows: Iterable[tuple[Any, Any]]) -> list[tuple[Any, list[Any]]]:
    """Values by keys that are not empty, the largest groups first."""
    groups: defaultdict[Any, list[Any]] = defaultdict(list)
    for key, value in rows:
        if key:
            groups[key].append(value)
    return sorted(groups.items(), key=lambda row: -len(row[1]))


def daemons_of(subject: PoolSubject) -> dict[str, list[DaemonLook]]:
    """Kind for people -> daemons."""
    if subject.look is None:
        return {}
    machines = {slot.machine: slot.daemon for slot in subject.expected}
    others = {kind.lower(): list(daemons) for kind, daemons in subject.look.daemons.items()}
    return {**others, "execute point": list(machines.values())}


@CHECKS.rule()
def too_old(subject: PoolSubject) -> Iterator[Finding]:
    """Daemons that are older than those that sharectl is tested with."""
    bounds = {"least": dotted(TESTED), "needed": dotted(NEEDED)}
    for kind, daemons in daemons_of(subject).items():
        if old := [daemon for daemon in daemons if () < daemon.version < TESTED]:
            names = named(daemon.name for daemon in old)
            versions = named(sorted({dotted(daemon.version) for daemon in old}))
            count = counted(len(old), kind)
            yield finding("untested", names, count=count, versions=versions, **bounds)


def problems_of(answers: Mapping[str, Answer]) -> dict[str, list[str]]:
    """Problem -> daemons that have it; those that differ in numbers, as of ports, are one."""
    problems = {name: answer.source.problem or "" for name, answer in answers.items()}
    alike = grouped((re.sub(r"\d+", "", problem), name) for name, problem in problems.items())
    return {problems[names[0]]: names for _, names in alike}


@CHECKS.rule()
def silent(subject: PoolSubject) -> Iterator[Finding]:
    """Daemons that do not answer."""
    if problem := subject.status["nodes"].get("problem"):
        yield finding("silent", "collector", **divided(problem.removeprefix("collector: "), "-"))
    pledges = subject.config.pledges.source
    for kind in ("schedd", "negotiator"):
        level = Level.ERROR if kind in ("schedd", pledges) else Level.ADVICE
        for problem, names in problems_of(subject.of(kind)).items():
            words = divided(problem, "see its log there: it is busy or hangs")
            yield finding("silent", named(names), level, **words)


@CHECKS.rule()
def absent(subject: PoolSubject) -> Iterator[Finding]:
    """Daemons that the collector does not know."""
    if subject.look is None:
        return
    present = {daemon.name.lower() for daemon in subject.look.daemons["Schedd"]}
    for name in subject.config.pool.schedds:
        if name.lower() not in present:
            yield finding("absent", f"schedd {name}", knob="pool.schedds")
    for kind in ("Schedd", "Negotiator"):
        if not subject.look.daemons[kind]:
            yield finding("absent", kind.lower(), knob="pool.collector")
    if not subject.slots:
        yield finding("no nodes", "collector")


@CHECKS.rule()
def clocks(subject: PoolSubject) -> Iterator[Finding]:
    """Clocks that differ."""
    ahead = subject.look.ahead_seconds if subject.look is not None else 0
    if ahead:
        way = "ahead of" if ahead > 0 else "behind"
        yield finding("collector", "collector", seconds=abs(ahead), way=way)
    for kind, daemons in daemons_of(subject).items():
        # A collector renews its ad of itself in place, with the time of its last update.
        least = CLOCKS_DIFFER_SECONDS
        seconds = {daemon.name: abs(daemon.ahead_seconds or 0) for daemon in daemons}
        wrong = {name: difference for name, difference in seconds.items() if difference > least}
        if wrong and kind != "collector":
            count, most = counted(len(wrong), kind), max(wrong.values())
            yield finding("nodes", named(wrong), count=count, seconds=least, most=most)


# ---- access points


@CHECKS.rule()
def chosen_groups(subject: PoolSubject) -> Iterator[Finding]:
    """Access points on which users choose their group."""
    answers = subject.of("schedd")
    yield from unknown("unknown groups", answers)
    ways = []
    for name, answer in answers.items():
        if answer.value is not None and (why := why_chosen(answer.value)):
            ways.append(((why, answer.value.get(ROUTED_BY, "")), name))
    for (why, router), names in grouped(ways):
        yield finding("routed" if router else "chosen", named(names), why=why, router=router)


def why_chosen(knobs: Mapping[str, str]) -> str:
    """Way for users to choose their group; empty if the access point assigns or tests it."""
    if missing := changeable(words_of(knobs.get("immutable_job_attrs", ""))):
        return f"IMMUTABLE_JOB_ATTRS has no {', '.join(missing)}"
    lists = (*map(str.lower, GROUP_LISTS), ROUTED_BY)
    if not any(_GROUP.search(text) for name, text in knobs.items() if name not in lists):
        return "no job transform and no submit requirement is about groups"
    return ""


@CHECKS.rule()
def leftovers(subject: PoolSubject) -> Iterator[Finding]:
    """Access points that start jobs on leftovers of slots with a consumption policy.

    Since 23.7.2 a startd asks only the access point.
    """
    with_policy = {slot.machine for slot in subject.slots if slot.has_policy}
    knobs = {name: answer.value for name, answer in subject.of("schedd").items()}
    uses = [n for n, k in knobs.items() if k and k.get(LEFTOVERS.lower(), "").lower() != "false"]
    if with_policy and uses:
        yield finding("leftovers", named(uses), nodes=counted(len(with_policy), "node"))


# ---- execute points


def to_ask(slots: Sequence[SlotLook]) -> list[DaemonLook]:
    """Execute points to ask for their knobs: with the snippet, of different kinds first."""
    slots = [slot for slot in slots if slot.has_snippet]
    kinds = {(slot.daemon.version, slot.missing, slot.code): slot for slot in slots}
    chosen = {slot.machine: slot.daemon for slot in (*kinds.values(), *slots)}
    return list(chosen.values())[:MOST_ASKED]


def unknown(kind: str, answers: Mapping[str, Answer]) -> Iterator[Finding]:
    """Findings about daemons that did not answer."""
    for problem, names in problems_of(answers).items():
        yield finding(kind, named(names), why=divided(problem, "")["fault"])


@CHECKS.rule()
def cron_jobs(subject: PoolSubject) -> Iterator[Finding]:
    """STARTD_CRON jobs of the nodes that were asked."""
    answers = subject.of("startd")
    yield from unknown("unknown knobs", answers)
    places: list[tuple[Finding, str]] = []
    with CondorProcess() as process:
        for name, answer in answers.items():
            knobs = answer.value or {}
            jobs = words_of(knobs.get(CRON_JOBS.lower(), ""))
            ours = " ".join(job for job in jobs if job.upper() in OUR_JOBS)
            values = {**knobs, CRON_JOBS.lower(): ours}
            node = Configuration("node", ConfigSource(), values=values)
            results = cron_job(SnippetSubject(node, process))
            places += [(result, name.rpartition("@")[2]) for result in results]
    for result, names in grouped(places):
        yield replace(result, place=f"{named(names)} {result.place}".rstrip())


@CHECKS.rule()
def clauses(subject: PoolSubject) -> Iterator[Finding]:
    """Nodes under control with the snippet whose START is another one."""
    # While a node drains, another expression stands in the place of START.
    slots = [slot for slot in subject.expected if slot.has_snippet and not slot.is_draining]
    for names, of_names in grouped((slot.missing, slot) for slot in slots):
        yield of_slots("without clauses", of_names, names=list(names))
    for names, of_names in grouped((slot.undefined, slot) for slot in slots):
        yield of_slots("unpublished clauses", of_names, names=list(names))


@CHECKS.rule()
def nodes(subject: PoolSubject) -> Iterator[Finding]:
    """Nodes that refuse what is published, cannot get it, or do not act on it."""
    for code, slots in grouped((slot.code, slot) for slot in subject.slots if slot.refuses):
        yield of_slots("refuses", slots, code=code, remedy=REMEDIES[code])
    steered = subject.controlled if subject.observes else subject.expected
    if subject.slots and not steered and not subject.config.nodes.only_measures:
        is_quiet = subject.observes or subject.status.get("disabled")
        level = Level.ADVICE if is_quiet else Level.ERROR
        yield finding("none controlled", "nodes.controlled", level)
    if hot := subject.status["nodes"].get("hot"):
        yield finding("hot", named(hot), count=counted(len(hot), "node"))
    if names := sorted(subject.state.unheeding):
        count = counted(len(names), "node")
        yield finding("unheeding", named(names), count=count, seconds=OBEY_SECONDS)


# ---- condor_defrag


@CHECKS.rule()
def defrag(subject: PoolSubject) -> Iterator[Finding]:
    """condor_defrag that may drain nodes which sharectl steers."""
    answers = subject.of("defrag")
    yield from unknown("unknown defrag", answers)
    for name, answer in answers.items():
        if (knobs := answer.value) is None:
            continue
        requirements = knobs.get("defrag_requirements", "PartitionableSlot")
        if "t1_target" not in requirements.lower() and not subject.observes:
            yield finding("may drain", name, requirements=requirements)
        start = knobs.get("defrag_draining_start_expr", "False")
        missing = missing_clauses(start, CLAUSES)
        if start.strip().lower() != "false" and missing:
            yield finding("starts past", name, names=list(missing))


# ---- the report

STATES = {Level.UNKNOWN: "unknown", Level.ADVICE: "warn", Level.ERROR: "fail"}
"""Levels, the worst last -> state of a check."""
OF_COLLECTOR = ("clocks", "groups", "leftovers", "cron", "start", "nodes", "cores", "defrag")
"""Checks that need the collector's answer."""
OF_STATE = ("timer", "cycles", "targets", "cores")
"""Checks that need what the last cycle left in state.json."""


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
        """Check -> one of `STATES` by its worst finding, ``ok``, or ``ignored``."""
        states = dict.fromkeys((check.id for check in CHECKS), "ok")
        for level, state in STATES.items():
            states.update((part.id, state) for part in self.findings if part.level is level)
        return {**states, **dict.fromkeys(self.ignored, "ignored")}


look_of = partial(look_at_pool, clauses=CLAUSES)
"""Question to the collector, in the place of `look_at_nodes`; the answer has a ``look``."""


def check(subject: PoolSubject) -> PoolReport:
    """Findings about a pool, but for those to ignore; daemons are asked here."""
    look, answers = subject.look, {}
    if look is not None:
        answers = ask_daemons(look, to_ask(subject.expected), OUR_CRON_KNOBS, subject.config.pool)
    timer = advice.unit_of(timer_of(subject.file), ("LoadState", "ActiveState"))
    whole = replace(subject, answers=answers, timer=timer)
    blind = {
        "the collector did not answer": OF_COLLECTOR if look is None else (),
        "state.json cannot be read": OF_STATE if subject.problems.get("state") else (),
    }
    findings = [Finding("-", why, "-", Level.UNKNOWN, name) for why in blind for name in blind[why]]
    findings = CHECKS.in_order([*CHECKS.findings(whole), *findings])
    ignored = frozenset(subject.config.check.ignore)
    shown = tuple(finding for finding in findings if finding.id not in ignored)
    return PoolReport(shown, dict(_evidence(whole)), ignored)


def timer_of(file: Path) -> str:
    """Timer that runs cycles with the configuration in ``file``."""
    pool = pool_of(file)
    return f"sharectl@{pool}.timer" if pool is not None else "sharectl.timer"


def _evidence(subject: PoolSubject) -> Iterator[tuple[str, str]]:
    own = dotted(version_of(bindings().version()))
    python = platform.python_version()
    yield "versions", f"sharectl {__version__}, Python {python}, htcondor2 {own}"
    if subject.look is not None:
        number = sum(answer.value is not None for answer in subject.of("startd").values())
        slots = counted(len(subject.expected), "slot")
        yield "cron", f"asked {number} of {slots} under control with the snippet"
