"""The demo's picture: each group's part of the power over time, beside the part that is due."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from sharectl.model import GroupError, GroupUsage
from sharectl.report.scale import ticks_up_to
from sharectl.report.svg import Curve, Figure, document

MINUTE_SECONDS = 60
UNIT = "% of the power in use"


def log_rows(log: Path) -> list[tuple[int, GroupError]]:
    """Unix seconds, and power and pledge of a group, of each row of a shares_Error.log."""
    rows = []
    for line in log.read_text(encoding="ascii").splitlines():
        if not line.startswith("#"):
            taken_at, group, *numbers = line.split()
            pledge, cores, _, _, hs06, beyond, *_ = map(float, numbers)
            error = GroupError(group, pledge, cores, hs06, beyond, GroupUsage())
            rows.append((int(taken_at), error))
    return rows


def shares(rows: Iterable[tuple[int, GroupError]], switched_on: int) -> str:
    """SVG file of the groups' parts of the power.

    Parameters
    ----------
    rows
        Unix seconds of a look and one group's row of it, at least one, in any order.
    switched_on
        Unix seconds at which sharectl began to steer.
    """
    looks: defaultdict[int, dict[str, GroupError]] = defaultdict(dict)
    for moment, error in rows:
        looks[moment][error.group] = error
    origin = min(looks)
    minutes = max(1.0, (max(looks) - origin) / MINUTE_SECONDS)
    pledges = {group: error.pledge_hs06 for group, error in looks[origin].items()}
    curves = []
    for number, (group, pledge_hs06) in enumerate(pledges.items()):
        readings = []
        for moment, errors in sorted(looks.items()):
            power = {
                name: error.power_minus_pledge_hs06 + error.pledge_hs06
                for name, error in errors.items()
            }
            whole = sum(power.values())
            part = 100 * power[group] / whole if whole else None
            readings.append(((moment - origin) / MINUTE_SECONDS, part))
        curves.append(Curve(group, f"group{number}", readings))
        due = 100 * pledge_hs06 / sum(pledges.values())
        curves.append(Curve(f"{group}, due", f"group{number + 4}", [(0.0, due), (minutes, due)]))
    figure = Figure(
        key="shares",
        title=UNIT,
        description=f"Of {', '.join(pledges)}, over {minutes:.0f} minutes.",
        across=(0.0, minutes),
        ticks=ticks_up_to(minutes, 5),
        unit=UNIT,
        curves=curves,
        marks=[((switched_on - origin) / MINUTE_SECONDS, "sharectl on")],
        across_words="minutes",
    )
    return document([figure])
