"""Tables for people: in colour on a terminal, plain text elsewhere.

The table of all codes in ``docs/why.md``.

Lines of a table that lose nothing: as wide as its cells where there is room, wrapped or stacked
where there is not.

One screen of words for people: labels on the left, text beside them, nothing that steers a
terminal.

What a plan would change, as JSON and for people.

``sharectl replay``: rows as they come, and a summary; as text, JSON or CSV, without holding all of
them.

Why no plan is published, in a line: what an operator said when he switched sharectl off, or who did
not answer.
"""

from __future__ import annotations

import csv
import heapq
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from itertools import zip_longest
from textwrap import wrap
from typing import Any, Optional, TextIO

from rich.cells import cell_len

from sharectl.explain.again import Outcome, ReplayedCycle, Summary
from sharectl.explain.codes import CODES, FAMILIES
from sharectl.model import SCHEMA_VERSION, Disabled, Plan, Target
from sharectl.plan.diff import KINDS, PlanDiff, TargetChange
from sharectl.plan.plan import REASONS
from sharectl.shares.pledges import SOURCE_NAME
from sharectl.times import shown, span
from sharectl.words import counted

HEADING = "## Codes\n"


def reference() -> str:
    """Markdown of the section, from its heading on."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield HEADING
    yield (
        "The set is closed: every code of every module is here, and a later version does not use "
        "one for something else."
    )
    yield "`sharectl explain codes [CODE …] [--json]` prints the same."
    for family, codes in CODES.items():
        yield f"\n### {family}: {FAMILIES[family]}\n"
        yield "| code | meaning |"
        yield "|---|---|"
        yield from (
            f"| `{code}` | {says.replace('|', chr(92) + '|')} |" for code, says in codes.items()
        )


_GAP = "  "
_NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?%?|[?-]|inf|nan")
_BREAK = re.compile(r"(?<=[/=@])|(?<=[:,._-])(?=[^\W\d])|(?<=[^\W\d][:,])")
"""Where a word may go on in the next line: never within a number."""


def laid_out(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: Optional[int]
) -> list[list[str]]:
    """Lines of the heading and of each row, none with blanks at its end.

    Parameters
    ----------
    width
        Characters that a line may have; None for as many as it takes. Where not even wrapped cells
        fit, rows are stacked: a line for each cell, behind its column's name, and no heading.
    """
    cells = [[column, *(row[number] for row in rows)] for number, column in enumerate(columns)]
    widths = [max(map(cell_len, column)) for column in cells]
    if width is not None and not _narrowed(widths, [_narrowest(column) for column in cells], width):
        return [[], *(_stacked(columns, row) for row in rows)]
    right = [bool(rows) and all(map(_NUMBER.fullmatch, column[1:])) for column in cells]
    return [_table_layout_row(row, widths, right) for row in (columns, *rows)]


def printable(cell: object) -> str:
    """A cell as text in one line that steers no terminal: control characters are escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in str(cell)
    )


def _narrowed(widths: list[int], least: Sequence[int], width: int) -> bool:
    """Take from the widest columns until a line fits; whether it then does."""
    room = width - len(_GAP) * (len(widths) - 1)
    if sum(least) > room:
        return False
    while sum(widths) > room:
        widest = max(
            (number for number in range(len(widths)) if widths[number] > least[number]),
            key=lambda n: widths[n],
        )
        widths[widest] -= 1
    return True


def _narrowest(cells: Iterable[str]) -> int:
    return max((cell_len(piece) for cell in cells for piece in _pieces(cell)), default=0)


def _pieces(text: str) -> list[str]:
    """What must stay in one line; blanks are at the ends of pieces, and do not count there."""
    return [piece for word in text.split() for piece in _BREAK.split(word) if piece]


