"""``sharectl status``.

What is published, place by place, for ``sharectl status``.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Optional

from sharectl.cli import options, wiring
from sharectl.cli.options import say_warnings
from sharectl.cli.wiring import state_of, switch_of
from sharectl.condor import nodes as node_status
from sharectl.condor.daemons import ask_collector
from sharectl.condor.nodes import Awaited
from sharectl.config.model import Config
from sharectl.config.places import CollectorPublisherConfig, HttpsPublisherConfig, PublisherConfig
from sharectl.cycle.publication import MAX_AHEAD_SECONDS, in_force, of_now
from sharectl.errors import ConfigError, InputError, PoolUnavailableError, PublishError
from sharectl.model import Disabled, Standing
from sharectl.plan import nodes as node_reasons
from sharectl.plan.free_blocks import BlockMemory
from sharectl.plan.limits import LIMITS
from sharectl.plan.plan import REASONS
from sharectl.publish import signing, text
from sharectl.publish.collector import Holding
from sharectl.publish.signing import Key
from sharectl.publish.text import SharectlFile
from sharectl.report import as_json
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


def places(config: Config, now: int, sequence: int = 0) -> list[dict[str, Any]]:
    """Each place where nodes look for targets, with what it holds at Unix time ``now`` and what is wrong there.

    ``sequence`` is that of the plan that was published last, 0 if that is not known.
    """
    keys, problem = _keys(config)
    found = [
        _beside_newest({"way": _name(way), **place}, sequence)
        for way in config.publish
        for place in _of_way(config, way, keys, now)
    ]
    return (
        [*found, {"place": str(config.signing_key_file), "problem": problem}] if problem else found
    )


def is_valid(place: dict[str, Any]) -> bool:
    """Whether nodes can find something there that has not run out."""
    left = place.get("valid_for_seconds")
    return "targets" in place and (left is None or left > 0)


def _name(way: PublisherConfig) -> str:
    if way.collector is not None:
        return "collector"
    return "https" if way.https is not None else "file"


def _beside_newest(place: dict[str, Any], sequence: int) -> dict[str, Any]:
    """The place, with a problem if it holds an older plan than that of number ``sequence``."""
    held = place.get("sequence")
    older = held is not None and held < sequence
    said = (
        f"{place['place']}: an older plan stands there: sequence {held}, and {sequence} was "
        "published last: a copy "
        "put back, or no publishing since; nodes that took the newer one refuse it; `sharectl "
        "cycle`"
    )
    return {**place, "older": older, "problem": said if older else place["problem"]}


def line(place: dict[str, Any]) -> str:
    """One place in words."""
    said = [
        (
            f"{counted(place['targets'], 'target')}, sequence {place['sequence']}, valid for "
            f"{place['valid_for_seconds']} s"
        )
    ]
    if place.get("signed_by"):
        said.append(
            f"signed by {place['signed_by']}{'' if place['verified'] else ' (not verified)'}"
        )
    if place.get("identity"):
        said.append(f"from {place['identity']}")
    if place.get("served") is not None:
        said.append("served" if place["served"] else "NOT served")
    return ", ".join(said)


def _keys(config: Config) -> tuple[Optional[tuple[Key, ...]], Optional[str]]:
    """The keys, None if they cannot be read; and what is wrong with them, unless they are not for this user."""
    if config.signing_key_file is None:
        return None, None
    try:
        return signing.read_keys(config.signing_key_file), None
    except ConfigError as error:
        return None, None if isinstance(error.__cause__, PermissionError) else str(error)


def _of_way(
    config: Config, way: PublisherConfig, keys: Optional[tuple[Key, ...]], now: int
) -> list[dict[str, Any]]:
    if way.collector is not None:
        return _in_collectors(config, way.collector, now)
    file = way.https.file if way.https is not None else way.file
    if file is None:
        return []
    try:
        content = text.content_of(file)
        place = {"place": str(file), **_text(content, str(file), config, keys, now)}
    except InputError as error:
        return [{"place": str(file), "problem": str(error)}]
    return [
        place if way.https is None else {**place, **_served(way.https, content, place["problem"])}
    ]


def _text(
    content: bytes, name: str, config: Config, keys: Optional[tuple[Key, ...]], now: int
) -> dict[str, Any]:
    read = text.parse_text(content, name)
    left = read.valid_until - now if read.valid_until is not None else None
    wrong = signing.problem_of(content, keys) if keys is not None else None
    return {
        "sequence": read.sequence,
        "targets": len(read.targets),
        "valid_for_seconds": left,
        "signed_by": read.signature.key_id if read.signature else None,
        "verified": keys is not None and wrong is None,
        "problem": _problem(name, read, left, wrong, config),
    }


def _problem(
    name: str, read: SharectlFile, left: Optional[int], wrong: Optional[str], config: Config
) -> Optional[str]:
    if left is not None and left <= 0:
        return f"{name}: expired {-left} s ago: no node has a target"
    if wrong is not None:
        return f"{name}: {wrong}: nodes with the key refuse it; `sharectl cycle` publishes anew"
    if read.pool != config.pool.name:
        return f"{name}: is for pool {read.pool}, and pool.name is {config.pool.name}: `sharectl cycle`"
    return None


def _served(way: HttpsPublisherConfig, content: bytes, problem: Optional[str]) -> dict[str, Any]:
    from sharectl.publish.https import fetch

    fetched = fetch(wiring.served_at(way))
    served = fetched.problem is None and fetched.content == content
    if fetched.problem is not None:
        problem = f"{way.url}: {fetched.problem}"
    elif not served:
        problem = (
            f"{way.url}: is not what {way.file} holds; let the server serve that file, uncached"
        )
    return {"place": way.url, "served": served, "problem": problem}


def _in_collectors(config: Config, way: CollectorPublisherConfig, now: int) -> list[dict[str, Any]]:
    from sharectl.publish import collector

    try:
        looks = collector.look(wiring.collector_of(config, way))
    except PublishError as error:
        return [{"place": "collector", "problem": str(error)}]
    return [
        in_collector(f"collector:{address}", look.held, look.problem, config, now)
        for address, look in looks.items()
    ]


def in_collector(
    name: str, held: Optional[Holding], problem: Optional[str], config: Config, now: int
) -> dict[str, Any]:
    """What one collector holds, and what is wrong with it."""
    if held is None or held.sequence is None or held.valid_until is None:
        missing = problem or _no_plan(held)
        return {"place": name, "problem": f"{name}: {missing}"}
    left = held.valid_until - now
    if left <= 0:
        problem = f"{name}: expired {-left} s ago: no node has a target from there"
    elif held.pool != config.pool.name:
        problem = f"{name}: is for pool {held.pool}, and pool.name is {config.pool.name}: `sharectl cycle`"
    elif held.foreign:
        problem = (
            f"{name}: holds ads of targets that are not sharectl's: {_who(held)}; nodes refuse "
            "them, and "
            "COLLECTOR_REQUIREMENTS keeps them out (docs/transports.md)"
        )
    return {
        "place": name,
        "sequence": held.sequence,
        "targets": held.targets,
        "valid_for_seconds": left,
        "identity": held.identity,
        "problem": problem,
    }


def _no_plan(held: Optional[Holding]) -> str:
    if held is None or not held.foreign:
        return "holds no plan of sharectl: no node has a target from there; `sharectl cycle`"
    return (
        "holds no plan of the identity that publish: names, and ads of targets of others: "
        f"{_who(held)}; nodes that go by "
        "one of these have targets from there; is identity wrong? (docs/transports.md)"
    )


def _who(held: Holding) -> str:
    return ", ".join(f"{count} of {identity}" for identity, count in sorted(held.foreign.items()))


_EPILOG = """A problem is a line on standard error, with what to do:
  - no cycle has run yet, or the last one had a problem
  - a published file, URL or collector that cannot be read, has run out, is not signed as the nodes want it, is for
    another pool, holds an older plan than was published last, or ads of somebody else
  - the collector does not answer
  - nodes that refuse targets or cannot get them, for each code of t1_JobCtlReason but ok and no-line: how many; among
    them nodes without the snippet (not-published), those where job_ctl never ran (never-ran) or too long ago for START
    to go by it (stale). no-file and no-ad count only where a target is published that the node should find so, and not
    before it has looked since; expired where something valid is
  - a block of cores that stands free under a target for longer than control.give_up_seconds (null: than a job takes to
    come, by experience): "wn-001: 8 cores kept free for atlas for 9 min, no job came"; and a group whose jobs took none
    of several such blocks
  - sharectl is disabled, and targets could not be withdrawn everywhere, or nodes still have some after
    nodes.job_ctl_stale_seconds
  - the last plan, or the time from which sharectl is disabled, is more than 300 s in the future: the clock was ahead
