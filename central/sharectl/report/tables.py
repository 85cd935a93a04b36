"""Tables for people: in colour on a terminal, plain text elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any, Optional, TextIO

from sharectl.core.time_words import span


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], to: TextIO) -> None:
    """Print one table; numbers are set right. Text is shown as it is, never as markup.

    On a terminal lines are no longer than it is wide (`table_layout`); elsewhere they are as long as they must be, a line
    a row.
    """
    from sharectl.report.table_layout import laid_out, shown

    is_terminal = to.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else None
    heading, *rest = laid_out(
        [shown(column) for column in columns], [[shown(cell) for cell in row] for row in rows], width
    )
    lines = [line for row in rest for line in row]
    titles = wrap(shown(title), width) if width else [shown(title)]
    if not is_terminal:
        to.writelines(f"{line}\n" for line in (*titles, *heading, *lines))
        return
    from rich.console import Console

    console = Console(file=to, highlight=False, markup=False, emoji=False, soft_wrap=True)
    for line, style in (
        ("", None),
        *((line, "italic") for line in titles),
        *((line, "bold") for line in heading),
    ):
        console.print(line, style=style)
    for line in lines:
        console.print(line)


def snapshot_tables(content: dict[str, Any], to: TextIO) -> None:
    """Print the tables of a snapshot: ``content`` is what `as_json.snapshot` returns.

    Without any node there are no figures to show: what is not known is not zero.
    """
    if content["nodes"]:
        _print_figures(content, to)
    if content["waits"]:
        waits_table("waiting times", content["waits"], to)
    print_table(
        "sources",
        ("source", "seconds", "problem"),
        [(s["name"], round(s["seconds"], 3), s["problem"] or "-") for s in content["sources"]],
        to,
    )


def _print_figures(content: dict[str, Any], to: TextIO) -> None:
    print_table(
        "groups",
        ("group", "HS06", "cores 1-core", "multicore", "pending 1-core", "multicore"),
        [
            (
                group,
                round(used["power_hs06"]),
                used["single_cores"],
                used["multi_cores"],
                used["pending_single_jobs"],
                used["pending_multi_jobs"],
            )
            for group, used in content["groups"].items()
        ],
        to,
    )
    if content["others"]:
        print_table(
            "in other: the largest, by the first part of AccountingGroup",
            ("AccountingGroup begins", "cores", "pending jobs"),
            [(part["name"] or "-", part["cores"], part["pending_jobs"]) for part in content["others"]],
            to,
        )
    if content["unplaceable"]:
        print_table(
            "pending jobs that no node could run if it were empty: they are no demand",
            ("group", "cores", "jobs", "reason", "sharectl explain job"),
            [
                (jobs["group"], jobs["cores"], jobs["jobs"], jobs["reason"] or "-", jobs["example"] or "-")
                for jobs in content["unplaceable"]
            ],
            to,
        )
    print_table(
        "nodes",
        ("node", "cores", "MiB", "HS06/core", "controlled", "says", "held by group"),
        [
            (
                node["name"],
                node["cores"],
                node["memory_mib"] or "-",
                round(node["hs06_per_core"], 2),
                "reserved" if node["reserved"] else "yes" if node["controlled"] else "no",
                _said(node),
                " ".join(f"{group}:{cores}" for group, cores in sorted(node["cores_by_group"].items())),
            )
            for node in content["nodes"]
        ],
        to,
    )


def waits_table(title: str, waits: Sequence[Mapping[str, Any]], to: TextIO) -> None:
    """Print how long jobs wait, those first of which one waits longest; ``?`` where it is not known."""
    rows = sorted(waits, key=lambda row: -((row["pending"] or {}).get("longest_seconds", -1)))
    print_table(
        title,
        ("group", "cores", "longest", "median", "looked at", "started: longest", "median", "looked at"),
        [(row["group"], row["cores"], *_times(row["pending"]), *_times(row["started"])) for row in rows],
        to,
    )


def _times(times: Optional[Mapping[str, Any]]) -> tuple[str, str, str]:
    if times is None:
        return ("?", "?", "-")
    least = ">= " if times["sampled"] else ""
    longest, median = span(times["longest_seconds"]), span(times["median_seconds"])
    return (f"{least}{longest}", median, f"{times['jobs']}{' (sample)' if times['sampled'] else ''}")


def _said(node: Mapping[str, Any]) -> str:
    """What a node says of itself: that it is drained, what keeps it from targets, or the plan that it acts on."""
    words = ["draining"] if node["draining"] else []
    if node["refusal"]:
        words.append(node["refusal"])
    if node["obeyed_sequence"]:
        words.append(f"acts on plan {node['obeyed_sequence']}")
    return ", ".join(words) or "-"
