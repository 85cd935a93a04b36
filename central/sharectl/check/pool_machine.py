"""Checks of the machine that cycles run on: files, timer, last cycle, HTCondor's configuration."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from typing import Any

from sharectl.check import snippet_rules
from sharectl.check.findings import Finding, Level, refusal
from sharectl.check.pool_subject import CHECKS, PoolSubject, divided, finding
from sharectl.check.snippet_subject import SnippetSubject
from sharectl.condor.library import UnreadableConfigurationError
from sharectl.config import advice
from sharectl.publish.disabled_file import user_name
from sharectl.times import span

CONFIGURATION = "configuration"
_SEE = "`sharectl check config` tells more"


@CHECKS.rule()
def configuration(subject: PoolSubject) -> Iterator[Finding]:
    """Files that HTCondor reads or ignores against what their names say."""
    name, local, results = "HTCondor's configuration", subject.local, list[Finding]()
    if isinstance(local, SnippetSubject):
        results += snippet_rules.file_names(local)
    elif isinstance(local, UnreadableConfigurationError):
        results.append(refusal(local, name))
    elif local is not None:
        place, why = str(local.filename or name), local.strerror
        results.append(finding("not looked at", place, level=Level.UNKNOWN, why=why))
    for result in results:
        yield Finding(result.place, result.fault, result.remedy, result.level, CONFIGURATION)


# ---- files


@CHECKS.rule()
def own_files(subject: PoolSubject) -> Iterator[Finding]:
    """Files of the configuration that cannot be used here, as `sharectl check config` tells."""
    config, unit = subject.config, advice.unit_of()
    problems, unreadable = advice.unusable(config, subject.file)
    for level, lines in (
        (Level.ERROR, [*problems, *advice.protected(config, unit)]),
        (Level.UNKNOWN, unreadable),
        (Level.ADVICE, [*advice.absent(config, unit), *advice.advice(config)]),
    ):
        for line in lines:
            place, _, problem = line.partition(": ")
            yield finding("file", place, level=level, **divided(problem, _SEE))


@CHECKS.rule()
def readers(subject: PoolSubject) -> Iterator[Finding]:
    """Files that nodes and monitoring read as other users, and folders above them."""
    metrics = subject.config.metrics.textfile
    files = {way.file: "nodes" for way in subject.config.publish if way.file is not None}
    files.update({metrics: "node_exporter"} if metrics is not None else {})
    page = subject.config.report.file
    files.update({page: "web servers"} if page is not None else {})
    for file, who in files.items():
        for path in (file, *file.parents):
            try:
                mode = stat.S_IMODE(path.stat().st_mode)
            except FileNotFoundError:
                continue  # a cycle makes it, or `own_files` names it
            except OSError as error:
                why = error.strerror or error
                yield finding("not looked at", str(path), level=Level.UNKNOWN, why=why)
                continue
            needed, right = (stat.S_IROTH, "o+r") if path == file else (stat.S_IXOTH, "o+x")
            if not mode & needed:
                words: dict[str, Any] = {"mode": mode, "readers": who, "right": right, "path": path}
                yield finding("kept from readers", str(path), level=Level.ADVICE, **words)


@CHECKS.rule()
def strangers(subject: PoolSubject) -> Iterator[Finding]:
    """Files that cycles append to, and that somebody else owns."""
    folder = subject.config.state_directory
    try:
        owner = folder.stat().st_uid
        names = [
            folder / "lock",
            subject.config.history.errors_log,
            *sorted(folder.glob("ledger/*")),
        ]
        facts = {path: path.stat() for path in names if path.is_file()}
    except OSError as error:
        place, why = str(error.filename or folder), error.strerror or error
        if isinstance(error, FileNotFoundError) and place == str(folder):
            yield finding("no state", place, level=Level.ADVICE)
            return
        yield finding("not looked at", place, level=Level.UNKNOWN, why=why)
        return
    for path, seen in facts.items():
        if owner not in (0, seen.st_uid):
            words: dict[str, Any] = {
                "owner": user_name(seen.st_uid),
                "user": user_name(owner),
                "path": path,
            }
            yield finding("stranger's", str(path), **words)


# ---- cycles


@CHECKS.rule()
def timer(subject: PoolSubject) -> Iterator[Finding]:
    """A last cycle that is too old, and a timer that is off."""
    validity, taken_at = subject.config.validity_seconds, subject.cycle.get("taken_at")
    age = subject.now - taken_at if taken_at is not None else 0
    service = subject.timer_name.replace(".timer", ".service")
    # validity_seconds is three periods, so that one failed cycle withdraws no target.
    if age > 2 * validity / 3:
        is_over = age > validity
        effect = ", longer than validity_seconds: targets have run out" if is_over else ""
        level = Level.ERROR if is_over else Level.ADVICE
        words: dict[str, Any] = {"age": span(age), "effect": effect, "service": service}
        yield finding("late", "last cycle", level=level, **words)
    if not subject.timer and not subject.cycle:
        unit = subject.timer_name
        yield finding("no timer", unit, level=Level.UNKNOWN, unit=unit)
    if subject.timer and subject.timer.get("ActiveState") != "active":
        state = subject.timer.get("ActiveState", "unknown")
        unit = subject.timer_name
        yield finding("stopped", unit, state=state, unit=unit)


@CHECKS.rule()
def status_problems(subject: PoolSubject) -> Iterator[Finding]:
    """Problems that `sharectl status` names, but for those of nodes."""
    places = {"cycle": "last cycle", "place": "publish", "free": "cores"}
    for kind, place in places.items():
        for problem in subject.problems.get(kind, ()):
            words = divided(problem.removeprefix("last cycle: "), "`sharectl status` tells more")
            is_first = kind == "cycle" and not subject.cycle
            level = Level.ADVICE if is_first else Level.ERROR
            yield finding(kind, place, level=level, **words)
