"""``sharectl cycle``."""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, Optional

from sharectl import __version__
from sharectl.cli import options, wiring
from sharectl.config.files import refuse_clashes
from sharectl.config.laws import policy_digests
from sharectl.config.load import steering_of
from sharectl.config.model import OBSERVE, Config
from sharectl.config.text import as_data
from sharectl.cycle.cycle import Circumstances, CycleResult, run_cycle
from sharectl.cycle.publication import Failures, Publication
from sharectl.errors import PoolUnavailableError, StateError
from sharectl.files import files
from sharectl.files.documents import Content
from sharectl.model import Plan
from sharectl.plan.nodes import STALE
from sharectl.plan.plan import FOREIGN, REASONS, State
from sharectl.plan.records import CycleRecord
from sharectl.publish import text
from sharectl.report import as_json
from sharectl.report.pool import disabled_words, unanswered_words
from sharectl.words import counted

_DECIDES = ("groups", "nodes", "control", "pool", "pledges", "validity_seconds")
"""Parts of the configuration that decide."""
_DIGEST_DIGITS = 12

_EPILOG = """\
Warnings are printed when they are new, and in each cycle on a terminal; `sharectl status` has those
of the last cycle. In the journal each line has its priority: problems err, warnings warning, the
cycle itself info."""


def _cycle(arguments: argparse.Namespace) -> int:
    """Run one cycle; 0 only if the whole pool answered and everything was written.

    The million objects of a large pool last until the end: to look for rings of garbage among them
    takes a sixth of the time.
    """
    gc.disable()
    try:
        return _run(arguments)
    finally:
        gc.enable()


def _run(arguments: argparse.Namespace) -> int:
    config, dry_run = options.config_of(arguments), arguments.dry_run
    if not dry_run:
        refuse_clashes(config, arguments.config)
    ports = wiring.ports_of(config)
    with contextlib.nullcontext() if dry_run else wiring.lock_of(config):
        now, began = int(time.time()), time.monotonic()
        pledged = wiring.pledges_of(config, keep=not dry_run).resolve(now)
        how = Circumstances(
            withdraw_incomplete=config.control.incomplete == "withdraw",
            dry_run=dry_run,
            elapsed=lambda: time.monotonic() - began,
            configuration=digest_of(config),
            pledges=pledged if config.pledges.source != "yaml" else None,
        )
        result = run_cycle(wiring.plan_config(config, pledged), ports, now, how)
        record = _record(config.mode, result, time.monotonic() - began)
        warnings = list(result.warnings)
        if not dry_run:
            warnings = _tell_monitoring(config, record, result)
    plan = result.publication.plan
    if dry_run and plan is not None and not arguments.json:
        _print_proposal(config, result.publication, plan)
    else:
        options.show(arguments, "cycle", record, [_line(result, record)])
    options.say_warnings(warnings)
    if result.publication.enabled_again is not None:
        words = disabled_words(result.publication.enabled_again)
        options.say([f"enabled again, the time is over: was disabled {words}"], options.NOTICE)
    options.say(result.problems)
    if not result.snapshot.complete:
        return PoolUnavailableError.exit_code
    errors = result.publication.errors
    is_all = set(result.problems) == set(Failures(errors).messages)
    kind = Failures(errors).kind if is_all else StateError
    return kind.exit_code if result.problems else 0


def _print_proposal(config: Config, done: Publication, plan: Plan) -> None:
    """Print the plan of a dry run as `sharectl.txt`, and what keeps it from being published."""
    print(text.render(plan, wiring.seal_of(config)), end="")
    options.say_limits(plan)
    lines = []
    if config.mode == OBSERVE:
        lines.append("a cycle would not publish this, because of mode: observe")
    if done.disabled is not None:
        lines.append(f"not published now: disabled {disabled_words(done.disabled)}")
    options.say(lines, options.NOTICE)


def digest_of(config: Config) -> str:
    """First digits of the SHA-256 of all that decides: parts of the configuration, and policies."""
    decides = {name: part for name, part in as_data(config).items() if name in _DECIDES}
    if policies := policy_digests(steering_of(config)):
        decides["policies"] = policies
    text = json.dumps(decides, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]


def new_warnings(warnings: Iterable[str], before: Iterable[object]) -> list[str]:
    """Warnings that differ from all of ``before`` in more than numbers."""
    earlier = {_without_numbers(str(warning)) for warning in before}
    return [warning for warning in warnings if _without_numbers(warning) not in earlier]


def _without_numbers(warning: str) -> str:
    return re.sub(r"\d[\d.,]*", "#", warning)


def _tell_monitoring(config: Config, record: dict[str, Any], result: CycleResult) -> list[str]:
    """Write the metrics, and keep the record for ``status``; returns the warnings to print.

    Failures are printed, no more.
    """
    store, failures = wiring.state_of(config), Failures()
    state, before = State(), Content()
    with failures:
        state, before = store.load(), store.last_cycle()
    warnings = list(result.warnings)
    succeeded_at = before.get("succeeded_at") if result.problems else result.snapshot.taken_at
    record["succeeded_at"] = succeeded_at if isinstance(succeeded_at, int) else None
    if config.metrics.textfile is not None:
        try:
            _write_metrics(config.metrics.textfile, config, record, result, state)
        except (StateError, ValueError, ImportError) as error:
            record["metrics_problem"] = f"metrics.textfile: {error}"
    if config.report.file is not None:
        record["report_problem"] = _report_problem(config, result.snapshot.taken_at)
    warnings += filter(None, (record["metrics_problem"], record["report_problem"]))
    with failures:
        store.note_cycle(dict(record))
    options.say(message for message in failures.messages if message not in result.problems)
    if sys.stderr.isatty():
        return warnings
    earlier = before.get("warnings")
    earlier = earlier if isinstance(earlier, list) else []
    problems = (before.get("metrics_problem"), before.get("report_problem"))
    return new_warnings(warnings, (*earlier, *problems))


