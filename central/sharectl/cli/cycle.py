"""``sharectl cycle``, ``disable`` and ``enable``: what publishes targets and withdraws them."""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from itertools import chain
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
from sharectl.cycle.ports import Outlets
from sharectl.cycle.publication import Failures, Publication, Publishing, in_force, load_state
from sharectl.errors import ConfigError, LockedError, PoolUnavailableError, StateError
from sharectl.files import files
from sharectl.files.documents import Content
from sharectl.files.files import only_one
from sharectl.model import Disabled, Plan
from sharectl.plan.nodes import STALE
from sharectl.plan.plan import FOREIGN, REASONS, State
from sharectl.plan.records import CycleRecord
from sharectl.publish import text
from sharectl.publish.audit import who_runs
from sharectl.publish.disabled_file import MAX_REASON
from sharectl.report import as_json
from sharectl.report.pool import disabled_words, unanswered_words
from sharectl.times import parse_span
from sharectl.words import counted

_DECIDES = ("groups", "nodes", "control", "pool", "pledges", "validity_seconds")
"""Parts of the configuration that decide."""
_DIGEST_DIGITS = 12
_CONTROLLER = (
    *("group", "setpoint_hs06", "control_error_hs06", "output_hs06", "due_hs06"),
    *("shortfall_hs06", "law"),
)
"""Attributes of a group's controller that the document of a cycle has."""

_EPILOG = """\
Warnings are printed when they are new, and in each cycle on a terminal; `sharectl status` has those
of the last cycle. In the journal each line has its priority: problems err, warnings warning, the
cycle itself info."""

MAX_FOR_SECONDS = 366 * 86400
_INSTEAD = (
    "so NOT disabled: the switch is not set and no target is withdrawn. Mend the file and disable "
    "again. No cycle runs with it, so that targets run out within validity_seconds; to be rid of "
    "them now, remove what publish: names, or on nodes: touch /etc/sharectl/disabled"
)
_DISABLE_EPILOG = (
    "Targets are withdrawn at once, by every transport that is configured, whether or not the pool "
    "answers. Where this command cannot run, `touch disabled` in state_directory does the same at "
    "the next cycle. Nodes: /etc/sharectl/disabled, or SHARECTL_ENABLED = False."
)


def _add(parser: argparse.ArgumentParser) -> None:
    words = "write nothing; print what a real run would publish"
    parser.add_argument("--dry-run", action="store_true", help=words)


def _cycle(arguments: argparse.Namespace) -> int:
    # A large pool's million objects last until the end: to look for rings of garbage among them
    # takes a sixth of the time.
    gc.disable()
    try:
        return _run(arguments)
    finally:
        gc.enable()


def _run(arguments: argparse.Namespace) -> int:
    """Run one cycle; 0 only if the whole pool answered and everything was written."""
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
    if config.mode == OBSERVE:
        options.say(["a cycle would not publish this, because of mode: observe"], options.NOTICE)
    if done.disabled is not None:
        words = f"not published now: disabled {disabled_words(done.disabled)}"
        options.say([words], options.NOTICE)


def digest_of(config: Config) -> str:
    """First digits of the SHA-256 of all that decides: parts of the configuration, and policies."""
    decides = {name: part for name, part in as_data(config).items() if name in _DECIDES}
    if policies := policy_digests(steering_of(config)):
        decides["policies"] = policies
    text = json.dumps(decides, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]


def new_warnings(warnings: Iterable[str], before: Iterable[object]) -> list[str]:
    """Warnings that differ from all of ``before`` in more than numbers."""
    without_numbers = partial(re.compile(r"\d[\d.,]*").sub, "#")
    earlier = {without_numbers(str(warning)) for warning in before}
    return [warning for warning in warnings if without_numbers(warning) not in earlier]