No problem: sharectl is disabled (here, or on a node by file or knob), a plan without targets, and what begins with
"warning:": the last cycle found the configuration odd, such as a group that nobody's jobs have.

exit codes, for use as a monitoring check: 0 no problem, 1 at least one problem, 2 usage, 74 the state file cannot be
read, 78 configuration; all but 0 want somebody to look"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    options.add_common(parser)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Print the last cycle, the published files and the nodes; 1 if any of them is not as it should be."""
    config = options.config_of(arguments)
    now = int(time.time())
    said = in_force(switch_of(config).disabled(), now)
    state, of_future = of_now(state_of(config).load(), now)
    where = places(config, now, state.sequence)
    status: dict[str, Any] = {
        "now": now,
        "disabled": asdict(said) if said else None,
        "withdrawn": state.withdrawn,
        "last_cycle": state_of(config).last_cycle() or None,
        "published": where,
        "nodes": _nodes(config, now, _awaited(where, state.standing_at(now), state.blocks)),
    }
    stands = state.blocks if state.standing_at(now) else replace(state.blocks, open=())
    idle_cores = status["nodes"].get("idle_cores", {})
    status["blocks"] = blocks_data(stands, idle_cores, config.control.give_up, now)
    problems = problems_of(status, config.nodes.job_ctl_stale_seconds)
    problems += [of_future] if of_future else []
    if arguments.json:
        print(as_json.dumps("status", {**status, "problems": problems}))
    else:
        _print(status, said)
    say_warnings((status["last_cycle"] or {}).get("warnings", ()))
    for problem in problems:
        print(f"sharectl: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _awaited(
    where: list[dict[str, Any]], standing: tuple[Standing, ...], blocks: BlockMemory
) -> Awaited:
    """What nodes can find in the places, of the targets that stand."""
    valid = [place for place in where if is_valid(place)]
    ways = {place["way"] for place in valid if place["targets"]}
    since = {stood.target.node.lower(): stood.since for stood in standing}
    return Awaited(
        valid=bool(valid),
        file_since=min(since.values(), default=0) if "file" in ways else None,
        ads_since=since if "collector" in ways else {},
        free_nodes=frozenset(block.node for block in blocks.open if block.free_since is not None),
    )


