"""``sharectl disable``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Optional

from sharectl.cli import wiring
from sharectl.cli.wiring import UNASKED, audit_of, outlets_of, switch_of
from sharectl.config.fields import number_in
from sharectl.config.files import refuse_clashes
from sharectl.config.model import Config
from sharectl.cycle.publication import (
    Outlets,
    Publication,
    in_force,
    load_state,
    tried,
    withdraw,
    withdraw_unlocked,
)
from sharectl.errors import ConfigError, LockedError, StateError
from sharectl.files.files import only_one
from sharectl.model import Disabled
from sharectl.publish.audit import who_runs
from sharectl.publish.switch import MAX_REASON
from sharectl.report import as_json
from sharectl.report.pool import disabled_words, utc

MAX_FOR_SECONDS = 366 * 86400
_INSTEAD = (
    "so NOT disabled: the switch is not set and no target is withdrawn. Mend the file "
    "(`sharectl check config` has the "
    "same list) and disable again. No cycle runs with it, so that targets run out within "
    "validity_seconds; to be rid of "
    "them now, remove what publish: names, or on nodes: touch /etc/sharectl/disabled, or "
    "SHARECTL_ENABLED = False. "
    "`touch disabled` in state_directory keeps cycles from publishing once the file is mended"
)

_NOT_SET = "the switch could not be set"
_STOP = (
    "cycles go on publishing unless it was set before: run this as the user of the service or "
    "as root, or stop "
    "sharectl.timer"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    wiring.add_common(parser)
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
        help="such as 30s, 10m, 2h or 7d, or seconds; the first cycle after it publishes again (default: until "
        "`sharectl enable`)",
    )
    parser.epilog = (
        "Targets are withdrawn at once, by every transport that is configured, whether or not "
        "the pool answers. Where "
        "this command cannot run, `touch disabled` in state_directory does the same at the next "
        "cycle. Nodes: "
        "/etc/sharectl/disabled, or SHARECTL_ENABLED = False."
    )


def run(arguments: argparse.Namespace) -> int:
    """Switch sharectl off and withdraw all targets; 0 only if every transport took it."""
    config = _config_of(arguments)
    now = int(time.time())
    until = None if arguments.for_seconds is None else now + arguments.for_seconds
    said = Disabled(arguments.reason, who_runs("disable", os.environ).name, now, until)
    problems: list[str] = []
    was = in_force(switch_of(config).disabled(), now)
    # The switch first: from then on a cycle withdraws what it publishes, whoever has the lock.
    is_set = tried(lambda: switch_of(config).disable(said), problems)
    if is_set:
        tried(lambda: audit_of(config, "disable").switched(on=False, said=said, now=now), problems)
    outlets = outlets_of(config, "disable", withdraws=True)
    try:
        refuse_clashes(config, arguments.config)
    except ConfigError as error:
        problems += error.problems
        outlets = replace(outlets, publishers=())
    done, locked = _withdrawn(config, said, outlets, problems)
    if not is_set:
        problems.append(f"{_NOT_SET}; {_reached(done, outlets)}; {_STOP}")
    if arguments.json:
        content = {
            "disabled": asdict(said) if is_set else None,
            "was": asdict(was) if was else None,
            "published": [*done.places, *done.left],
            "problems": problems,
        }
        print(as_json.dumps("disabled", content))
    else:
        for line in _reply(said, was, _reached(done, outlets), is_set=is_set):
            print(line)
        for place in (*done.places, *done.left):
            print(f"no targets at {place}")
    if problems:
        problems += (
            ["sharectl is disabled all the same: cycles publish no targets"] if is_set else []
        )
        raise StateError("\n".join(problems))
    if locked is not None:
        print(f"sharectl: {locked}; it withdraws what it publishes", file=sys.stderr)
        return LockedError.exit_code
    return 0


def _reply(said: Disabled, was: Optional[Disabled], reached: str, *, is_set: bool) -> Iterator[str]:
    """What became of the switch, ``was`` being what it said before."""
    if not is_set:
        yield f"NOT disabled: {_NOT_SET}; {reached}"
        # Without a time it is one that this user cannot look at.
        if was is not None and was.since:
            yield f"what was there stands: disabled {disabled_words(was)}"
        return
    yield f"disabled {disabled_words(said)}"
    if was is not None:
        now_until = "without an end" if said.until is None else f"until {utc(said.until)}"
        yield f"was disabled {disabled_words(was)}; now {now_until}"
    if said.until is not None:
        yield f"for {said.until - said.since} s: the first cycle after {utc(said.until)} publishes again"


def _reached(done: Publication, outlets: Outlets) -> str:
    """How far targets went without the switch."""
    if not done.places:
        return "no target is withdrawn"
    return "targets are withdrawn once" + (
        ", and not everywhere" if len(done.places) < len(outlets.publishers) else ""
    )


def _config_of(arguments: argparse.Namespace) -> Config:
    """Configuration; if it is broken, the problems end in what to do instead."""
    try:
        return wiring.config_of(arguments)
    except ConfigError as error:
        raise ConfigError([*error.problems, f"{arguments.config}: {_INSTEAD}"]) from error


def _withdrawn(
    config: Config, said: Disabled, outlets: Outlets, problems: list[str]
) -> tuple[Publication, Optional[LockedError]]:
    """What was published, and why it was so without the lock if it was."""
    plans = wiring.plan_config(config, UNASKED)
    lock = config.state_directory / "lock"
    done, locked = Publication(), None
    for wait_seconds in (0.0, config.lock_wait_seconds):
        try:
            with only_one(lock, wait_seconds):
                now = int(time.time())
                before = load_state(outlets.state, now, problems)
                return withdraw(plans, said, before, outlets, now, problems), None
        except LockedError as error:
            locked = error
        except StateError as error:
            problems += [str(error)] if str(error) not in problems else []
        # Nobody waits for a cycle that hangs before targets go.
        if not done.places:
            done = withdraw_unlocked(plans, said, outlets, int(time.time()), problems)
    return done, locked


def _reason(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > MAX_REASON:
        raise argparse.ArgumentTypeError(
            f"write one line of 1 to {MAX_REASON} characters that can be seen"
        )
    return text


def _duration(text: str) -> int:
    seconds = number_in(text, "seconds")
    if seconds is None or seconds != int(seconds) or not 1 <= seconds <= MAX_FOR_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text!r}: write a time from 1s to 366d, such as 30s, 10m, 2h or 7d"
        )
    return int(seconds)
