"""``sharectl status``."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from functools import partial
from typing import Any, Optional

from sharectl.adapters import node_status
from sharectl.adapters.config_model import Config
from sharectl.adapters.deadline import Question, ask_all
from sharectl.cli import options, published
from sharectl.cli.outlets import state_of, switch_of
from sharectl.core.limits import LIMITS
from sharectl.core.model import Disabled
from sharectl.core.plan import REASONS
from sharectl.publication import in_force
from sharectl.report import as_json
from sharectl.report.switch import disabled_words
from sharectl.report.tables import print_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    options.add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the last cycle, the published files and the nodes; 1 if any of them is not as it should be."""
    config = options.config_of(arguments)
    now = int(time.time())
    said = in_force(switch_of(config).disabled(), now)
    status = {
        "now": now,
        "disabled": asdict(said) if said else None,
        "withdrawn": state_of(config).load().withdrawn,
        "last_cycle": state_of(config).last_cycle() or None,
        "published": published.places(config, now),
        "nodes": _nodes(config, now),
    }
    problems = _problems(status, config.nodes.job_ctl_stale_seconds)
    if arguments.json:
        print(as_json.dumps("status", {**status, "problems": problems}))
    else:
        _print(status, said)
    for problem in problems:
        print(f"sharectl: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _nodes(config: Config, now: int) -> dict[str, Any]:
    import htcondor2  # noqa: F401 - loaded before the question forks

    question = Question(
        partial(node_status.look, config.pool.collector, now, config.nodes.job_ctl_stale_seconds),
        config.pool.collector_deadline_seconds,
    )
    answer = ask_all({"collector": question})["collector"]
    if answer.value is None:
        return {"problem": f"collector: {answer.source.problem}"}
    return {**asdict(answer.value), "problem": None}


def _problems(status: dict[str, Any], stale_seconds: int) -> list[str]:
    cycle = status["last_cycle"]
    off = status["disabled"] is not None
    # Switched off on purpose is no problem, and nobody renews what was withdrawn.
    places = [] if off and status["withdrawn"] else status["published"]
    found = [part["problem"] for part in (*places, status["nodes"])]
    if off and not status["withdrawn"]:
        found.append("disabled, but targets are not withdrawn everywhere: the next cycle tries again")
    found += _deaf_nodes(status["nodes"], stale_seconds)
    if cycle is None:
        found.append("no cycle has run yet: `sharectl cycle`, or enable sharectl.timer")
    else:
        found += [f"last cycle: {problem}" for problem in cycle.get("problems", [])]
    return [problem for problem in found if problem]


def _deaf_nodes(nodes: dict[str, Any], stale_seconds: int) -> list[str]:
    """What to do about nodes that look for no target, so that none can reach them."""
    remedies = {
        node_status.UNKNOWN_REASON: "never ran job_ctl: install config.d/60-sharectl-execute-point.conf there",
        node_status.STALE_REASON: f"ran job_ctl {stale_seconds} s ago or longer: see StartLog there",
    }
    return [
        f"{nodes['reasons'][reason]} of {nodes['slots']} partitionable slots {remedy}"
        for reason, remedy in remedies.items()
        if reason in nodes.get("reasons", {})
    ]


def _print(status: dict[str, Any], said: Optional[Disabled]) -> None:
    cycle, nodes = status["last_cycle"], status["nodes"]
    rows: list[tuple[str, object]] = [("disabled", disabled_words(said))] if said else []
    if cycle:
        plan = cycle["plan"] or {}
        rows += [
            ("last cycle", f"{status['now'] - cycle['taken_at']} s ago, took {cycle['seconds']} s"),
            ("complete", "yes" if cycle["complete"] else "no: targets unchanged"),
            ("held back", plan.get("held_back") or "-"),
            ("helped", plan.get("helped") or "-"),
            ("reason", REASONS.get(plan.get("reason", ""), "-")),
            *((LIMITS[note["code"]], f"{note['nodes']} nodes") for note in plan.get("limits", ())),
        ]
    rows += [(place["place"], published.line(place)) for place in status["published"] if "targets" in place]
    if nodes["problem"] is None:
        rows += [
            ("partitionable slots", nodes["slots"]),
            ("with a target now", nodes["with_target"]),
            ("in grace now", nodes["in_grace"]),
            ("disabled on the node", nodes["disabled"]),
            ("job_ctl says", " ".join(f"{code}:{count}" for code, count in nodes["reasons"].items()) or "-"),
        ]
    print_table("status", ("what", "is"), rows, sys.stdout)
    if cycle and cycle["errors"]:
        print_table(
            "errors at the last cycle",
            ("group", "pledge HS06", "error HS06", "error cores", "pending multicore"),
            [
                (
                    row["group"],
                    round(row["pledge_hs06"]),
                    round(row["error_hs06"]),
                    round(row["error_cores"]),
                    row["pending_multi_jobs"],
                )
                for row in cycle["errors"]
            ],
            sys.stdout,
        )
