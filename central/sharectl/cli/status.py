"""``sharectl status``: the last cycle, the places of targets, and the nodes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Optional, TextIO

from sharectl.cli import options, wiring
from sharectl.condor.daemons import ask_collector
from sharectl.condor.node_ads import Awaited, look_at_nodes
from sharectl.config.model import OBSERVE, Config
from sharectl.cycle.ports import PlacedTargets
from sharectl.cycle.publication import MAX_AHEAD_SECONDS, in_force, of_now
from sharectl.errors import ConfigError, PoolUnavailableError
from sharectl.model import Disabled
from sharectl.plan.limits import LIMITS
from sharectl.plan.nodes import problems as refusals
from sharectl.plan.plan import REASONS, State
from sharectl.publish.text import Seal
from sharectl.report.pool import (
    block_problems,
    block_rows,
    blocks_data,
    disabled_words,
    unanswered_words,
    waits_table,
)
from sharectl.report.tables import print_table
from sharectl.words import counted

_GROUPS = "group|pledge HS06|error HS06|pending multicore|is|closed nodes|because"
_EPILOG = f"""\
A problem is a line on standard error, with what to do: no cycle has run, or the last one had a
problem or could not write metrics.textfile; a place of targets that cannot be read, has run out, is
unsigned, is for another pool, or holds an older plan or ads of somebody else; a collector that does
not answer; nodes that refuse targets or cannot get them, by code of t1_JobCtlReason (not-published:
without the snippet; never-ran, stale: job_ctl; no-file, no-ad: only where a node should find a
target by now); cores that stand free under a target for longer than control.give_up_seconds;
targets that stay after `sharectl disable`; a clock that was more than {MAX_AHEAD_SECONDS} s ahead.
No problem: sharectl is disabled, a plan without targets, and lines that begin with "warning:": the
last cycle found the configuration odd.

