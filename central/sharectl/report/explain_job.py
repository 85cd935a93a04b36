"""Explanation of a job: a page of rows for people and of data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Optional

from sharectl.explain import job as jobs
from sharectl.explain.job import (
    COULD_NEVER,
    HELD,
    OBSTACLES,
    TARGET_KINDS,
    UNITS,
    VERDICTS,
    Headroom,
    JobExplanation,
    JobFacts,
    ObstacleCount,
    SlotTarget,
    Verdict,
    code_of_resource,
)
from sharectl.report.explain import Page, Row, fields
from sharectl.times import shown, span
from sharectl.words import counted

CLAUSE_SHOWN, EXPRESSION_SHOWN, REQUEST_SHOWN = 100, 24, 40


def job_page(why: JobExplanation) -> Page:
    """Page of a job."""
    facts, verdict, headroom = why.facts, why.verdict, why.headroom
    spoken = f"{why.code}: {VERDICTS[why.code]}"
    title, rows = f"job {why.job}: {spoken}", []
    if facts is not None:
        owner = f", {facts.owner}" if facts.owner else ""
        group = facts.accounting_group or "no accounting group"
        title = f"job {why.job} of {facts.schedd}{owner}, {group}"
        rows = [Row("verdict", spoken), *_state_rows(why, facts)]
        values = facts.request_values
        requests = (_request(name, text, values.get(name)) for name, text in facts.requests.items())
        rows += [Row("asks for", ", ".join(requests))] if facts.requests else []
        rows += [Row("problem", why.problem)] if why.problem else []
        if verdict is not None:
            rows += _verdict_rows(verdict, why)
            rows += _negotiator_rows(facts, why.now)
        rows += _headroom_rows(headroom) if headroom is not None else ()
        if verdict is not None:
            text = "is the negotiator's: condor_userprio -all, condor_q -better-analyze"
            rows.append(Row("priority", text))
    data = {
        **fields(why, "job", "now", "code"),
        "says": VERDICTS[why.code],
        "access_point": asdict(facts) if facts else None,
        "problem": why.problem,
        "nodes": _verdict_data(verdict) if verdict else None,
        "group": asdict(headroom) if headroom else None,
    }
    return Page("job", title, rows, data)


def _state_rows(why: JobExplanation, facts: JobFacts) -> Iterator[Row]:
    ago = f" for {span(max(0, why.now - facts.since))}" if facts.since else ""
    if why.code == HELD:
        reason = facts.hold_reason or "without a reason"
        yield Row("held", f"{reason} (code {facts.hold_code}){ago}")
        yield Row("change", f"condor_release {why.job}, once the reason is gone")
    elif why.code == jobs.RUNNING:
        yield Row("runs on", f"{facts.host or '?'}{ago}")
    elif why.code in (jobs.COMPLETED, jobs.REMOVED):
        code = "-" if facts.exit_code is None else f"exit code {facts.exit_code}"
        at = f", {shown(facts.since)}" if facts.since else ""
        yield Row("ended", f"{facts.remove_reason or code}{at}")
    elif facts.since:
        yield Row("waits", f"since {shown(facts.since)}{ago}")


def _request(name: str, text: str, value: Optional[float]) -> str:
    """A request as its value and unit, with its expression if that is short."""
    unit = UNITS.get(name[len("Request") :].lower(), "")
    if value is None:
        return f"{name} = {_short(text, REQUEST_SHOWN)}" + (f" ({unit.strip()})" if unit else "")
    is_plain = text[:1].isdigit() or len(text) > EXPRESSION_SHOWN
    return f"{name} = {value:.15g}{unit}" + ("" if is_plain else f" ({text})")


def _verdict_rows(verdict: Verdict, why: JobExplanation) -> Iterator[Row]:
    """Nodes, shortages, obstacles, targets and remedies.

    Of a job that no empty node takes, obstacles of now matter only if all is printed.
    """
    impossible = verdict.code == COULD_NEVER
    lasting = {row.code for row in verdict.never}
    could = "once released, " if why.code == HELD else ""
    of = f"{could}{verdict.fitting_nodes} of {verdict.total} would take it now"
    yield Row("nodes", f"{of}, {verdict.fitting_if_empty} if nothing ran there")
    if impossible:
        yield from (_obstacle("even empty", row) for row in verdict.never)
    now = [
        *(_obstacle("in the way", row) for row in verdict.obstacles),
        *(_job_target(target, nodes, why.now) for target, nodes in verdict.targets.items()),
    ]
    last = verdict.grace_ends["last"]
    if last:
        now.append(Row("grace", f"ends in {span(max(0, last - why.now))} at the latest"))
    for resource, *amounts in verdict.shortages:
        unit = UNITS.get(resource.lower(), "")
        requested, _, free, most = (f"{amount:.15g}{unit}" for amount in amounts)
        text = (
            f"{resource}: asks for {requested}; where it is short, at most {free} free, "
            f"{most} if nothing ran there"
        )
        matters = not impossible or code_of_resource(resource) in lasting
        yield Row("short", text if matters else "", text)
    if impossible and verdict.never != verdict.obstacles:
        yield Row("in the way", "now also what an empty node would not have: --all", "")
    for row in now:
        full = row.text if row.full is None else row.full
        yield Row(row.label, "" if impossible else row.text, full)
    rows = verdict.never if impossible else verdict.obstacles
    remedies = dict.fromkeys(f"{row.code}: {verdict.remedy(row)}" for row in rows)
    yield from (Row("change", text) for text in remedies)


def _obstacle(label: str, row: ObstacleCount) -> Row:
    alone = f", {row.alone} by this alone" if row.alone else ""
    text = f"{counted(row.nodes, 'node')}{alone}: {OBSTACLES[row.code]}"
    if not row.clause:
        return Row(label, text)
    return Row(label, f"{text}: {_short(row.clause, CLAUSE_SHOWN)}", f"{text}: {row.clause}")


def _job_target(target: SlotTarget, nodes: int, now: int) -> Row:
    ends = "end unknown"
    if target.until > now:
        ends = f"ends in {span(target.until - now)} unless renewed"
    caps = f"{target.held_back} up to {target.cap_cores} cores"
    why = f"{counted(nodes, 'node')}: {TARGET_KINDS[target.kind]}"
    return Row("target", f"{why}: {caps}, {target.helped} by {target.request_cores}; {ends}")


def _negotiator_rows(facts: JobFacts, now: int) -> Iterator[Row]:
    if facts.rejected:
        ago = f", {span(max(0, now - facts.rejected_at))} ago" if facts.rejected_at else ""
        whose = f" (of {facts.rejected_job}, which is alike)" if facts.rejected_job else ""
        yield Row("negotiator", f"said: {facts.rejected}{ago}{whose}")
    if facts.limits:
        limits = _short(facts.limits, CLAUSE_SHOWN)
        yield Row("limits", f"it counts for {limits}; condor_userprio -allusers has their use")


def _headroom_rows(headroom: Headroom) -> Iterator[Row]:
    power, off, pledge = headroom.power_hs06, headroom.error_hs06, headroom.pledge_hs06
    if power is None or off is None:
        problem = headroom.problem or "no configured group, so it has no pledge"
        yield Row("group", f"{headroom.group}: {problem}")
    else:
        side = "over" if off > 0 else "under"
        use = f"{headroom.group} uses {power:.0f} HS06 and is due {power - off:.0f} HS06"
        yield Row("group", f"{use}: {abs(off):.0f} HS06 {side}; pledge {pledge:.0f} HS06")
    for quota in headroom.quotas:
        used, limit = (
            "?" if amount is None else f"{amount:.15g}" for amount in (quota.used, quota.quota)
        )
        surplus = "" if quota.surplus in (None, "no") else f", may go beyond ({quota.surplus})"
        use = f"{quota.name}: {used} of {limit} in use"
        yield Row("quota", f"{use}, as the negotiator weighs slots{surplus}")


def _verdict_data(verdict: Verdict) -> dict[str, Any]:
    def obstacles(rows: Iterable[ObstacleCount]) -> list[dict[str, Any]]:
        return [
            {**asdict(row), "says": OBSTACLES[row.code], "remedy": verdict.remedy(row)}
            for row in rows
        ]

    return {
        **fields(verdict, "total", "code", "fitting_nodes", "fitting_if_empty"),
        "obstacles": obstacles(verdict.obstacles),
        "never": obstacles(verdict.never),
        "targets": [
            {"target": asdict(target), "nodes": nodes, "says": TARGET_KINDS[target.kind]}
            for target, nodes in verdict.targets.items()
        ],
        "shortages": [row._asdict() for row in verdict.shortages],
        **fields(verdict, "grace_ends", "slots"),
    }


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
