"""``sharectl status``: the last cycle, the places of targets, and the nodes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from math import ceil
from typing import Any, Callable, NamedTuple, Optional

from sharectl import __version__
from sharectl.cli import options, wiring
from sharectl.condor.daemons import ask_collector
from sharectl.condor.node_ads import CLOCKS_DIFFER_SECONDS, Awaited, look_at_nodes
from sharectl.config.model import OBSERVE, Config
from sharectl.cycle.ports import PlacedTargets
from sharectl.cycle.publication import (
    Failures,
    are_partners,
    both_publish,
    foreign_plan_words,
    foreign_writer,
    in_force,
    of_now,
)
from sharectl.errors import ConfigError, PoolUnavailableError, SharectlError, StateError
from sharectl.files.documents import Content
from sharectl.model import Disabled
from sharectl.plan.nodes import problems as refusals
from sharectl.plan.nodes import version_problems
from sharectl.plan.plan import State
from sharectl.publish.text import Seal
from sharectl.report import plugin
from sharectl.report.pool import (
    block_problems,
    blocks_data,
    disabled_words,
)
from sharectl.report.status import status_tables
from sharectl.times import span
from sharectl.words import counted

Look = Callable[..., dict[str, Any]]
"""Question such as `look_at_nodes`."""
NO_STATE = State()
_EPILOG = """\
Groups: pledge, power used, power due and lack, the part of it that it does not use, all HS06;
pending jobs of one core and of more (multi), each with the longest wait; the code of its reason
(`sharectl explain codes`). ?: unknown. --json has all waits.

A problem is a line on standard error with its remedy: of state.json, of the last cycle, of a place
of targets, of the collector, of nodes under control that refuse targets or cannot get them
(`sharectl nodes`), of cores that stand free under a target, of targets that stay after `sharectl
disable`, of a clock.
No problem: sharectl is disabled, a plan without targets, a node without the snippet while mode is
observe or nodes.controlled is "*" or a share, and lines that begin with "warning:".