As a monitoring check all codes but 0 want somebody to look.
exit codes: 0 no problem; 1 at least one problem; 2 usage; 74 the state file cannot be read; 78
configuration"""


def _run(arguments: argparse.Namespace) -> int:
    """Print the last cycle, the places of targets and the nodes; 1 if any has a problem."""
    config = options.config_of(arguments)
    now = int(time.time())
    off = in_force(wiring.switch_of(config).disabled(), now)
    store = wiring.state_of(config)
    state, of_future = of_now(store.load(), now)
    published = places(config, now, state.sequence)
    nodes = _nodes(config, now, _awaited(published, state, now))
    stands = state.blocks if state.standing_at(now) else replace(state.blocks, open=())
    status: dict[str, Any] = {
        "now": now,
        "mode": config.mode,
        "disabled": asdict(off) if off else None,
        "to_withdraw": bool(state.sequence) and not state.withdrawn,
        "withdrawn": state.withdrawn,
        "last_cycle": store.last_cycle() or None,
        "published": published,
        "nodes": nodes,
        "blocks": blocks_data(stands, nodes.get("idle_cores", {}), config.control.give_up, now),
    }
    problems = [*problems_of(status, config.nodes.job_ctl_stale_seconds)]
    problems += [of_future] if of_future else []
    content = {**status, "problems": problems}
    options.show(arguments, "status", content, partial(_print, status, off))
    options.say_warnings((status["last_cycle"] or {}).get("warnings", ()))
    options.say(problems)
    return 1 if problems else 0


def _awaited(published: list[dict[str, Any]], state: State, now: int) -> Awaited:
    """Targets that nodes can find in the places."""
    valid = [
        place
        for place in published
        if "targets" in place
        and (place["valid_for_seconds"] is None or place["valid_for_seconds"] > 0)
    ]
    ways = {place["way"] for place in valid if place["targets"]}
    since = {stood.target.node.lower(): stood.since for stood in state.standing_at(now)}
    free = (block.node for block in state.blocks.open if block.free_since is not None)
    return Awaited(
        valid=bool(valid),
        file_since=min(since.values(), default=0) if "file" in ways else None,
        ads_since=since if "collector" in ways else {},
        free_nodes=frozenset(free),
    )


def _nodes(config: Config, now: int, awaited: Awaited) -> dict[str, Any]:
    stale_seconds = config.nodes.job_ctl_stale_seconds
    look = partial(look_at_nodes, now=now, stale_seconds=stale_seconds, awaited=awaited)
    try:
        seen = ask_collector(config.pool.collector, config.pool.collector_deadline_seconds, look)
    except PoolUnavailableError as error:
        return {"problem": str(error)}
    return {**seen, "problem": None}


def problems_of(status: dict[str, Any], patience_seconds: int) -> Iterator[str]:
    """Problems, a line each; nodes have ``patience_seconds`` to see that sharectl is disabled."""
    cycle, nodes, now = status["last_cycle"], status["nodes"], status["now"]
    off, withdrawn = status["disabled"], status["disabled"] and status["withdrawn"]
    # While sharectl is disabled nobody renews the places, and that is meant so.
    observes = status.get("mode") == OBSERVE
    quiet = withdrawn or (observes and not status["to_withdraw"])
    published = [place for place in status["published"] if not quiet or place.get("older")]
    if observes and status["to_withdraw"]:
        yield "mode: observe, but targets of before may stand: the next cycle withdraws them"
    yield from (part["problem"] for part in (*published, nodes) if part["problem"])
    if off and not withdrawn:
        yield "disabled, but targets are not withdrawn everywhere: the next cycle tries again"
    if off and off["since"] > now + MAX_AHEAD_SECONDS:
        yield (
            "disabled at a time that is still to come: the clock of this machine was ahead then, "
            "or is behind now, and --for ends too late by as much; disable again, or `sharectl "
            "enable`"
        )
    acting = nodes.get("with_target", 0)
    if withdrawn and acting and now - off["since"] > patience_seconds:
        yield (
            f"disabled, and {counted(acting, 'slot')} still have a target: does somebody else "
            "publish for this pool, or to places that publish: does not name? `sharectl explain "
            "node NAME` tells which target it is"
        )
    yield from block_problems(status["blocks"])
    yield from refusals(nodes.get("refusing", {}), nodes.get("slots", 0))
    if cycle is None:
        yield "no cycle has run yet: `sharectl cycle`, or enable sharectl.timer"
    else:
        yield from (f"last cycle: {problem}" for problem in cycle.get("problems", []))
        if cycle.get("metrics_problem"):
            yield f"last cycle: {cycle['metrics_problem']}"


# ---- screen


def _print(status: dict[str, Any], off: Optional[Disabled], to: TextIO) -> None:
    cycle, nodes = status["last_cycle"] or {}, status["nodes"]
    rows: list[tuple[str, object]] = [("disabled", disabled_words(off))] if off else []
    if status["mode"] == OBSERVE:
        count = counted(cycle.get("planned_targets") or 0, "target")
        rows += [("mode", f"observe: nothing is steered; would have published {count}")]
    rows += _cycle_rows(cycle, status["now"]) if cycle else []
    rows += [(place["place"], line(place)) for place in status["published"] if "targets" in place]
    rows += _node_rows(nodes) if nodes["problem"] is None else []
    rows += block_rows(status["blocks"])
    if rows:
        print_table("status", ("what", "is"), rows, to)
    if cycle.get("errors"):
        print_table("groups at the last cycle", _GROUPS.split("|"), _group_rows(cycle), to)
    if cycle.get("waits"):
        waits_table("waiting times at the last cycle", cycle["waits"], to)


def _cycle_rows(cycle: dict[str, Any], now: int) -> Iterator[tuple[str, object]]:
    plan, ago = cycle["plan"] or {}, now - cycle["taken_at"]
    when = f"{ago} s ago" if ago >= 0 else f"in the future, by {-ago} s"
    yield "last cycle", f"{when}, took {cycle['seconds']} s"
    yield "complete", "yes" if cycle["complete"] else "no: targets unchanged"
    yield "held back", plan.get("held_back") or "-"
    yield "helped", plan.get("helped") or "-"
    reason = REASONS.get(plan.get("reason", ""), "-")
    yield "reason", reason if cycle["complete"] else unanswered_words(cycle.get("unanswered", ()))
    if idle := cycle.get("idle_cores"):
        rest = idle["all"] - idle["target"] - idle["grace"]
        words = f"{idle['target']} under targets, {idle['grace']} in grace, {rest} others"
        yield "idle cores then", words
    for note in plan.get("limits", ()):
        yield LIMITS[note["code"]], counted(note["nodes"], "node")


def _node_rows(nodes: dict[str, Any]) -> Iterator[tuple[str, object]]:
    yield "partitionable slots", nodes["slots"]
    yield "with a target now", nodes["with_target"]
    yield "in grace now", f"{nodes['in_grace']}, {counted(nodes['idle_grace_cores'], 'core')}"
    off = f"{nodes['disabled']} by file, {nodes['disabled_by_knob']} by knob"
    yield "switched off on the node", off
    if nodes["multicore_only"]:
        yield "for multicore jobs alone", nodes["multicore_only"]
    reasons = " ".join(f"{code}:{count}" for code, count in nodes["reasons"].items())
    yield "job_ctl says", reasons or "-"


def _group_rows(cycle: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    """Rows of groups: the error that was acted on, else that beside the pledge's share."""
    acted = {row["group"]: row["control_error_hs06"] for row in cycle.get("controllers", ())}
    reasons = {row["group"]: row for row in cycle.get("groups", ())}
    for row in cycle["errors"]:
        group = row["group"]
        error, reason = acted.get(group, row["error_hs06"]), reasons.get(group)
        why = (reason["code"], _closed(reason), reason["says"]) if reason else ("-", "-", "-")
        yield group, round(row["pledge_hs06"]), round(error), row["pending_multi_jobs"], *why