def _table_layout_row(
    cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]
) -> list[str]:
    wrapped = [_wrapped(cell, width) for cell, width in zip(cells, widths)]
    return [
        _GAP.join(
            (" " * (width - cell_len(part)) + part)
            if to_the_right
            else (part + " " * (width - cell_len(part)))
            for part, width, to_the_right in zip(parts, widths, right)
        ).rstrip()
        for parts in zip_longest(*wrapped, fillvalue="")
    ]


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of a cell: whole words where they fit, pieces of a word that is too long."""
    if cell_len(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        whole = cell_len(word) <= width
        for number, piece in enumerate([word] if whole else _pieces(word)):
            joint = "" if number or not lines[-1] else " "
            if cell_len(lines[-1] + joint + piece) <= width:
                lines[-1] += joint + piece
            else:
                lines.append(piece)
    return lines if lines[0] else lines[1:]


def _stacked(columns: Sequence[str], row: Sequence[str]) -> list[str]:
    label = max(map(cell_len, columns))
    lines = [
        f"{column}{' ' * (label - cell_len(column))}{_GAP}{cell}".rstrip()
        for column, cell in zip(columns, row)
    ]
    return [*lines, ""]


WIDTH = 80
LINES = 23
"""Of a screen of 24: the last one is the prompt's."""
_LABEL = 10


def print_screen(
    title: str, rows: Iterable[tuple[str, str]], to: TextIO, *, everything: bool
) -> None:
    """Print a title and a text for each label; what is beyond one screen only if ``everything``.

    A text that follows one of the same label stands below it without the label.
    """
    lines = screen(title, rows)
    if not everything and len(lines) > LINES:
        left = len(lines) - (LINES - 1)
        lines = [*lines[: LINES - 1], f"… and {counted(left, 'line')} more: --all"]
    to.writelines(f"{line}\n" for line in lines)


