"""Tables for people: in colour on a terminal, plain text elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TextIO

_PLAIN_WIDTH = 200


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], to: TextIO) -> None:
    """Print one table; cells that are numbers are set right. Text is shown as it is, never as markup."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=to, width=None if to.isatty() else _PLAIN_WIDTH, highlight=False)
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD if to.isatty() else None)
    rows = [list(row) for row in rows]
    for number, column in enumerate(columns):
        numeric = all(isinstance(row[number], (int, float)) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_shown(cell)) for cell in row))
    console.print(table)


def snapshot_tables(content: dict[str, Any], to: TextIO) -> None:
    """Print the tables of a snapshot: ``content`` is what `as_json.snapshot` returns.

    Without any node there are no figures to show: what is not known is not zero.
    """
    if content["nodes"]:
        _print_figures(content, to)
    print_table(
        "sources",
        ("source", "seconds", "problem"),
        [(s["name"], round(s["seconds"], 3), s["problem"] or "-") for s in content["sources"]],
        to,
    )


def _print_figures(content: dict[str, Any], to: TextIO) -> None:
    print_table(
        "groups",
        ("group", "power HS06", "cores 1-core", "cores multicore", "pending 1-core", "pending multicore"),
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
    print_table(
        "nodes",
        ("node", "cores", "HS06/core", "controlled", "held by group"),
        [
            (
                node["name"],
                node["cores"],
                round(node["hs06_per_core"], 2),
                "yes" if node["controlled"] else "no",
                " ".join(f"{group}:{cores}" for group, cores in sorted(node["cores_by_group"].items())),
            )
            for node in content["nodes"]
        ],
        to,
    )


def _shown(cell: object) -> str:
    return "".join(character if character.isprintable() else "?" for character in str(cell))
