"""Explanations of groups, nodes, cycles and jobs: data, and rows by `explain.txt` about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, NamedTuple, Optional, TextIO

from sharectl.explain import decisions
from sharectl.explain.codes import says
from sharectl.explain.decisions import Explained, Otherwise
from sharectl.explain.job import COULD_NEVER, UNITS, VERDICTS, Facts
from sharectl.explain.turn import SURPLUS, Prospect, over_quota
from sharectl.explain.what_if import target_on
from sharectl.model import GroupControl
from sharectl.plan.diff import plan_diff, power_moved_hs06
from sharectl.plan.nodes import QUIET, SWITCHES, NodeWords
from sharectl.plan.records import CycleRecord, NodeRecord, by_size
from sharectl.report import as_json
from sharectl.report.plans import changes_data
from sharectl.report.svg import render
from sharectl.report.tables import print_screen
from sharectl.shares.groups import levels_above
from sharectl.times import shown

MOST_ROWS = 5
"""Of one label, on one screen."""
_ESTIMATES = ("wait_seconds", "idle_core_seconds")
"""Fields of a node that are 0 where they were not estimated."""


class Page(NamedTuple):
    """One explanation."""

    subject: str
    """Such as ``group``."""
    title: str
    rows: Sequence[tuple[str, str]]
    """Labels and texts."""
    data: Mapping[str, Any]

    def shown(self) -> Iterator[tuple[str, str]]:
        """Labels and texts for one screen."""
        for label, rows in groupby(self.rows, lambda row: row[0]):
            texts = list(rows)
            yield from texts[:MOST_ROWS]
            if len(texts) > MOST_ROWS:
                yield label, f"… and {len(texts) - MOST_ROWS} more: --json"

    def print(self, to: TextIO, *, json: bool) -> None:
        """Print it as JSON, or on one screen."""
        if json:
            to.write(f"{as_json.dumps(f'explain_{self.subject}', self.data)}\n")
        else:
            print_screen(self.title, self.shown(), to)


def group_page(explained: Explained, group: str, otherwise: Otherwise) -> Page:
    """Page of a group."""
    record = explained.record
    control = next(control for control in record.groups if control.group == group)
    reason, moves = record.group_reasons.get(group), decisions.exchanges(record)
    of_usage = ("cores", "single_cores", "multi_cores", "pending_by_cores", "unplaceable_by_cores")
    data = {
        **_control(control),
        **fields(control.error.usage, *of_usage),
        "waits": [asdict(waits) for waits in record.waits if waits.group == group],
        **fields(control.error, "error_cores", "power_minus_pledge_hs06"),
        "setpoint": _coded("setpoint", record.setpoint),
        "state": control.state,
        "in_use_ratio": decisions.ratio_of(record, "in_use"),
        "setpoint_ratio": decisions.ratio_of(record, record.setpoint),
        "reason": _coded("plan", record.reason),
        "outcome": _coded("group", reason.code if reason else None),
        "closed_nodes": reason.closed_nodes if reason else None,
        "gives": [e._asdict() for e in moves if group in (e.held_back, *levels_above(e.held_back))],
        "receives": [e._asdict() for e in moves if group in (e.helped, *levels_above(e.helped))],
    }
    return _decided_page("group", group, explained, otherwise, data)


def node_page(
    explained: Explained,
    node: NodeRecord,
    otherwise: Otherwise,
    since: Optional[int] = None,
    words: Optional[NodeWords] = None,
) -> Page:
    """Page of a node; ``words`` are its own, now."""
    record, target = explained.record, node.target
    lost_hs06, gained_hs06 = power_moved_hs06(target, node) if target else (0.0, 0.0)
    overruled = otherwise.note == decisions.OVERRULED
    data = {
        **{key: value for key, value in asdict(node).items() if key not in _ESTIMATES},
        "held": [held._asdict() for held in by_size(node.held)],
        "idle_cores": node.idle_cores,
        "reason": _coded("node", node.reason),
        "plan_reason": _coded("plan", record.reason),
        "since": since,
        "lost_hs06": lost_hs06,
        "gained_hs06": gained_hs06,
        "says": words
        and {
            **fields(words, "obeyed_sequence", "problem", "opens_at"),
            "refusal": _coded("job_ctl", None if words.refusal in QUIET else words.refusal),
            "switched_off": [{"code": code, "says": SWITCHES[code]} for code in words.switched_off],
        },
    }
    return _decided_page(
        "node",
        node.node,
        explained,
        otherwise,
        data,
        would_be=overruled and target_on(explained.decision, node.node),
        held=sorted(by_size(node.held), key=lambda held: (-held.jobs * held.cores, held)),
    )


def cycle_page(
    record: CycleRecord,
    before: Optional[CycleRecord],
    explained: Optional[Explained],
    otherwise: Optional[Otherwise],
) -> Page:
    """Page of a cycle, beside the complete one before; without ``otherwise`` it has no plan."""
    changed = before is not None and before.configuration != record.configuration
    diff, targets = None, decisions.targets_of(record)
    if before is not None and record.nodes:
        nodes = {node.node: node for node in record.nodes}
        diff = plan_diff(decisions.targets_of(before), targets, nodes)
    reasons = Counter(sorted(node.reason for node in record.nodes if node.reason is not None))
    data = {
        "cycle": record.number or None,
        **fields(record, "taken_at", "seconds", "complete", "observed"),
        "sources": [asdict(source) for source in record.sources],
        **fields(record, "problems", "configuration"),
        "configuration_changed": changed,
        "strategy": _coded("strategy", record.strategy),
        "setpoint": _coded("setpoint", record.setpoint),
        "reason": _coded("plan", record.reason),
        **fields(record, "sequence", "published"),
        "targets": [asdict(target) for target in targets],
        "exchanges": [exchange._asdict() for exchange in decisions.exchanges(record)],
        "limits": _limits(record),
        "groups": [_control(control) for control in record.groups],
        "nodes": len(record.nodes),
        "node_reasons": [
            {"code": code, "says": says("node", code), "nodes": nodes}
            for code, nodes in reasons.most_common()
        ],
        "idle_cores": record.idle_cores if record.complete else None,
        **fields(record, "present_hs06", "shortfall_hs06"),
        **fields(record, "idle_target_cores", "idle_grace_cores"),
        "before": {"cycle": before.number, "taken_at": before.taken_at} if before else None,
        "changes": changes_data(diff) if diff else None,
        "agrees": explained.agrees if explained else None,
        **_changes(otherwise),
    }
    slowest = sorted(record.sources, key=lambda source: -source.seconds)
    return _page(
        "cycle",
        f"cycle {record.number}: {shown(record.taken_at)}, took {record.seconds:.1f} s",
        data,
        otherwise,
        answered=[f"{source.name} {source.seconds:.2f} s" for source in slowest],
        by_error=sorted(data["groups"], key=lambda group: -abs(group["control_error_hs06"])),
    )


def _control(control: GroupControl) -> dict[str, Any]:
    withheld = {"no-demand", "no-claimant"}.intersection(control.acted)
    return {
        "group": control.group,
        "pledge_hs06": control.error.pledge_hs06,
        "power_hs06": control.error.usage.power_hs06,
        "error_hs06": control.error.error_hs06,
        **fields(control, "setpoint_hs06", "control_error_hs06", "due_hs06", "shortfall_hs06"),
        # The law gets no error that nobody is to collect later.
        "given_hs06": 0.0 if withheld else control.control_error_hs06,
        "output_hs06": control.output_hs06,
        "law": _coded("law", control.law),
        "shadow": asdict(control.shadow) if control.shadow else None,
        "acted": [_coded("acted", code) for code in control.acted],
    }


class JobReasons(NamedTuple):
    """Reasons of a job that waits, or is held."""

    verdict: Optional[Mapping[str, Any]] = None
    """Of `sharectl.explain.job.verdict`; None for the problem."""
    problem: Optional[str] = None
    group: Optional[str] = None
    """Configured group, or ``other``."""
    order: Optional[Mapping[str, Any]] = None
    """Of `sharectl.explain.turn.turn`; None without a verdict, as is the prospect."""
    prospect: Optional[Prospect] = None

    @property
    def over(self) -> str:
        """By how much its group is over its share or quota, in words; empty if it is not."""
        by_ledger = self.prospect.over if self.prospect else ""
        return by_ledger or (over_quota(self.order) if self.order else "")


NO_REASONS = JobReasons()


def job_page(
    job: str, now: int, code: str, facts: Optional[Facts] = None, why: JobReasons = NO_REASONS
) -> Page:
    """Page of a job at Unix time ``now``, with a code of `VERDICTS`."""
    verdict, order = why.verdict, why.order
    data: dict[str, Any] = {
        "job": job,
        "now": now,
        "code": code,
        "says": VERDICTS[code],
        "access_point": facts,
        "problem": why.problem,
        "nodes": verdict,
        "group": why.group,
        "negotiator": order,
        "ledger": asdict(why.prospect) if why.prospect else None,
    }
    if facts is None:
        return Page("job", f"job {job}: {code}: {VERDICTS[code]}", (), data)
    rows = verdict or {"code": None, "never": (), "obstacles": ()}
    changes = rows["never" if rows["code"] == COULD_NEVER else "obstacles"]
    remedies = [f"{row['code']}: {row['remedy']}" for row in changes]
    if order and order["cause"]:
        remedies.insert(0, f"{order['cause']['code']}: {order['cause']['remedy']}")
    text = render(
        "explain_job.txt",
        why=data,
        units=UNITS,
        surplus=SURPLUS,
        over=why.over,
        remedies=list(dict.fromkeys(remedies)),
    )
    owner = f", {facts['owner']}" if facts["owner"] else ""
    account = facts["accounting_group"] or "no accounting group"
    if facts["accounting_user"] not in (None, facts["owner"]):
        account += f" (user {facts['accounting_user']})"
    title = f"job {job} of {facts['schedd']}{owner}, {account}"
    return Page("job", title, rows_of(text), data)


def _decided_page(
    subject: str,
    name: str,
    explained: Explained,
    otherwise: Otherwise,
    data: Mapping[str, Any],
    **more: object,
) -> Page:
    """Page of a group or a node; ``more`` is for its rows alone."""
    record = explained.record
    cycle = f"cycle {record.number}, " if record.number else ""
    title = f"{subject} {name}: {cycle}{shown(record.taken_at)}, from {explained.source}"
    origin = {
        "source": explained.source,
        "cycle": record.number or None,
        **fields(record, "taken_at", "sequence", "observed"),
        "agrees": explained.agrees,
    }
    decided = {"limits": _limits(record), **_changes(otherwise)}
    plan = _coded("plan", record.reason)
    return _page(subject, title, {**origin, **data, **decided}, otherwise, plan=plan, **more)


def _page(
    subject: str,
    title: str,
    data: Mapping[str, Any],
    otherwise: Optional[Otherwise],
    **more: object,
) -> Page:
    note = otherwise.note if otherwise else ""
    text = render("explain.txt", subject=subject, why=data, note=note, **more)
    return Page(subject, title, rows_of(text), data)


def rows_of(text: str) -> list[tuple[str, str]]:
    """Rows of lines ``label|text``."""
    rows = (line.partition("|") for line in text.splitlines() if line)
    return [(label, words) for label, _, words in rows]


def _coded(family: str, code: Optional[str]) -> Optional[dict[str, str]]:
    """A code with its sentence."""
    return None if code is None else {"code": code, "says": says(family, code)}


def fields(record: object, *names: str) -> dict[str, Any]:
    """Attributes of a record by name."""
    return {name: getattr(record, name) for name in names}


def _limits(record: CycleRecord) -> list[dict[str, Any]]:
    return [{**asdict(note), "says": says("limit", note.code)} for note in record.limits]


def _changes(otherwise: Optional[Otherwise]) -> dict[str, Any]:
    if otherwise is None:
        return dict.fromkeys(("decided_again", "would_change"))
    changes = [{**flip._asdict(), "says": says("what-if", flip.code)} for flip in otherwise.flips]
    return {"decided_again": otherwise.outcome, "would_change": changes}
