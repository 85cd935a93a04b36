"""``sharectl disable`` and ``sharectl enable``."""

from __future__ import annotations

import argparse
import os
import shlex
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Optional

from sharectl.cli import options, wiring
from sharectl.config.advice import unit_of
from sharectl.config.files import refuse_clashes
from sharectl.config.model import OBSERVE, Config
from sharectl.cycle.ports import Outlets
from sharectl.cycle.publication import Failures, Publication, Publishing, in_force, load_state
from sharectl.errors import ConfigError, LockedError, StateError
from sharectl.files.files import only_one
from sharectl.model import Disabled
from sharectl.publish.audit import who_runs
from sharectl.publish.disabled_file import MAX_REASON
from sharectl.report.pool import disabled_words
from sharectl.times import parse_span

MAX_FOR_SECONDS = 366 * 86400
_INSTEAD = (
    "so NOT disabled: the switch is not set and no target is withdrawn. Mend the file and disable "
    "again. No cycle runs with it, so that targets run out within validity_seconds; to be rid of "
    "them now, remove what publish: names, or on nodes: touch /etc/sharectl/disabled"
)
_EPILOG = (
    "Targets are withdrawn at once, by every transport that is configured, whether or not the pool "
    "answers. Where this command cannot run, `touch disabled` in state_directory does the same at "
    "the next cycle. Nodes: /etc/sharectl/disabled, or SHARECTL_ENABLED = False."
)


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reason",
        required=True,
        type=_reason,
        metavar="TEXT",
        help="why: status and the audit tell it",
    )
    parser.add_argument(
        "--for",
        dest="for_seconds",
        type=_duration,
        metavar="TIME",
        help="such as 30s, 10m, 2h or 7d, or seconds; the first cycle after it publishes again "
        "(default: until `sharectl enable`)",
    )


def _enable(arguments: argparse.Namespace) -> int:
    config = options.config_of(arguments)
    switch, failures = wiring.switch_of(config), Failures()
    was = switch.disabled()
    switch.enable()
    if was is not None:
        with failures:
            wiring.audit_of(config, "enable").switched(was, int(time.time()), on=True)
    reply = "sharectl was not disabled"
    if was is not None:
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
    config = _config_of(arguments)
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
    unset = f"the switch could not be set; {_effect(done)}"
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
    lines = [reply, *(f"no targets at {place}" for place in places), *_of_pair(config)]
    options.show(arguments, "disabled", content, lines)
    if failures.errors:
        if is_set:
            problems.append("sharectl is disabled all the same: cycles here publish no targets")
        raise failures.kind(*problems)
    if locked is not None:
        options.say([f"{locked}; it withdraws what it publishes"])
        return LockedError.exit_code
    return 0


def _config_of(arguments: argparse.Namespace) -> Config:
    """Configuration; if it is broken, the problems end in what to do instead."""
    try:
        return options.config_of(arguments)
    except ConfigError as error:
        raise ConfigError([*error.problems, f"{arguments.config}: {_INSTEAD}"]) from error


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


def _of_pair(config: Config) -> Iterator[str]:
    """Line about the other one of two central managers, where the drop-in for them is installed."""
    if "negotiator.conf" in unit_of(settings=("LoadState", "DropInPaths")).get("DropInPaths", ""):
        yield (
            "the other central manager is NOT disabled unless it shares "
            f"{config.state_directory}: run `sharectl disable` there too"
        )


def _effect(done: Publication) -> str:
    """Effect on targets without the switch."""
    if not done.places:
        return "no target is withdrawn"
    return f"targets are withdrawn once{'' if done.everywhere else ', and not everywhere'}"


def _reason(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > MAX_REASON:
        raise ValueError(f"write one line of 1 to {MAX_REASON} characters that can be seen")
    return text


def _duration(text: str) -> int:
    seconds = parse_span(text) or 0
    if not 1 <= seconds <= MAX_FOR_SECONDS:
        raise ValueError(f"{text!r}: write a time from 1s to 366d, such as 30s, 10m, 2h or 7d")
    return seconds


VERBS = {
    "disable": options.Verb(_disable, _add, epilog=_EPILOG),
    "enable": options.Verb(_enable, epilog="The next cycle publishes targets again."),
}
