"""The demo's terminal: a live picture where there is a terminal, a line a cycle elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any, Optional

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from poolbox.demo import scenario
from poolbox.demo.pictures import NodePicture, cores_by_group
from poolbox.demo.story import Moment, Phase
from sharectl.plan.plan import REASONS
from sharectl.words import counted

IDLE = "."
STYLES = {scenario.HELD_BACK: "blue", scenario.HELPED: "bold yellow", IDLE: "dim"}
LETTERS = {scenario.HELD_BACK: "a", scenario.HELPED: "C"}
LEGEND = (
    f"a letter a core: a = {scenario.HELD_BACK} (1-core jobs), C = {scenario.HELPED} "
    f"({scenario.MULTICORE_CORES}-core jobs), . = idle\n"
    "grace = cores that a large job can use are kept from small ones for a while"
)
# What sharectl says when it names no node, in the words of the demo.
PLAINLY = {
    "no-group-over": "no node told anything: no error is worth a node's eight cores",
    "no-group-under": "no node told anything: no group in need has large jobs waiting",
    "no-node": "no node told anything: no node that sharectl may steer has eight cores to give",
    "error-below-node": "no node told anything: the error is smaller than a node's eight cores",
}
ERROR_COLUMNS = ("group", "pledge", "due", "power", "error", "cores", "8-core jobs wait")


class Screen:
    """Says what happens and shows what is seen."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.began = time.monotonic()
        self._live: Optional[Live] = None

    def say(self, text: str) -> None:
        """Print a sentence that stays: beside the time on a terminal, as one line elsewhere."""
        clock = f"{time.monotonic() - self.began:5.0f} s  "
        if self.console.is_terminal:
            line = Table.grid()
            line.add_row(Text(clock, style="dim"), Text(text))
            self.console.print(line)
        else:
            self.console.print(clock + text, soft_wrap=True, markup=False, highlight=False)

    @contextlib.contextmanager
    def picture(self) -> Iterator[None]:
        """Keep a live picture while the block runs; what it showed last stays."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, auto_refresh=False) as self._live:
            yield
        self._live = None

    def show(self, moment: Moment) -> None:
        """Show a look: in the live picture, or as a line when its cycle is a new one."""
        if self._live is not None:
            self._live.update(moment_picture(moment), refresh=True)
        elif moment.fresh:
            self.say(moment_line(moment))

    def summary(self, before: Phase, after: Phase) -> None:
        """Print what the two phases came to, side by side."""
        table = summary_table(before, after)
        table.box = box.SIMPLE_HEAD if self.console.is_terminal else None
        self.console.print(table)


def moment_picture(moment: Moment) -> Group:
    """Groups, nodes and the plan at one moment."""
    return Group(_groups(moment), _nodes(moment), Text(_plan(moment)), Text(LEGEND, style="dim"))


def moment_line(moment: Moment) -> str:
    """Moment in a line."""
    held = cores_by_group(moment.nodes)
    parts = [
        f"{group} {held[group]} cores{_error(moment, group)}" for group in scenario.PLEDGE_HS06
    ]
    idle = sum(node.idle_cores for node in moment.nodes)
    return f"{', '.join(parts)}; {idle} idle; {_plan(moment)}"


def summary_table(before: Phase, after: Phase) -> Table:
    """Table of the figures of both phases."""
    table = Table(title="before and after", title_justify="left")
    table.add_column("")
    for phase in (before, after):
        table.add_column(phase.name, justify="right")
    columns = [_figures(phase) for phase in (before, after)]
    for name in columns[0]:
        table.add_row(name, *(column[name] for column in columns))
    return table


def _figures(phase: Phase) -> dict[str, str]:
    held = cores_by_group(phase.last_nodes)
    last = phase.measured[-1]
    rows = last.record["errors"] if last.record else []
    return {
        **{f"{group}: cores at the end": str(held[group]) for group in scenario.PLEDGE_HS06},
        **{
            f"{row['group']}: power / due at the end, HS06": (
                f"{row['power_hs06']:.0f} / {_due(row):.0f}"
            )
            for row in rows
        },
        **{f"{row['group']}: error at the end, HS06": f"{row['error_hs06']:+.0f}" for row in rows},
        "8-core jobs started": str(phase.large_jobs_started),
        f"idle cores of {scenario.POOL_CORES}, on average": f"{phase.idle_cores_mean:.1f}",
    }


def _plain_table(title: str) -> Table:
    """Few lines: the whole picture fits a terminal of 80 by 24."""
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)


def _groups(moment: Moment) -> Table:
    table = _plain_table("groups, in HS06; error = power - due")
    for column in ERROR_COLUMNS:
        table.add_column(column, justify="left" if column == "group" else "right")
    for row in moment.cycle.record["errors"] if moment.cycle.record else []:
        table.add_row(
            Text(row["group"], style=STYLES.get(row["group"], "")),
            f"{row['pledge_hs06']:.0f}",
            f"{_due(row):.0f}",
            f"{row['power_hs06']:.0f}",
            f"{row['error_hs06']:+.0f}",
            str(row["cores"]),
            str(row["pending_multi_jobs"]),
        )
    return table


def _nodes(moment: Moment) -> Table:
    table = _plain_table("nodes")
    for column in ("node", "HS06/core", f"its {scenario.NODE_CORES} cores", "told to"):
        table.add_column(column, no_wrap=True)
    for node, power_hs06 in zip(moment.nodes, scenario.NODE_POWERS_HS06):
        table.add_row(
            node.name, f"{power_hs06 / scenario.NODE_CORES:.0f}", _cores(node), _orders(node)
        )
    return table


def _cores(node: NodePicture) -> Text:
    drawn = Text()
    for group, letter in LETTERS.items():
        drawn.append(letter * node.held_cores.get(group, 0), style=STYLES[group])
    return drawn.append(IDLE * node.idle_cores, style=STYLES[IDLE])


def _orders(node: NodePicture) -> str:
    orders = []
    if node.target:
        orders.append(
            f"{node.target.held_back} at most {node.target.cap_cores}, {node.target.helped} in"
        )
    if node.in_grace:
        orders.append("grace")
    return "; ".join(orders) or "-"


def _plan(moment: Moment) -> str:
    record = moment.cycle.record or {}
    plan, nodes_then = record.get("plan"), record.get("nodes")
    if not plan:
        return (
            "this cycle changed nothing: "
            f"{moment.cycle.errors.splitlines()[-1] if moment.cycle.errors else '?'}"
        )
    if not plan["targets"]:
        if nodes_then and not nodes_then["controlled"]:
            return "sharectl only measures: no node is under its control"
        return PLAINLY.get(plan["reason"], f"no node told anything: {REASONS[plan['reason']]}")
    nodes, target = counted(len(plan["targets"]), "node"), plan["targets"][0]
    return f"{nodes} told to hold {target['held_back']} back for {target['helped']}"


def _error(moment: Moment, group: str) -> str:
    return f" (error {moment.cycle.error_hs06(group):+.0f} HS06)" if moment.cycle.measured else ""


def _due(row: dict[str, Any]) -> float:
    return float(row["power_hs06"] - row["error_hs06"])