def _nodes(config: Config, now: int, awaited: Awaited) -> dict[str, Any]:
    look = partial(
        node_status.look_at_nodes,
        now=now,
        stale_seconds=config.nodes.job_ctl_stale_seconds,
        awaited=awaited,
    )
    try:
        seen = ask_collector(config.pool.collector, config.pool.collector_deadline_seconds, look)
    except PoolUnavailableError as error:
        return {"problem": str(error)}
    return {**asdict(seen), "problem": None}


def problems_of(status: dict[str, Any], patience_seconds: int) -> list[str]:
    """What wants somebody to look, a line each; nodes have ``patience_seconds`` to see that sharectl is disabled."""
    cycle = status["last_cycle"]
    off = status["disabled"] is not None
    # Switched off on purpose is no problem, and nobody renews what was withdrawn.
    withdrawn = off and status["withdrawn"]
    places = [place for place in status["published"] if not withdrawn or place.get("older")]
    found = [part["problem"] for part in (*places, status["nodes"])]
    if off and not status["withdrawn"]:
        found.append(
            "disabled, but targets are not withdrawn everywhere: the next cycle tries again"
        )
    if off and status["disabled"]["since"] > status["now"] + MAX_AHEAD_SECONDS:
        found.append(
            "disabled at a time that is still to come: the clock of this machine was ahead "
            "then, or is behind now, and "
            "--for ends too late by as much; disable again, or `sharectl enable`"
        )
    acting = status["nodes"].get("with_target", 0)
    if withdrawn and acting and status["now"] - status["disabled"]["since"] > patience_seconds:
        found.append(
            f"disabled, and {counted(acting, 'slot')} still have a target: does somebody else "
            "publish for this pool, or to "
            "places that publish: does not name? `sharectl explain node NAME` tells which "
            "target it is"
        )
    found += block_problems(status["blocks"])
    found += node_reasons.problems(
        status["nodes"].get("refusing", {}), status["nodes"].get("slots", 0)
    )
    if cycle is None:
        found.append("no cycle has run yet: `sharectl cycle`, or enable sharectl.timer")
    else:
        found += [f"last cycle: {said}" for said in cycle.get("problems", [])]
    return [problem for problem in found if problem]