As a monitoring check: --nagios, or the exit code, which is 1 if there is a problem,
and 74 if state.json cannot be read."""


class Status(NamedTuple):
    """Status at one moment."""

    status: dict[str, Any]
    off: Optional[Disabled]
    problems_of: dict[str, list[str]]
    """Subject -> problems."""
    state: State
    warnings: Sequence[str]
    """Oddities that the last cycle found in the configuration."""

    @property
    def problems(self) -> list[str]:
        """Problems of all subjects."""
        return [*chain.from_iterable(self.problems_of.values())]


def _run(arguments: argparse.Namespace) -> int:
    """Print the last cycle, the places of targets and the nodes; 1 if any has a problem.

    74 if what the last cycle left cannot be read.
    """
    if arguments.nagios:
        return _as_plugin(arguments)
    seen = look_with(options.config_of(arguments))
    content = {**seen.status, "problems": seen.problems}
    options.show(arguments, "status", content, partial(status_tables, seen.status, seen.off))
    options.say_warnings(seen.warnings)
    options.say(seen.problems)
    return StateError.exit_code if seen.problems_of["state"] else int(bool(seen.problems))


def _as_plugin(arguments: argparse.Namespace) -> int:
    """Print the lines of a monitoring plugin; returns its code, that of UNKNOWN for an error."""
    try:
        code, lines = _plugin(options.config_of(arguments))
    except Exception as error:  # noqa: BLE001 - a monitor knows no other code for it
        is_ours = not isinstance(error, (SharectlError, OSError))
        text = f"internal error: {type(error).__name__}: {error}" if is_ours else str(error)
        details = getattr(error, "problems", text.splitlines()) or [type(error).__name__]
        code, lines = plugin.UNKNOWN, plugin.plugin_lines(plugin.UNKNOWN, details)
    print(*lines, sep="\n", flush=True)
    return code


def _plugin(config: Config) -> tuple[int, list[str]]:
    seen = look_with(config)
    code = plugin.CRITICAL if seen.problems else plugin.OK
    code = plugin.UNKNOWN if seen.problems_of["state"] else code
    # No problem, because it is meant so; but who looks at the monitor did perhaps not mean it.
    idle = ["mode: observe"] if config.mode == OBSERVE else []
    idle += [f"disabled {disabled_words(seen.off)}"] if seen.off else []
    figures = [f"problems={len(seen.problems)};;0"]
    if (taken_at := (seen.status["last_cycle"] or {}).get("taken_at")) is not None:
        age, validity = seen.status["now"] - taken_at, config.validity_seconds
        # Bounds as of the check `timer`.
        figures.append(f"last_cycle_age_seconds={age}s;{2 * validity // 3};{validity}")
    return code, plugin.plugin_lines(code, [*seen.problems, *idle], figures)


def look_with(config: Config, ask: Look = look_at_nodes) -> Status:
    """Status now; ``ask`` asks the collector for the nodes."""
    now = int(time.time())
    off = in_force(wiring.switch_of(config).disabled(), now)
    store, unread = wiring.state_of(config), Failures()
    state, of_future, cycle = NO_STATE, None, Content()
    with unread:
        (state, of_future), cycle = of_now(store.load(), now), store.last_cycle()
    is_off = off is not None or config.mode == OBSERVE
    published = places(config, now, state, is_off=is_off)
    nodes = _nodes(config, now, _awaited(published, state, cycle, now), ask)
    stands = state.blocks if state.standing_at(now) else replace(state.blocks, open=())
    status: dict[str, Any] = {
        "version": __version__,
        "now": now,
        "mode": config.mode,
        "disabled": asdict(off) if off else None,
        "to_withdraw": bool(state.sequence) and not state.withdrawn,
        "withdrawn": state.withdrawn,
        "last_cycle": cycle or None,
        "published": published,
        "nodes": nodes,
        "blocks": blocks_data(stands, config.control.give_up, now),
    }
    problems = {
        "state": [*unread.messages],
        "place": [*place_problems(status, config.nodes.job_ctl_stale_seconds)],
        "free": [*block_problems(status["blocks"])],
        "node": [*node_problems(status, only_measures=config.nodes.only_measures)],
        "cycle": [] if unread.errors else [*cycle_problems(status["last_cycle"])],
        "future": [of_future] if of_future else [],
    }
    return Status(status, off, problems, state, cycle.get("warnings", ()))


def _awaited(
    published: list[dict[str, Any]], state: State, cycle: dict[str, Any], now: int
) -> Awaited:
    """Targets that nodes can find in the places."""
    # A target is as old as the look that it was made from, and published at the cycle's end.
    late = ceil(cycle.get("seconds", 0)) + CLOCKS_DIFFER_SECONDS
    valid = [
        place
        for place in published
        if "targets" in place
        and (place["valid_for_seconds"] is None or place["valid_for_seconds"] > 0)
    ]
    ways = {place["way"] for place in valid if place["targets"]}
    since = {stood.target.node.lower(): stood.since + late for stood in state.standing_at(now)}
    return Awaited(
        valid=bool(valid),
        file_since=min(since.values(), default=0) if "file" in ways else None,
        ads_since=since if "collector" in ways else {},
    )


def _nodes(config: Config, now: int, awaited: Awaited, ask: Look) -> dict[str, Any]:
    observes = config.mode == OBSERVE
    look = partial(ask, now=now, awaited=awaited, config=config.nodes, observes=observes)
    try:
        seen = ask_collector(config.pool.collector, config.pool.collector_deadline_seconds, look)
    except PoolUnavailableError as error:
        return {"problem": str(error)}
    return {**seen, "problem": None}


def place_problems(status: dict[str, Any], patience_seconds: int) -> Iterator[str]:
    """Problems of places and of the switch, which nodes have ``patience_seconds`` to see."""
    now, acting = status["now"], status["nodes"].get("with_target", 0)
    off, withdrawn = status["disabled"], status["disabled"] and not status["to_withdraw"]
    # While sharectl is disabled nobody renews the places, and that is meant so.
    observes = status["mode"] == OBSERVE
    quiet = (off or observes) and not status["to_withdraw"]
    published = [
        place
        for place in status["published"]
        if not quiet or place.get("older") or place.get("foreign")
    ]
    if observes and status["to_withdraw"]:
        yield "mode: observe, but older targets may be in force: the next cycle withdraws them"
    yield from (place["problem"] for place in published if place["problem"])
    if off and not withdrawn:
        yield "disabled, but targets are not withdrawn everywhere: the next cycle tries again"
    if withdrawn and acting and now - off["since"] > patience_seconds:
        yield (
            f"disabled, and {counted(acting, 'slot')} still have a target: does somebody else "
            "publish for this pool, or to places that publish: does not name? `sharectl explain "
            "node NAME` tells which target it is"
        )


def node_problems(status: dict[str, Any], *, only_measures: bool) -> Iterator[str]:
    """Problems of nodes; with ``only_measures`` the configuration wants none under control."""
    nodes, steers = status["nodes"], status["mode"] != OBSERVE and not status["disabled"]
    if nodes["problem"]:
        yield nodes["problem"]
    if nodes.get("slots") and steers and not (nodes["controlled"] or only_measures):
        yield (
            "no node can get a target: nodes.controlled matches none, or no node has the execute "
            "point's snippet: `sharectl check pool`"
        )
    yield from refusals(nodes.get("refusing", {}), nodes.get("controlled", 0))
    versions, examples = nodes.get("versions", {}), nodes.get("node_of_version", {})
    yield from version_problems(versions, examples, __version__)


def cycle_problems(cycle: Optional[dict[str, Any]]) -> Iterator[str]:
    """Problems of the last cycle; None if there was none."""
    if cycle is None:
        yield "no cycle has run yet: `sharectl cycle`, or enable sharectl.timer"
        return
    problems = (*cycle.get("problems", ()), *cycle.get("unwritten", ()))
    yield from (f"last cycle: {problem}" for problem in problems)


# ---- places of targets


def places(
    config: Config, now: int, state: State = NO_STATE, *, is_off: bool = False
) -> list[dict[str, Any]]:
    """Places where nodes look for targets, with content and problem at Unix time ``now``.

    ``is_off`` if this installation publishes no targets.
    """
    own = wiring.own_writer(config)
    seal, problem = Seal(config.pool.name, writer=own), None
    try:
        seal = wiring.seal_of(config)
    except ConfigError as error:
        # Many users have no right to read the keys.
        problem = None if isinstance(error.__cause__, PermissionError) else str(error)
    transports = wiring.transports_of(config, seal)
    rows = []
    for placed in chain.from_iterable(transport.look() for transport in transports):
        rows.append(row(placed, now, state.sequence))
        if words := _conflict(placed, own, state, now, is_off=is_off):
            rows[-1].update(problem=words, foreign=True)
    return [*rows, {"place": str(config.signing_key_file), "problem": problem}] if problem else rows


def _conflict(
    placed: PlacedTargets, own: str, state: State, now: int, *, is_off: bool
) -> Optional[str]:
    """Problem with the valid plan of another installation, or None.

    A central manager may stand by for its partner.
    """
    writer = foreign_writer(placed, own, state, now)
    stands_by = not is_off and not both_publish(state, now)
    if writer is None or (is_off and not placed.targets):
        return None
    if stands_by and are_partners(writer, own):
        return None
    why = "although this one is off" if is_off else "where this one publishes"
    return foreign_plan_words(placed, writer, f"stands {why}")


def row(placed: PlacedTargets, now: int, sequence: int) -> dict[str, Any]:
    """Facts about targets in a place, and its worst problem."""
    facts = {"way": placed.way, "place": placed.place, "problem": placed.problem, "older": False}
    if placed.targets is None:
        return facts
    seconds = placed.valid_until - now if placed.valid_until is not None else None
    older, problem = (placed.sequence or sequence) < sequence, None
    if older:
        problem = (
            f"an older plan stands there: sequence {placed.sequence}, and {sequence} was published "
            "last: a copy put back, or no publishing since; nodes that took the newer one refuse "
            "it; `sharectl cycle`"
        )
    elif seconds is not None and seconds <= 0:
        problem = f"expired {span(seconds)} ago: no node has a target from there"
    return {
        **facts,
        "problem": placed.problem if problem is None else f"{placed.place}: {problem}",
        "targets": placed.targets,
        "sequence": placed.sequence,
        "valid_for_seconds": seconds,
        "writer": placed.writer,
        **placed.more,
        "older": older,
        "foreign": False,
    }


def _add_nagios(parser: argparse.ArgumentParser) -> None:
    output = parser.add_mutually_exclusive_group()
    options.add(output, "--json")
    output.add_argument(
        "--nagios",
        action="store_true",
        help="for a monitor: one line, perfdata with thresholds, all problems below; exit 0 OK, "
        "2 CRITICAL, 3 UNKNOWN",
    )


VERBS = {"status": options.Verb(_run, _add_nagios, ("--config",), epilog=_EPILOG)}
