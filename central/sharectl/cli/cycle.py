"""``sharectl cycle``."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections import Counter
from dataclasses import asdict
from typing import Any, Optional

from sharectl.cli import wiring
from sharectl.cli.plan import say_limits, say_warnings
from sharectl.cli.wiring import outlets_of, state_of
from sharectl.config.files import refuse_clashes
from sharectl.config.model import Config
from sharectl.config.text import as_data
from sharectl.cycle.cycle import Circumstances, CycleResult, Ports, run_cycle
from sharectl.errors import PoolUnavailableError, StateError
from sharectl.files.files import only_one
from sharectl.ledger.ledger import PLACE, Keep, Ledger
from sharectl.ledger.logs import Histories, HistoryFiles
from sharectl.plan.plan import REASONS
from sharectl.publish.audit import digest
from sharectl.publish.state import StateFile
from sharectl.publish.text import render
from sharectl.report import as_json
from sharectl.report.pool import disabled_words, unanswered_words

_DECIDES = ("groups", "nodes", "control", "pool", "pledges", "validity_seconds")
_DIGEST_DIGITS = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    wiring.add_common(parser)
    wiring.add_dry_run(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run one cycle; 0 only if the whole pool answered and everything was written."""
    config = wiring.config_of(arguments)
    if not arguments.dry_run:
        refuse_clashes(config, arguments.config)
    ports = ports_of(config)
    with contextlib.ExitStack() as stack:
        if not arguments.dry_run:
            stack.enter_context(only_one(config.state_directory / "lock", config.lock_wait_seconds))
        now, began = int(time.time()), time.monotonic()
        pledged = wiring.pledges_of(config, keep=not arguments.dry_run).resolve(now)
        result = run_cycle(
            wiring.plan_config(config, pledged),
            ports,
            now,
            Circumstances(
                withdraw_incomplete=config.control.incomplete == "withdraw",
                dry_run=arguments.dry_run,
                elapsed=lambda: time.monotonic() - began,
                configuration=digest_of(config),
                pledges=pledged if config.pledges.source != "yaml" else None,
            ),
        )
        record = _record(result, time.monotonic() - began)
        if not arguments.dry_run:
            _note(state_of(config), record, result)
    if arguments.json:
        print(as_json.dumps("cycle", record))
    elif arguments.dry_run and result.plan is not None:
        print(render(result.plan, wiring.seal_of(config)), end="")
        say_limits(result.plan)
        if result.disabled is not None:
            print(
                f"sharectl: not published now: disabled {disabled_words(result.disabled)}",
                file=sys.stderr,
            )
    else:
        print(_line(result, record))
    say_warnings(result.warnings)
    return _exit_code(result)


def ports_of(config: Config) -> Ports:
    """The world of a cycle, as the configuration says it."""
    history, outlets = config.history, outlets_of(config, "cycle")
    return Ports(
        publishers=outlets.publishers,
        state=outlets.state,
        switch=outlets.switch,
        audit=outlets.audit,
        left=outlets.left,
        pool=wiring.pool_of(config),
        history=Histories(
            HistoryFiles(
                history.jobs_file,
                history.errors_log,
                history.errors_log_max_bytes,
                history.errors_log_keep,
            ),
            ledger_of(config),
        ),
    )


def ledger_of(config: Config) -> Ledger:
    """The ledger of every cycle."""
    return Ledger(
        config.state_directory / PLACE, Keep(config.ledger.keep_days, config.ledger.max_bytes)
    )


def digest_of(config: Config) -> str:
    """First digits of the SHA-256 of what decides: not of where files lie and how plans travel."""
    content = as_data(config)
    decides = {name: part for name, part in content.items() if name in _DECIDES}
    return digest(decides)[:_DIGEST_DIGITS]


def _record(result: CycleResult, seconds: float) -> dict[str, Any]:
    """What is printed, kept for ``status``, and logged: made from the plan that was published."""
    return {
        "taken_at": result.snapshot.taken_at,
        "seconds": round(seconds, 3),
        "complete": result.snapshot.complete,
        "unanswered": [source.name for source in result.snapshot.problems],
        "problems": list(result.problems),
        "warnings": list(result.warnings),
        "published": list(result.published),
        "errors": as_json.errors(result.snapshot.taken_at, result.errors)["groups"],
        "controllers": _controllers(result),
        "waits": as_json.waits(result.snapshot.waits),
        "groups": as_json.group_reasons(result.record) if result.record is not None else [],
        "plan": as_json.plan(result.plan) if result.plan else None,
        "disabled": asdict(result.disabled) if result.disabled else None,
        "idle_cores": _idle_cores(result),
    }


def _idle_cores(result: CycleResult) -> Optional[dict[str, Optional[int]]]:
    record = result.record
    if record is None or record.idle_target_cores is None:
        return None
    return {
        "all": record.idle_cores,
        "target": record.idle_target_cores,
        "grace": record.idle_grace_cores,
    }


def _controllers(result: CycleResult) -> list[dict[str, Any]]:
    groups = result.record.groups if result.record is not None else ()
    return [
        {
            "group": control.group,
            "setpoint_hs06": control.setpoint_hs06,
            "control_error_hs06": control.control_error_hs06,
            "output_hs06": control.output_hs06,
        }
        for control in groups
    ]


def _note(store: StateFile, record: dict[str, Any], result: CycleResult) -> None:
    try:
        store.note_cycle(record)
    except StateError as error:
        if str(error) not in result.problems:
            print(f"sharectl: {error}", file=sys.stderr)


def _line(result: CycleResult, record: dict[str, Any]) -> str:
    """One line of key=value for the journal."""
    plan = record["plan"]
    fields = {
        "complete": str(record["complete"]).lower(),
        "disabled": str(result.disabled is not None).lower(),
        "sequence": plan["sequence"] if plan else "-",
        "targets": len(plan["targets"]) if plan else "unchanged",
        "held_back": (plan and plan["held_back"]) or "-",
        "helped": (plan and plan["helped"]) or "-",
        "pairs": _pairs(result),
        "limits": ",".join(f"{note.code}:{note.nodes}" for note in result.plan.limits)
        if result.plan
        else "",
        "seconds": record["seconds"],
        "published": ",".join(record["published"]) or "-",
        **({"left": ",".join(result.left)} if result.left else {}),
        "reason": f'"{_reason(result)}"',
    }
    return " ".join(f"{name}={value or '-'}" for name, value in fields.items())


def _pairs(result: CycleResult) -> str:
    """Who gives to whom, on how many nodes: ``alice>cms:12,alice>lhcb:3``."""
    targets = result.plan.targets if result.plan else ()
    nodes = Counter((target.held_back, target.helped) for target in targets)
    return ",".join(f"{over}>{under}:{number}" for (over, under), number in sorted(nodes.items()))


def _reason(result: CycleResult) -> str:
    if result.disabled is not None:
        return f"disabled {disabled_words(result.disabled)}".replace('"', "'")
    if result.snapshot.complete and result.plan:
        return REASONS[result.plan.reason]
    said = unanswered_words([source.name for source in result.snapshot.problems])
    return f"{said}: targets were withdrawn" if result.plan else said


def _exit_code(result: CycleResult) -> int:
    if result.enabled_again is not None:
        said = disabled_words(result.enabled_again)
        print(f"sharectl: enabled again, the time is over: was disabled {said}", file=sys.stderr)
    for problem in result.problems:
        print(f"sharectl: {problem}", file=sys.stderr)
    if not result.snapshot.complete:
        return PoolUnavailableError.exit_code
    return StateError.exit_code if result.problems else 0