def _write_metrics(
    path: Path,
    config: Config,
    record: Mapping[str, Any],
    result: CycleResult,
    state: State,
) -> None:
    from sharectl.report.metrics import BEGIN, CycleFacts, metrics_text

    done = result.publication
    if result.record is None:
        return
    facts = CycleFacts(
        record=result.record,
        snapshot=result.snapshot,
        seconds=record["seconds"],
        version=__version__,
        pool=config.pool.name,
        observes=config.mode == OBSERVE,
        disabled=done.disabled is not None,
        places=len(done.places),
        failed_places=len(config.publish) - len(done.places) if done.plan else 0,
        valid_until=0 if state.observed else state.standing_until,
        succeeded_at=record["succeeded_at"],
    )
    files.refuse_foreign(path, BEGIN, "file of sharectl's metrics")
    files.replace(path, [metrics_text(facts)])


def _report_problem(config: Config, now: int) -> Optional[str]:
    """Write the page; returns why that failed, or None."""
    from sharectl.cli.report import renew

    try:
        renew(config, now)
    except Exception as error:  # noqa: BLE001 - the plan is out: no page may end a cycle
        return f"report.file: {error}"
    return None


def _record(mode: str, result: CycleResult, seconds: float) -> dict[str, Any]:
    """JSON of the cycle, which is printed, and kept for ``status``."""
    snapshot, done, record = result.snapshot, result.publication, result.record
    idle: Optional[dict[str, Optional[int]]] = None
    if record is not None and record.idle_target_cores is not None:
        idle = {
            "all": record.idle_cores,
            "target": record.idle_target_cores,
            "grace": record.idle_grace_cores,
        }
    return {
        "mode": mode,
        "taken_at": snapshot.taken_at,
        "seconds": round(seconds, 3),
        "complete": snapshot.complete,
        "unanswered": [source.name for source in snapshot.problems],
        "problems": list(result.problems),
        "warnings": list(result.warnings),
        "published": list(done.places),
        "errors": as_json.errors(snapshot.taken_at, result.errors)["groups"],
        "controllers": [
            {
                "group": control.group,
                "setpoint_hs06": control.setpoint_hs06,
                "control_error_hs06": control.control_error_hs06,
                "output_hs06": control.output_hs06,
                "due_hs06": control.due_hs06,
                "shortfall_hs06": control.shortfall_hs06,
                "law": control.law,
                "shadow": asdict(control.shadow) if control.shadow else None,
            }
            for control in (record.groups if record is not None else ())
        ],
        "present_hs06": record.present_hs06 if record is not None else None,
        "shortfall_hs06": record.shortfall_hs06 if record is not None else None,
        "waits": [asdict(waits) for waits in snapshot.waits],
        "groups": as_json.group_reasons(record) if record is not None else [],
        "plan": as_json.plan(done.plan) if done.plan else None,
        "planned_targets": len(result.planned.targets) if result.planned else None,
        "disabled": asdict(done.disabled) if done.disabled else None,
        "idle_cores": idle,
        "nodes": _nodes(record) if record is not None and record.complete else None,
        "succeeded_at": None,
        "metrics_problem": None,
        "report_problem": None,
    }


def _nodes(record: CycleRecord) -> dict[str, int]:
    """Numbers of nodes by what they did about targets."""
    reasons = [node.reason for node in record.nodes]
    return {
        "controlled": sum(node.controlled for node in record.nodes),
        "target": record.steered_nodes,
        "not_obeying": reasons.count("not-obeying"),
        "refused": reasons.count("refused") + reasons.count(STALE),
    }


def _line(result: CycleResult, record: Mapping[str, Any]) -> str:
    """One line of key=value for the journal."""
    done = result.publication
    plan = done.plan
    pairs = Counter((target.held_back, target.helped) for target in (plan.targets if plan else ()))
    fields = {
        "mode": record["mode"],
        "complete": str(result.snapshot.complete).lower(),
        "disabled": str(record["disabled"] is not None).lower(),
        "sequence": plan and plan.sequence,
        "targets": len(plan.targets) if plan else "unchanged",
        "held_back": plan and plan.held_back,
        "helped": plan and plan.helped,
        "pairs": ",".join(
            f"{over}>{under}:{nodes}" for (over, under), nodes in sorted(pairs.items())
        ),
        "limits": plan and ",".join(f"{note.code}:{note.nodes}" for note in plan.limits),
        "seconds": record["seconds"],
        "published": ",".join(done.places),
        **({"left": ",".join(done.emptied)} if done.emptied else {}),
        "reason": f'"{_reason(result)}"',
    }
    return " ".join(f"{name}={value or '-'}" for name, value in fields.items())


def _reason(result: CycleResult) -> str:
    done = result.publication
    if result.record is not None and result.record.observed:
        planned = result.planned
        words = "the pool did not answer completely"
        if planned is not None:
            words = f"would have published {counted(len(planned.targets), 'target')}"
        return f"observe: {words}; nothing is steered"
    if done.disabled is not None:
        return f"disabled {disabled_words(done.disabled)}".replace('"', "'")
    if done.is_left:
        return REASONS[FOREIGN]
    if result.snapshot.complete and done.plan:
        return REASONS[done.plan.reason]
    words = unanswered_words([source.name for source in result.snapshot.problems])
    return f"{words}: targets were withdrawn" if done.plan else words


VERBS = {
    "cycle": options.Verb(_cycle, shared=(*options.COMMON, "--dry-run"), epilog=_EPILOG),
}
