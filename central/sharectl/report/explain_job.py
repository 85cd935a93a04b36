"""Explanation of a job: a page of rows for people and of data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from sharectl.explain import job as jobs
from sharectl.explain.job import UNITS, VERDICTS, Headroom, JobExplanation, JobFacts
from sharectl.report.explain import Page, Row, fields
from sharectl.times import shown, span
from sharectl.words import counted

CLAUSE_SHOWN, EXPRESSION_SHOWN, REQUEST_SHOWN = 100, 24, 40
_ELSEWHERE = "is the negotiator's: condor_userprio -all, condor_q -better-analyze"


def job_page(why: JobExplanation) -> Page:
    """Page of a job."""
    facts, spoken = why.facts, f"{why.code}: {VERDICTS[why.code]}"
    title, rows = f"job {why.job}: {spoken}", []
    if facts is not None:
        owner = f", {facts.owner}" if facts.owner else ""
        group = facts.accounting_group or "no accounting group"
        title = f"job {why.job} of {facts.schedd}{owner}, {group}"
        requests = ", ".join(_request(facts, name) for name in facts.requests)
        rows = [
            Row("verdict", spoken),
            *_state_rows(why, facts),
            Row("asks for", requests),
            Row("problem", why.problem or ""),
            *(_verdict_rows(why.verdict, why) if why.verdict else ()),
            *(_negotiator_rows(facts, why.now) if why.verdict else ()),
            *(_headroom_rows(why.headroom) if why.headroom else ()),
            Row("priority", _ELSEWHERE if why.verdict else ""),
        ]
    data = {
        **fields(why, "job", "now", "code"),
        "says": VERDICTS[why.code],
        "access_point": asdict(facts) if facts else None,
        "problem": why.problem,
        "nodes": why.verdict,
        "group": asdict(why.headroom) if why.headroom else None,
    }
    return Page("job", title, rows, data)


def _state_rows(why: JobExplanation, facts: JobFacts) -> Iterator[Row]:
    ago = f" for {span(max(0, why.now - facts.since))}" if facts.since else ""
    if why.code == jobs.HELD:
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


def _request(facts: JobFacts, name: str) -> str:
    """A request as its value and unit, with its expression if that is short."""
    text, value = facts.requests[name], facts.request_values.get(name)
    unit = UNITS.get(name[len("Request") :].lower(), "")
    if value is None:
        return f"{name} = {_short(text, REQUEST_SHOWN)}" + (f" ({unit.strip()})" if unit else "")
    is_plain = text[:1].isdigit() or len(text) > EXPRESSION_SHOWN
    return f"{name} = {value:.15g}{unit}" + ("" if is_plain else f" ({text})")


def _verdict_rows(verdict: Mapping[str, Any], why: JobExplanation) -> Iterator[Row]:
    """Nodes, shortages, obstacles, targets and remedies.

    Of a job that no empty node takes, obstacles of now matter only if all is printed.
    """
    impossible, never, now = (
        verdict["code"] == jobs.COULD_NEVER,
        verdict["never"],
        verdict["obstacles"],
    )
    could = "once released, " if why.code == jobs.HELD else ""
    of = f"{could}{verdict['fitting_nodes']} of {verdict['total']} would take it now"
    yield Row("nodes", f"{of}, {verdict['fitting_if_empty']} if nothing ran there")
    if impossible:
        yield from (_obstacle("even empty", row) for row in never)
    yield from _shortage_rows(verdict, impossible=impossible)
    if impossible and never != now:
        yield Row("in the way", "now also what an empty node would not have: --all", "")
    rows = [_obstacle("in the way", row) for row in now]
    rows += [_target(row, why.now) for row in verdict["targets"]]
    if last := verdict["grace_ends"]["last"]:
        rows.append(Row("grace", f"ends in {span(max(0, last - why.now))} at the latest"))
    for row in rows:
        yield Row(row.label, "", row.full or row.text) if impossible else row
    remedies = (f"{row['code']}: {row['remedy']}" for row in (never if impossible else now))
    yield from (Row("change", text) for text in dict.fromkeys(remedies))


def _shortage_rows(verdict: Mapping[str, Any], *, impossible: bool) -> Iterator[Row]:
    lasting = {row["code"] for row in verdict["never"]}
    for shortage in verdict["shortages"]:
        resource, unit = shortage["resource"], UNITS.get(shortage["resource"].lower(), "")
        requested, free, most = (
            f"{shortage[key]:.15g}{unit}" for key in ("requested", "most_free", "most")
        )
        matters = not impossible or jobs.code_of_resource(resource) in lasting
        text = f"{resource}: asks for {requested}; where it is short, at most {free} free"
        text = f"{text}, {most} if nothing ran there"
        yield Row("short", text if matters else "", text)


def _obstacle(label: str, row: Mapping[str, Any]) -> Row:
    alone = f", {row['alone']} by this alone" if row["alone"] else ""
    text = f"{counted(row['nodes'], 'node')}{alone}: {row['says']}"
    if not row["clause"]:
        return Row(label, text)
    return Row(label, f"{text}: {_short(row['clause'], CLAUSE_SHOWN)}", f"{text}: {row['clause']}")


def _target(row: Mapping[str, Any], now: int) -> Row:
    target, ends = row["target"], "end unknown"
    if target["until"] > now:
        ends = f"ends in {span(target['until'] - now)} unless renewed"
    caps = f"{target['held_back']} up to {target['cap_cores']} cores"
    by = f"{target['helped']} by {target['request_cores']}"
    return Row("target", f"{counted(row['nodes'], 'node')}: {row['says']}: {caps}, {by}; {ends}")


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


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