def _closed(reason: dict[str, Any]) -> int:
    return int(reason["closed_nodes"] + reason["other_sizes_closed_nodes"])


# ---- places of targets


def places(config: Config, now: int, sequence: int = 0) -> list[dict[str, Any]]:
    """Places where nodes look for targets, with content and problem at Unix time ``now``.

    ``sequence`` is that of the plan that was published last, 0 if unknown.
    """
    seal, problem = Seal(config.pool.name), None
    try:
        seal = wiring.seal_of(config)
    except ConfigError as error:
        # Many users have no right to read the keys.
        problem = None if isinstance(error.__cause__, PermissionError) else str(error)
    transports = wiring.transports_of(config, seal)
    rows = [
        row(held, config.pool.name, now, sequence)
        for transport in transports
        for held in transport.look()
    ]
    return [*rows, {"place": str(config.signing_key_file), "problem": problem}] if problem else rows


def row(held: PlacedTargets, pool: Optional[str], now: int, sequence: int) -> dict[str, Any]:
    """Facts about targets in a place, and its worst problem."""
    row = {"way": held.way, "place": held.place, "problem": held.problem}
    if held.targets is None:
        return {**row, "older": False}
    seconds = held.valid_until - now if held.valid_until is not None else None
    older = (held.sequence or sequence) < sequence
    if older:
        row["problem"] = (
            f"{held.place}: an older plan stands there: sequence {held.sequence}, and {sequence} "
            "was published last: a copy put back, or no publishing since; nodes that took the "
            "newer one refuse it; `sharectl cycle`"
        )
    elif seconds is not None and seconds <= 0:
        row["problem"] = f"{held.place}: expired {-seconds} s ago: no node has a target from there"
    elif held.problem is None and held.pool != pool:
        row["problem"] = (
            f"{held.place}: is for pool {held.pool}, and pool.name is {pool}: `sharectl cycle`"
        )
    facts = {"targets": held.targets, "sequence": held.sequence, "valid_for_seconds": seconds}
    return {**row, **facts, **held.more, "older": older}


def line(place: dict[str, Any]) -> str:
    """Content of a place, in words."""
    targets, seconds = counted(place["targets"], "target"), place["valid_for_seconds"]
    words = [f"{targets}, sequence {place['sequence']}, valid for {seconds} s"]
    if place.get("signed_by"):
        verified = "" if place["verified"] else " (not verified)"
        words.append(f"signed by {place['signed_by']}{verified}")
    if place.get("identity"):
        words.append(f"from {place['identity']}")
    if place.get("served") is not None:
        words.append("served" if place["served"] else "NOT served")
    return ", ".join(words)


VERBS = {"status": options.Verb(_run, epilog=_EPILOG)}