def _print(status: dict[str, Any], said: Optional[Disabled]) -> None:
    cycle, nodes = status["last_cycle"], status["nodes"]
    rows: list[tuple[str, object]] = [("disabled", disabled_words(said))] if said else []
    if cycle:
        plan = cycle["plan"] or {}
        rows += [
            ("last cycle", f"{_ago(status['now'] - cycle['taken_at'])}, took {cycle['seconds']} s"),
            ("complete", "yes" if cycle["complete"] else "no: targets unchanged"),
            ("held back", plan.get("held_back") or "-"),
            ("helped", plan.get("helped") or "-"),
            ("reason", _reason(cycle, plan)),
            *_idle_rows(cycle),
            *(
                (LIMITS[note["code"]], counted(note["nodes"], "node"))
                for note in plan.get("limits", ())
            ),
        ]
    rows += [(place["place"], line(place)) for place in status["published"] if "targets" in place]
    if nodes["problem"] is None:
        rows += [
            ("partitionable slots", nodes["slots"]),
            ("with a target now", nodes["with_target"]),
            ("in grace now", f"{nodes['in_grace']}, {counted(nodes['idle_grace_cores'], 'core')}"),
            (
                "switched off on the node",
                f"{nodes['disabled']} by file, {nodes['disabled_by_knob']} by knob",
            ),
            *(
                [("for multicore jobs alone", nodes["multicore_only"])]
                if nodes["multicore_only"]
                else []
            ),
            (
                "job_ctl says",
                " ".join(f"{code}:{count}" for code, count in nodes["reasons"].items()) or "-",
            ),
        ]
    rows += block_rows(status["blocks"])
    print_table("status", ("what", "is"), rows, sys.stdout)
    if cycle and cycle["errors"]:
        # DHS and the error that is acted on differ where the setpoint is not the pledge's share of
        # the power in use.
        acted = {row["group"]: row["control_error_hs06"] for row in cycle.get("controllers", ())}
        print_table(
            "errors at the last cycle",
            (
                "group",
                "pledge HS06",
                "error HS06",
                "DHS",
                "error cores",
                "pending multicore",
                "no node could run",
            ),
            [
                (
                    row["group"],
                    round(row["pledge_hs06"]),
                    round(acted[row["group"]]) if row["group"] in acted else "-",
                    round(row["error_hs06"]),
                    round(row["error_cores"]),
                    row["pending_multi_jobs"],
                    sum(row["unplaceable_by_cores"].values())
                    if "unplaceable_by_cores" in row
                    else "-",
                )
                for row in cycle["errors"]
            ],
            sys.stdout,
        )
    if cycle and cycle.get("groups"):
        _print_groups(cycle["groups"])
    if cycle and cycle.get("waits"):
        waits_table("waiting times at the last cycle", cycle["waits"], sys.stdout)


def _print_groups(groups: list[dict[str, Any]]) -> None:
    print_table(
        "groups at the last cycle",
        ("group", "is", "closed nodes", "because"),
        [
            (
                row["group"],
                row["code"],
                row["closed_nodes"] + row["other_sizes_closed_nodes"],
                row["says"],
            )
            for row in groups
        ],
        sys.stdout,
    )


def _ago(seconds: int) -> str:
    return f"{seconds} s ago" if seconds >= 0 else f"in the future, by {-seconds} s"


def _idle_rows(cycle: dict[str, Any]) -> list[tuple[str, object]]:
    """Idle cores by cause at the last cycle; none where it was not complete."""
    idle = cycle.get("idle_cores")
    if idle is None:
        return []
    rest = idle["all"] - idle["target"] - idle["grace"]
    return [
        (
            "idle cores then",
            f"{idle['target']} under targets, {idle['grace']} in grace, {rest} others",
        )
    ]


def _reason(cycle: dict[str, Any], plan: dict[str, Any]) -> str:
    if not cycle["complete"]:
        return unanswered_words(cycle.get("unanswered", ()))
    return REASONS.get(plan.get("reason", ""), "-")
