"""``sharectl explain job``, as JSON and as one screen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Optional, TextIO

from sharectl.core import job_reasons
from sharectl.core.job_explanation import Headroom
from sharectl.core.job_verdict import ObstacleCount, ShortageCount, TargetCount, Verdict
from sharectl.core.time_words import shown, span
from sharectl.report.screen import print_screen
from sharectl.report.words import counted

OBSTACLES_LISTED = 8
TARGETS_LISTED = 2
CLAUSE_SHOWN = 100
EXPRESSION_SHOWN = 24

_UNITS = {"memory": " MiB", "disk": " KiB"}
_NUMBER = re.compile(r"[0-9.e+]+", re.IGNORECASE)
_REQUEST = re.compile(r"Request(?P<resource>Memory|Disk) = (?:(?P<number>[0-9.e+]+)|.+)", re.IGNORECASE)


@dataclass(frozen=True)
class JobExplanation:
    """All that is known of a job."""

    job: str
    """Such as ``12.0``."""
    now: int
    """Unix seconds."""
    code: str
    """One of `job_reasons.VERDICTS`."""
    facts: Optional[dict[str, Any]] = None
    """What its access point says; None if none knows it."""
    verdict: Optional[Verdict] = None
    """What the slots make of it; None if it needs none now, or that is not known."""
    headroom: Optional[Headroom] = None
    problem: Optional[str] = None
    """Why the slots could not be asked."""


def as_data(found: JobExplanation) -> dict[str, Any]:
    """All of it, each code with its sentence."""
    verdict = found.verdict
    return {
        "job": found.job,
        "now": found.now,
        "code": found.code,
        "says": job_reasons.VERDICTS[found.code],
        "access_point": found.facts,
        "problem": found.problem,
        "nodes": None if verdict is None else _nodes_data(verdict),
        "group": None if found.headroom is None else _headroom_data(found.headroom),
    }


def print_job(found: JobExplanation, to: TextIO, *, everything: bool) -> None:
    """Print it on one screen, or all of it."""
    print_screen(_title(found), _rows(found, everything=everything), to, everything=everything)


def _nodes_data(verdict: Verdict) -> dict[str, Any]:
    told = asdict(verdict)
    for name in ("obstacles", "never"):
        told[name] = [
            {**asdict(row), "says": job_reasons.OBSTACLES[row.code], "remedy": remedy_of(row, verdict)}
            for row in getattr(verdict, name)
        ]
    for row in told["targets"]:
        row["says"] = job_reasons.TARGET_KINDS[row["target"]["kind"]]
    first, last = told.pop("grace_until")
    slots = {
        "total": told.pop("slots"),
        "refused_by_job": told.pop("slots_refused_by_job"),
        "refusing_job": told.pop("slots_refusing_job"),
        "matching": told.pop("slots_matching"),
    }
    total = told.pop("nodes")
    return {"total": total, **told, "grace_ends": {"first": first, "last": last}, "slots": slots}


def _headroom_data(headroom: Headroom) -> dict[str, Any]:
    error = headroom.error
    return {
        "group": headroom.group,
        "pledge_hs06": error.pledge_hs06 if error else None,
        "power_hs06": error.usage.power_hs06 if error else None,
        "error_hs06": error.error_hs06 if error else None,
        "problem": headroom.problem,
        "quotas": [asdict(quota) for quota in headroom.quotas],
    }


def _title(found: JobExplanation) -> str:
    facts = found.facts
    if facts is None:
        return f"job {found.job}: {found.code}: {job_reasons.VERDICTS[found.code]}"
    owner = f", {facts['owner']}" if facts["owner"] else ""
    group = facts["accounting_group"] or "no accounting group"
    return f"job {found.job} of {facts['schedd']}{owner}, {group}"


def _rows(found: JobExplanation, *, everything: bool) -> Iterator[tuple[str, str]]:
    facts = found.facts
    if facts is None:
        return
    yield "verdict", f"{found.code}: {job_reasons.VERDICTS[found.code]}"
    yield from _state(facts, found)
    if found.problem:
        yield "problem", found.problem
    if found.verdict is not None:
        yield from _verdict(
            found.verdict, found.now, everything=everything, held=found.code == job_reasons.HELD
        )
        yield from _negotiator(facts, found.now)
    if found.headroom is not None:
        yield from _headroom(found.headroom)
    if found.verdict is not None:
        yield "priority", "is the negotiator's: condor_userprio -all, condor_q -better-analyze"


def _state(facts: dict[str, Any], found: JobExplanation) -> Iterator[tuple[str, str]]:
    since = facts["since"]
    ago = f" for {span(max(0, found.now - since))}" if since else ""
    if found.code == job_reasons.HELD:
        yield "held", f"{facts['hold_reason'] or 'without a reason'} (code {facts['hold_code']}){ago}"
        yield "change", f"condor_release {found.job}, once the reason is gone"
    elif found.code == job_reasons.RUNNING:
        yield "runs on", f"{facts['host'] or '?'}{ago}"
    elif found.code in (job_reasons.COMPLETED, job_reasons.REMOVED):
        how = facts["remove_reason"] or (
            f"exit code {facts['exit_code']}" if facts["exit_code"] is not None else "-"
        )
        yield "ended", f"{how}{f', {shown(since)}' if since else ''}"
    elif since:
        yield "waits", f"since {shown(since)}{ago}"
    if facts["requests"]:
        yield (
            "asks for",
            ", ".join(
                _request(name, text, facts["request_values"].get(name))
                for name, text in facts["requests"].items()
            ),
        )


def _verdict(verdict: Verdict, now: int, *, everything: bool, held: bool) -> Iterator[tuple[str, str]]:
    could = "once released, " if held else ""
    yield (
        "nodes",
        f"{could}{verdict.fitting_nodes} of {verdict.nodes} would take it now, {verdict.fitting_if_empty} if nothing ran there",
    )
    impossible = verdict.code == job_reasons.COULD_NEVER
    if impossible:
        yield from _obstacles("even empty", verdict.never, everything=everything)
    lasting = {row.code for row in verdict.never}
    for shortage in verdict.shortages:
        if everything or not impossible or job_reasons.code_of_resource(shortage.resource) in lasting:
            yield "short", _shortage(shortage)
    if everything or not impossible:
        yield from _obstacles("in the way", verdict.obstacles, everything=everything)
    elif verdict.never != verdict.obstacles:
        yield "in the way", "now also what an empty node would not have: --all"
    if everything and not impossible and verdict.never and verdict.never != verdict.obstacles:
        yield from _obstacles("even empty", verdict.never, everything=everything)
    yield from _ours(verdict, now, everything=everything)
    rows = verdict.never if impossible else verdict.obstacles
    remedies = dict.fromkeys(f"{row.code}: {remedy_of(row, verdict)}" for row in rows)
    for remedy in list(remedies)[: None if everything else 3]:
        yield "change", remedy


def _ours(verdict: Verdict, now: int, *, everything: bool) -> Iterator[tuple[str, str]]:
    """Targets and grace; of a job that cannot run anyway only if all is wanted."""
    if verdict.code == job_reasons.COULD_NEVER and not everything:
        return
    listed = verdict.targets if everything else verdict.targets[:TARGETS_LISTED]
    yield from (("target", _target(count, now)) for count in listed)
    if len(listed) < len(verdict.targets):
        yield "target", f"… and {len(verdict.targets) - len(listed)} others: --all"
    if verdict.grace_until[1]:
        yield "grace", f"ends in {span(max(0, verdict.grace_until[1] - now))} at the latest"


def remedy_of(row: ObstacleCount, verdict: Verdict) -> str:
    """What would take an obstacle away; on an empty node what is short stays short.

    Of a job that no empty node would take, only what keeps it out there has a remedy.
    """
    never = {(other.code, other.clause): other.nodes for other in verdict.never}
    lasting = never.get((row.code, row.clause), 0)
    impossible = verdict.code == job_reasons.COULD_NEVER
    if impossible and not lasting:
        return job_reasons.NO_USE
    if row.code in job_reasons.SHORT and (impossible or lasting >= row.nodes):
        return job_reasons.TOO_LARGE if lasting >= row.nodes else job_reasons.SMALLER
    end = max((count.target.until for count in verdict.targets), default=0) if row.code == "target" else 0
    remedy = job_reasons.REMEDIES[row.code]
    return remedy.replace("end;", f"end, {shown(end)} at the latest unless renewed;", 1) if end else remedy


def _obstacles(label: str, rows: Sequence[ObstacleCount], *, everything: bool) -> Iterator[tuple[str, str]]:
    most = len(rows) if everything else OBSTACLES_LISTED
    for row in rows[:most]:
        alone = f", {row.alone} by this alone" if row.alone else ""
        told = _with_unit(row.clause)
        clause = f": {told if everything else _short(told, CLAUSE_SHOWN)}" if told else ""
        yield label, f"{counted(row.nodes, 'node')}{alone}: {job_reasons.OBSTACLES[row.code]}{clause}"
    if len(rows) > most:
        yield label, f"… and {len(rows) - most} others: --all"


def _with_unit(request: str) -> str:
    """A request of memory or disk with its unit, in which HTCondor counts it; anything else as it is."""
    found = _REQUEST.fullmatch(request)
    if found is None:
        return request
    unit = _UNITS[found["resource"].lower()]
    return f"{request}{unit}" if found["number"] else f"{request} ({unit.strip()})"


def _request(name: str, text: str, value: Optional[float]) -> str:
    """A request with its unit, as the number that it comes to; the expression behind it where that is short."""
    if value is None:
        return _with_unit(f"{name} = {_short(text, 40)}")
    number = f"{value:.15g}"
    expression = (
        f" ({text})"
        if text != number and len(text) <= EXPRESSION_SHOWN and not _NUMBER.fullmatch(text)
        else ""
    )
    return _with_unit(f"{name} = {number}") + expression


def _shortage(shortage: ShortageCount) -> str:
    unit = _UNITS.get(shortage.resource.lower(), "")
    asked, free, most = (
        f"{amount:.15g}{unit}" for amount in (shortage.requested, shortage.most_free, shortage.most)
    )
    return f"{shortage.resource}: asks for {asked}; where it is short, at most {free} free, {most} if nothing ran there"


def _target(count: TargetCount, now: int) -> str:
    target = count.target
    ends = f"ends in {span(target.until - now)} unless renewed" if target.until > now else "end unknown"
    return (
        f"{counted(count.nodes, 'node')}: {job_reasons.TARGET_KINDS[target.kind]}: {target.held_back} up to "
        f"{target.cap_cores} cores, {target.helped} by {target.request_cores}; {ends}"
    )


def _negotiator(facts: dict[str, Any], now: int) -> Iterator[tuple[str, str]]:
    if facts["rejected"]:
        ago = f", {span(max(0, now - facts['rejected_at']))} ago" if facts["rejected_at"] else ""
        whose = f" (of {facts['rejected_job']}, which is alike)" if facts["rejected_job"] else ""
        yield "negotiator", f"said: {facts['rejected']}{ago}{whose}"
    if facts["limits"]:
        yield (
            "limits",
            f"it counts for {_short(facts['limits'], CLAUSE_SHOWN)}; condor_userprio -allusers has their use",
        )


def _headroom(headroom: Headroom) -> Iterator[tuple[str, str]]:
    error = headroom.error
    if error is not None:
        share = error.usage.power_hs06 - error.error_hs06
        side = "over" if error.error_hs06 > 0 else "under"
        power, pledge = error.usage.power_hs06, error.pledge_hs06
        use = f"{headroom.group} uses {power:.0f} HS06 and is due {share:.0f} HS06: {abs(error.error_hs06):.0f} HS06 {side}"
        yield "group", f"{use}; pledge {pledge:.0f} HS06"
    else:
        yield "group", f"{headroom.group}: {headroom.problem or 'no configured group, so it has no pledge'}"
    for quota in headroom.quotas:
        limit = "?" if quota.quota is None else f"{quota.quota:.15g}"
        used = "?" if quota.used is None else f"{quota.used:.15g}"
        surplus = "" if quota.surplus in (None, "no") else f", may go beyond ({quota.surplus})"
        yield "quota", f"{quota.name}: {used} of {limit} in use, as the negotiator weighs slots{surplus}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