def _tell_monitoring(config: Config, record: dict[str, Any], result: CycleResult) -> list[str]:
    """Write metrics and page, and keep the record for ``status``; returns the warnings to print."""
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
            record["unwritten"].append(f"metrics.textfile: {error}")
    if config.report.file is not None:
        from sharectl.cli.report import renew

        try:
            renew(config, result.snapshot.taken_at)
        except Exception as error:  # noqa: BLE001 - the plan is out: no page may end a cycle
            record["unwritten"].append(f"report.file: {error}")
    warnings += record["unwritten"]
    with failures:
        store.note_cycle(dict(record))
    options.say(message for message in failures.messages if message not in result.problems)
    if sys.stderr.isatty():
        return warnings
    earlier = (before.get(name) for name in ("warnings", "unwritten"))
    return new_warnings(warnings, chain.from_iterable(e for e in earlier if isinstance(e, list)))


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


def _record(mode: str, result: CycleResult, seconds: float) -> dict[str, Any]:
    """JSON of the cycle, which is printed, and kept for ``status``."""
    snapshot, done, record = result.snapshot, result.publication, result.record
    idle: Optional[dict[str, Optional[int]]] = None
    if record is not None and record.idle_target_cores is not None:
        target, grace = record.idle_target_cores, record.idle_grace_cores
        idle = {"all": record.idle_cores, "target": target, "grace": grace}
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
                **{name: getattr(control, name) for name in _CONTROLLER},
                "shadow": asdict(control.shadow) if control.shadow else None,
            }
            for control in (record.groups if record is not None else ())
        ],
        "present_hs06": record.present_hs06 if record is not None else None,
        "shortfall_hs06": record.shortfall_hs06 if record is not None else None,
        "waits": [asdict(waits) for waits in snapshot.waits],
        "groups": as_json.group_reasons(record) if record is not None else [],
        "reason": record.reason if record is not None else None,
        "plan": asdict(done.plan) if done.plan else None,
        "planned_targets": len(result.planned.targets) if result.planned else None,
        "disabled": asdict(done.disabled) if done.disabled else None,
        "idle_cores": idle,
        "nodes": _nodes(record) if record is not None and record.complete else None,
        "succeeded_at": None,
        "unwritten": [],
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


# ---- disable and enable


def _add_disable(parser: argparse.ArgumentParser) -> None:
    why = "why: status and the audit tell it"
    parser.add_argument("--reason", required=True, type=_reason_text, metavar="TEXT", help=why)
    parser.add_argument(
        "--for",
        dest="for_seconds",
        type=_duration,
        metavar="TIME",
        help="such as 30s, 10m, 2h or 7d; the first cycle after it publishes again (default: until "
        "`sharectl enable`)",
    )


def _enable(arguments: argparse.Namespace) -> int:
    config = options.config_of(arguments)
    switch, failures = wiring.switch_of(config), Failures()
    was, reply = switch.disabled(), "sharectl was not disabled"
    switch.enable()
    if was is not None:
        with failures:
            wiring.audit_of(config, "enable").switched(was, int(time.time()), on=True)
        effect = "the next cycle publishes targets again"
        if config.mode == OBSERVE:
            effect = "no cycle publishes targets yet: mode: observe"
        reply = f"enabled: {effect}; was disabled {disabled_words(was)}"
    options.show(arguments, "enabled", {"was": asdict(was) if was else None}, [reply])
    if failures.errors:
        raise failures.kind(*failures.messages)
    return 0