def screen(title: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of the same, none longer than `WIDTH` but for words that are."""
    lines = wrap(
        printable(title),
        WIDTH,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    last = ""
    for label, text in rows:
        head = "" if label == last else label
        last = label
        indent = " " * (_LABEL + 2)
        lines += wrap(
            printable(text),
            WIDTH,
            initial_indent=f"{head:<{_LABEL}}  ",
            subsequent_indent=indent,
            break_on_hyphens=False,
            break_long_words=False,
        ) or [f"{head:<{_LABEL}}  -"]
    return lines


def print_paragraph(text: str, to: TextIO) -> None:
    """Print a text on lines of at most `WIDTH`, but for words that are longer."""
    lines = wrap(printable(text), WIDTH, break_on_hyphens=False, break_long_words=False)
    to.writelines(f"{line}\n" for line in lines)


def listed(names: Sequence[str], most: int) -> str:
    """Names of nodes, the first ``most`` of them, and how many there are if that is not all."""
    if len(names) <= most:
        return " ".join(names)
    return f"{' '.join(names[:most])} … ({len(names)} in all)"


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], to: TextIO
) -> None:
    """Print one table; numbers are set right. Text is shown as it is, never as markup.

    On a terminal lines are no longer than it is wide (`table_layout`); elsewhere they are as long
    as they must be, a line a row.
    """
    is_terminal = to.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else None
    heading, *rest = laid_out(
        [printable(column) for column in columns],
        [[printable(cell) for cell in row] for row in rows],
        width,
    )
    lines = [line for row in rest for line in row]
    titles = wrap(printable(title), width) if width else [printable(title)]
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
            [
                (part["name"] or "-", part["cores"], part["pending_jobs"])
                for part in content["others"]
            ],
            to,
        )
    if content["unplaceable"]:
        print_table(
            "pending jobs that no node could run if it were empty: they are no demand",
            ("group", "cores", "jobs", "reason", "sharectl explain job"),
            [
                (
                    jobs["group"],
                    jobs["cores"],
                    jobs["jobs"],
                    jobs["reason"] or "-",
                    jobs["example"] or "-",
                )
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
                " ".join(
                    f"{group}:{cores}" for group, cores in sorted(node["cores_by_group"].items())
                ),
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
        (
            "group",
            "cores",
            "longest",
            "median",
            "looked at",
            "started: longest",
            "median",
            "looked at",
        ),
        [
            (row["group"], row["cores"], *_times(row["pending"]), *_times(row["started"]))
            for row in rows
        ],
        to,
    )


def _times(times: Optional[Mapping[str, Any]]) -> tuple[str, str, str]:
    if times is None:
        return ("?", "?", "-")
    least = ">= " if times["sampled"] else ""
    longest, median = span(times["longest_seconds"]), span(times["median_seconds"])
    return (
        f"{least}{longest}",
        median,
        f"{times['jobs']}{' (sample)' if times['sampled'] else ''}",
    )


def _said(node: Mapping[str, Any]) -> str:
    """What a node says of itself: that it is drained, what keeps it from targets, or the plan that it acts on."""
    words = ["draining"] if node["draining"] else []
    if node["refusal"]:
        words.append(node["refusal"])
    if node["obeyed_sequence"]:
        words.append(f"acts on plan {node['obeyed_sequence']}")
    return ", ".join(words) or "-"


ROWS = 14
"""Changes that one screen has room for."""


def as_data(diff: PlanDiff, decided: Plan, beside: str) -> dict[str, Any]:
    """Keys: beside (what it is compared with), sequence, reason, counts by kind, changes, effect."""
    return {
        "beside": beside,
        "sequence": decided.sequence,
        "reason": decided.reason,
        "counts": {kind: diff.count(kind) for kind in KINDS},
        "changes": [
            {
                "kind": change.kind,
                "nodes": change.nodes,
                "before": _plan_diff_data(change.before),
                "after": _plan_diff_data(change.after),
            }
            for change in diff.changes
        ],
        "effect": asdict(diff.effect),
    }


def print_diff(diff: PlanDiff, decided: Plan, beside: str, to: TextIO, *, everything: bool) -> None:
    """Print counts, the changes (those that fit on one screen unless ``everything``), and what they do."""
    counts = ", ".join(f"{diff.count(kind)} {kind}" for kind in KINDS)
    print_paragraph(f"beside {beside}: {counts}", to)
    print_paragraph(REASONS[decided.reason], to)
    rows = [change for change in diff.changes if everything or change.kind != "kept"]
    if rows:
        listed = rows if everything else rows[:ROWS]
        print_table(
            "",
            ("change", "node", "before", "after"),
            [_plan_diff_row(change) for change in listed],
            to,
        )
        if len(rows) > len(listed):
            to.write(f"… and {len(rows) - len(listed)} more: --all\n")
    if any(change.kind != "kept" for change in diff.changes):
        _print_effect(diff, to)


def _print_effect(diff: PlanDiff, to: TextIO) -> None:
    effect = diff.effect
    power = ", ".join(f"{group} {gain:+.0f}" for group, gain in effect.power_hs06.items()) or "none"
    print_paragraph(f"power that changes hands, HS06: {power}", to)
    come, gone = (
        "unknown" if idle is None else f"{idle:.0f}"
        for idle in (effect.idle_core_seconds, effect.spared_idle_core_seconds)
    )
    idle = f"{come} for targets that come, {gone} spared by those that go"
    print_paragraph(f"idle core-seconds expected: {idle}", to)
    if effect.unknown_nodes:
        print_paragraph(
            f"left out, since nothing is known of them: {counted(effect.unknown_nodes, 'node')}", to
        )


def _plan_diff_row(change: TargetChange) -> tuple[str, str, str, str]:
    return (change.kind, " -> ".join(change.nodes), words(change.before), words(change.after))


def words(target: Optional[Target]) -> str:
    """A target in words, without its node: who keeps how many cores, and who is let in by which size."""
    if target is None:
        return "-"
    return f"{target.held_back} <= {target.cap_cores}, {target.helped} by {target.request_cores}"


def _plan_diff_data(target: Optional[Target]) -> Optional[dict[str, Any]]:
    return None if target is None else asdict(target)


OPEN_LOOP = (
    "open loop: the pool is what it was in each cycle and does not react to what is decided "
    "here; what such a law would "
    "have made of the pool is not told"
)
MAY_DIFFER = (
    "where nothing was changed decisions can differ too: run times are those known today and "
    "jobs' ages are rounded, so "
    "that of nodes about alike another one is chosen, whose target then stands in the cycles "
    "after (docs/why.md)"
)
LISTED = 8
"""Cycles that one screen has room for."""

_FIELDS = ("reason", "targets", "changed_nodes", "pairs", "moved_hs06", "idle_core_seconds")
COLUMNS = (
    "cycle",
    "taken_at",
    "agreement_ratio",
    *(f"{side}_{name}" for side in ("was", "would") for name in _FIELDS),
)


def write_csv(cycles: Iterable[ReplayedCycle], heading: Mapping[str, Any], to: TextIO) -> Summary:
    """A row a cycle; cells of what is not known are empty."""
    del heading
    summary = Summary()
    rows = csv.writer(to, lineterminator="\n")
    rows.writerow(COLUMNS)
    for cycle in _counted(cycles, summary):
        rows.writerow([_cell(value) for value in _flat(cycle).values()])
    return summary


def write_json(cycles: Iterable[ReplayedCycle], heading: Mapping[str, Any], to: TextIO) -> Summary:
    """One object: heading, cycles one a line, summary."""
    summary = Summary()
    opening = {"schema_version": SCHEMA_VERSION, "kind": "replay", **heading, "note": OPEN_LOOP}
    to.write(json.dumps(opening)[:-1] + ', "cycles": [')
    to.writelines(
        f"{',' if number else ''}\n{json.dumps(_replay_data(cycle))}"
        for number, cycle in enumerate(_counted(cycles, summary))
    )
    to.write(f'\n], "summary": {json.dumps(summary_data(summary))}}}\n')
    return summary


def write_text(
    cycles: Iterable[ReplayedCycle], heading: Mapping[str, Any], to: TextIO, *, everything: bool
) -> Summary:
    """The cycles that differ most, or a line for each; then the summary."""
    summary = Summary()
    seen = _counted(cycles, summary)
    if everything:
        _write_rows(seen, to)
    else:
        listed = _most_different(seen)
        if listed:
            print_table(
                "the cycles that differ most, those first",
                _TABLE,
                [_replay_row(cycle) for cycle in listed],
                to,
            )
    if summary.cycles:
        _print_summary(summary, heading, to)
    return summary


FORMATS: Mapping[str, Callable[[Iterable[ReplayedCycle], Mapping[str, Any], TextIO], Summary]] = {
    "json": write_json,
    "csv": write_csv,
}


def summary_data(summary: Summary) -> dict[str, Any]:
    """The summary for JSON."""
    return {
        "cycles": summary.cycles,
        "compared": summary.compared,
        "identical": summary.identical,
        "agreement_ratio": summary.agreement_ratio,
        "first_at": summary.first_at,
        "last_at": summary.last_at,
        "was": asdict(summary.was),
        "would": asdict(summary.would),
        "note": MAY_DIFFER if summary.identical < summary.compared else None,
    }


def _counted(cycles: Iterable[ReplayedCycle], summary: Summary) -> Iterator[ReplayedCycle]:
    for cycle in cycles:
        summary.add(cycle)
        yield cycle


def _most_different(cycles: Iterable[ReplayedCycle]) -> list[ReplayedCycle]:
    """Those whose targets agree least, these first; only so many are held at once."""
    differing = (cycle for cycle in cycles if cycle.same_nodes < cycle.either_nodes)
    return heapq.nsmallest(
        LISTED, differing, key=lambda cycle: (cycle.agreement_ratio, cycle.taken_at)
    )


_TABLE = ("cycle", "time", "agree", "targets", "pairs", "HS06", "would", "pairs", "HS06")
_WIDTHS = (6, 19, 5, 7, 5, 6, 5, 5, 6)


def _replay_row(cycle: ReplayedCycle) -> tuple[object, ...]:
    would = cycle.would
    theirs = (would.targets, would.pairs, round(would.moved_hs06)) if would else ("-", "-", "-")
    was = cycle.was
    return (
        cycle.number,
        shown(cycle.taken_at).rpartition(" ")[0],
        f"{cycle.agreement_ratio:.0%}" if would else "-",
        *(was.targets, was.pairs, round(was.moved_hs06)),
        *theirs,
    )


def _write_rows(cycles: Iterable[ReplayedCycle], to: TextIO) -> None:
    """A row a cycle as it comes, below one heading: columns have fixed widths, since the rows to come are not known."""
    for number, cells in enumerate(map(_replay_row, cycles)):
        if not number:
            to.write(f"{_in_columns(_TABLE)}\n")
        to.write(f"{_in_columns(cells)}\n")


def _in_columns(cells: Sequence[object]) -> str:
    return "  ".join(f"{cell!s:>{width}}" for cell, width in zip(cells, _WIDTHS))


def _print_summary(summary: Summary, heading: Mapping[str, Any], to: TextIO) -> None:
    sides = {"was": summary.was, "would have been": summary.would}
    compared = max(1, summary.compared)
    print_paragraph(f"decided by {heading['decides']}", to)
    print_table(
        f"means of {counted(summary.compared, 'complete cycle')} of {summary.cycles}",
        ("", "active", "targets", "pairs", "changed", "HS06 to move", "idle core-s"),
        [
            (
                name,
                f"{side.with_targets / compared:.0%}",
                *(
                    _mean(total, compared)
                    for total in (side.targets, side.pairs, side.changed_nodes)
                ),
                round(side.moved_hs06 / compared),
                "?" if side.idle_core_seconds is None else round(side.idle_core_seconds / compared),
            )
            for name, side in sides.items()
        ],
        to,
    )
    agreement = summary.agreement_ratio
    if agreement is not None:
        print_paragraph(
            "active: cycles with any target; agree: nodes with the same target in both, of "
            "those with one in either: "
            f"{agreement:.1%} on average, and all of them in {counted(summary.identical, 'cycle')}",
            to,
        )
    if summary.identical < summary.compared:
        print_paragraph(MAY_DIFFER, to)
    print_paragraph(OPEN_LOOP, to)


def _mean(total: float, count: int) -> str:
    return f"{total / count:.1f}"


def _replay_data(cycle: ReplayedCycle) -> dict[str, Any]:
    return {
        "cycle": cycle.number,
        "taken_at": cycle.taken_at,
        "agreement_ratio": cycle.agreement_ratio if cycle.would else None,
        "was": asdict(cycle.was),
        "would": asdict(cycle.would) if cycle.would else None,
    }


def _flat(cycle: ReplayedCycle) -> dict[str, Any]:
    ratio = round(cycle.agreement_ratio, 4) if cycle.would else None
    return dict(
        zip(
            COLUMNS,
            (cycle.number, cycle.taken_at, ratio, *_values(cycle.was), *_values(cycle.would)),
        )
    )


def _values(outcome: Optional[Outcome]) -> list[Any]:
    return [getattr(outcome, name, None) for name in _FIELDS]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float) and abs(value) > 1 else printable(value)


def disabled_words(said: Disabled) -> str:
    """Such as ``since 2026-07-01T08:00:00Z by ann@cm until enabled: new cooling``."""
    until = "enabled" if said.until is None else utc(said.until)
    return f"since {utc(said.since)} by {said.who} until {until}: {said.reason}"


def utc(unix_seconds: int) -> str:
    """Time as ISO 8601 has it, or the number if that has no year."""
    try:
        return f"{datetime.fromtimestamp(unix_seconds, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return str(unix_seconds)


def unanswered_words(sources: Sequence[str]) -> str:
    """Why a cycle decided nothing: the sources that had no answer."""
    silent = ", ".join(name for name in sources if name != SOURCE_NAME).replace('"', "'")
    pool = f"the pool did not answer completely ({silent})" if silent else ""
    pledges = "no pledges" if SOURCE_NAME in sources else ""
    return ", ".join(filter(None, (pledges, pool))) or "the pool did not answer completely"