def _disable(arguments: argparse.Namespace) -> int:
    """0 only if every transport took the withdrawal."""
    try:
        config = options.config_of(arguments)
    except ConfigError as error:
        raise ConfigError([*error.problems, f"{arguments.config}: {_INSTEAD}"]) from error
    now = int(time.time())
    until = None if arguments.for_seconds is None else now + arguments.for_seconds
    off = Disabled(arguments.reason, who_runs("disable", os.environ).name, now, until)
    switch, failures = wiring.switch_of(config), Failures()
    was = in_force(switch.disabled(), now)
    # The switch first: from then on a cycle withdraws what it publishes, whoever has the lock.
    is_set, in_file = False, off
    with failures:
        unkept = switch.disable(off)
        is_set = True
        if unkept is not None:
            failures.errors.append(unkept)
            in_file = switch.disabled() or off
        wiring.audit_of(config, "disable").switched(off, now, on=False)
    outlets = wiring.outlets_of(config, "disable", withdraws=True)
    try:
        refuse_clashes(config, arguments.config)
    except ConfigError as error:
        failures.errors.append(StateError(*error.problems))
        outlets = replace(outlets, publishers=())
    done, locked = _withdrawn(config, off, outlets)
    failures.errors += done.errors
    problems = list(failures.messages)
    effect = f"targets are withdrawn once{'' if done.everywhere else ', and not everywhere'}"
    unset = f"the switch could not be set; {effect if done.places else 'no target is withdrawn'}"
    if not is_set:
        problems.append(
            f"{unset}; cycles go on publishing unless it was set before: {_stop(config)}"
        )
    places = [*done.places, *done.emptied]
    content = {
        "disabled": asdict(in_file) if is_set else None,
        "was": asdict(was) if was else None,
        "published": places,
        "problems": problems,
    }
    reply = f"disabled {disabled_words(in_file)}" if is_set else f"NOT disabled: {unset}"
    lines = [reply, *(f"no targets at {place}" for place in places)]
    from sharectl.config.advice import unit_of

    # The drop-in for two central managers.
    if "negotiator.conf" in unit_of(settings=("LoadState", "DropInPaths")).get("DropInPaths", ""):
        lines.append(
            "the other central manager is NOT disabled unless it shares "
            f"{config.state_directory}: run `sharectl disable` there too"
        )
    options.show(arguments, "disabled", content, lines)
    if failures.errors:
        if is_set:
            problems.append("sharectl is disabled all the same: cycles here publish no targets")
        raise failures.kind(*problems)
    if locked is not None:
        options.say([f"{locked}; it withdraws what it publishes"])
        return LockedError.exit_code
    return 0


def _withdrawn(
    config: Config, off: Disabled, outlets: Outlets
) -> tuple[Publication, Optional[LockedError]]:
    """Withdraw all targets; also returned is the reason if that was done without the lock."""
    law, failures = wiring.plan_config(config, wiring.UNASKED, withdraws=True), Failures()
    done, locked = Publication(), None
    for wait_seconds in (0.0, config.lock_wait_seconds):
        publishing = Publishing(law, outlets, int(time.time()))
        with failures:
            try:
                with only_one(config.state_directory / "lock", wait_seconds):
                    before, errors = load_state(outlets.state, publishing.now)
                    done = publishing.withdraw(off, before)
                    return replace(done, errors=(*failures.errors, *errors, *done.errors)), None
            except LockedError as error:
                locked = error
        # Targets go before anybody waits for a cycle that hangs.
        if not done.places:
            done = publishing.withdraw_unlocked(off)
            failures.errors += done.errors
    return replace(done, errors=tuple(failures.errors)), locked


def _stop(config: Config) -> str:
    """Way off without the switch: commands that need neither room nor sharectl."""
    ways = [way.file or (way.https.file if way.https else None) for way in config.publish]
    here = " ".join(shlex.quote(str(file)) for file in ways if file)
    as_whom = "" if os.geteuid() == 0 else "run this as root or the user of the service, or "
    return f"{as_whom}`systemctl stop sharectl.timer`{f', and `rm {here}`' if here else ''}"


def _reason_text(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > MAX_REASON:
        raise ValueError(f"write one line of 1 to {MAX_REASON} characters that can be seen")
    return text


def _duration(text: str) -> int:
    seconds = parse_span(text) or 0
    if not 1 <= seconds <= MAX_FOR_SECONDS:
        raise ValueError(f"{text!r}: write a time from 1s to 366d, such as 30s, 10m, 2h or 7d")
    return seconds


VERBS = {
    "cycle": options.Verb(_cycle, _add, epilog=_EPILOG),
    "disable": options.Verb(_disable, _add_disable, epilog=_DISABLE_EPILOG),
    "enable": options.Verb(_enable, epilog="The next cycle publishes targets again."),
}
