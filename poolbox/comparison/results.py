"""Results of a comparison: a folder of runs, and the tables and the picture made of them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Callable, NamedTuple, Optional

from poolbox.comparison.recording import STEP_SECONDS, TWIN, Record
from poolbox.comparison.scenario import SCALE, SCENARIOS
from poolbox.demo.scenario import CHECKOUT, HELPED, PLEDGE_HS06
from poolbox.errors import PoolboxError
from sharectl.report.scale import ticks_up_to
from sharectl.report.svg import Curve, Figure, document

RUNS, BOUND = "runs.jsonl", "bound.json"
PICTURE = "docs/pictures/comparison.svg"
NAMES = {
    "nothing": "group quotas",
    "defrag": "condor_defrag",
    "static": "fixed nodes",
    "live": "sharectl",
}
"""Strategy -> its name in the table and the picture, in their order."""
LEAST = {"bound": "least possible"}
LEAST_OF_WHOM = "Least possible: of a method that knows all jobs in advance and kills none."
UNKNOWN = "-"
KINDS = "pool", TWIN


class Measure(NamedTuple):
    """A column of a table."""

    title: str
    value: Callable[[Record], Optional[float]]
    """None: never."""
    decimals: int = 1


MEASURES = {
    "missing": Measure("power missing, %", lambda run: run.rms_percent),
    "late": Measure("second half", lambda run: run.late_rms_percent),
    "hours": Measure("hours to 90 % of due", lambda run: run.reached_hours),
    "idle": Measure("extra idle cores", lambda run: run.idle_cores),
    "killed": Measure("jobs killed", lambda run: run.killed_jobs, 0),
}


class Results(NamedTuple):
    """Runs of one length."""

    runs: Sequence[Record]
    bound: Mapping[str, Mapping[str, float]]
    """Scenario -> key of a measure -> least value without killing; empty if there is no file."""

    @classmethod
    def of(cls, folder: Path) -> Results:
        """Results of a folder. Raises PoolboxError if lengths differ."""
        path, bound = folder / RUNS, folder / BOUND
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        runs = [Record(**json.loads(line)) for line in lines]
        if len({run.seconds for run in runs}) > 1:
            raise PoolboxError(f"{path}: runs of several lengths; write a folder for each")
        return cls(runs, json.loads(bound.read_text("utf-8")) if bound.exists() else {})

    def readme(self) -> str:
        """Markdown of the pools, or of twins alone: each cell has all scenarios."""
        columns = {
            measure.title: [(key, scenario, self.kind) for scenario in SCENARIOS]
            for key, measure in MEASURES.items()
        }
        rows = self._table(" / ".join(SCENARIOS), {**NAMES, **LEAST}, columns)
        return f"{rows}\n\nOn {self._terms(self.kind)}.\n{LEAST_OF_WHOM}"

    def simulate(self) -> str:
        """Markdown of pools beside twins, a column for each scenario and measure."""
        columns = {
            f"{scenario}: {MEASURES[key].title}": [(key, scenario, kind) for kind in KINDS]
            for scenario in SCENARIOS
            for key in ("missing", "idle")
        }
        rows = self._table("", {name: f"`{name}`" for name in NAMES}, columns)
        pools, twins = map(self._terms, KINDS)
        return f"{rows}\n\nPools / twins: {pools};\n{twins}."

    def picture(self) -> str:
        """SVG file: cores of the group that comes back, on pools, one line a strategy."""
        curves = []
        for number, (strategy, name) in enumerate(reversed(NAMES.items())):
            chosen = self._chosen("steady", strategy, self.kind)
            series = [fmean(cores) for cores in zip(*(run.returning_cores for run in chosen))]
            hours = STEP_SECONDS * SCALE / 3600
            readings = [(hours * (place + 0.5), cores) for place, cores in enumerate(series)]
            curves.append(Curve(name, f"group{number}", readings))
        first = self.runs[0]
        due = first.pool_cores * PLEDGE_HS06[HELPED] / sum(PLEDGE_HS06.values())
        most = first.seconds * SCALE / 3600
        curves.append(Curve("its due", "group5", [(0.0, due), (most, due)]))
        unit = f"cores of {HELPED}, of {first.pool_cores}"
        figure = Figure(
            key="cores",
            title=f"Cores of a group that comes back, of {first.pool_cores}",
            description=f"One line for each of {', '.join(NAMES.values())}, over {most:.0f} hours.",
            across=(0.0, most),
            ticks=ticks_up_to(most, 6),
            unit=unit,
            curves=curves,
            across_words="hours of a site",
        )
        return document([figure])

    @property
    def kind(self) -> str:
        """Pools; twins if no run was on a pool."""
        return KINDS[all(run.source == TWIN for run in self.runs)]

    def _table(
        self,
        corner: str,
        names: Mapping[str, str],
        columns: Mapping[str, list[tuple[str, str, str]]],
    ) -> str:
        """Markdown table: title -> measure, scenario and kind of each figure of its cells."""
        rows = [[corner, *columns], ["---"] * (len(columns) + 1)]
        for strategy, name in names.items():
            cells = (
                " / ".join(self._cell(strategy, *figure) for figure in figures)
                for figures in columns.values()
            )
            rows.append([name, *cells])
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def _chosen(self, scenario: str, strategy: str, kind: str) -> list[Record]:
        return [
            run
            for run in self.runs
            if (run.scenario, run.strategy) == (scenario, strategy)
            and (run.source == TWIN) == (kind == TWIN)
        ]

    def _cell(self, strategy: str, key: str, scenario: str, kind: str) -> str:
        """Mean and standard deviation of a measure."""
        measure = MEASURES[key]
        if strategy in LEAST:
            least = self.bound.get(scenario, {}).get(key)
            return UNKNOWN if least is None else f"{least:.{measure.decimals}f}"
        values = [measure.value(run) for run in self._chosen(scenario, strategy, kind)]
        numbers = [value for value in values if value is not None]
        if not numbers:
            return "never" if values else UNKNOWN
        alone = self._chosen(scenario, "nothing", kind) if key == "idle" else []
        mean = fmean(numbers) - (fmean(run.idle_cores for run in alone) if alone else 0.0)
        spread = stdev(numbers) if len(numbers) > 1 else 0.0
        text = f"{mean:.{measure.decimals}f}"
        if spread >= 0.5 * 10**-measure.decimals:
            text += f"±{spread:.{measure.decimals}f}"
        never = len(values) - len(numbers)
        return f"{text}, never in {never} of {len(values)}" if never else text

    def _terms(self, kind: str) -> str:
        """Versions, time, seeds."""
        runs = [run for run in self.runs if (run.source == TWIN) == (kind == TWIN)]
        if not runs:
            return "no runs"
        sources = sorted({run.source for run in runs})
        seeds = len({run.seed for run in runs})
        return (
            f"{'the digital twin' if kind == TWIN else 'HTCondor ' + ', '.join(sources)}, "
            f"{runs[0].seconds / 60:g} minutes at 1/{SCALE} of a site's times, "
            f"means ± standard deviations of {seeds} seeds"
        )


def append(folder: Path, run: Record) -> None:
    """Add a run to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / RUNS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(dataclasses.asdict(run), separators=(",", ":")) + "\n")


def write_bound(folder: Path, least_percent: Mapping[str, Sequence[float]]) -> None:
    """Keep the mean of the least power that is missing, percent, of each scenario's seeds."""
    bound = {name: {"missing": fmean(percent)} for name, percent in least_percent.items()}
    (folder / BOUND).write_text(json.dumps(bound) + "\n", encoding="utf-8")


def written(results: Results) -> dict[Path, str]:
    """File of the checkout -> its content with these results."""
    contents = {CHECKOUT / PICTURE: results.picture()}
    for page, name, block in (
        (CHECKOUT / "README.md", "comparison", results.readme()),
        (CHECKOUT / "docs/measurements.md", "twins", results.simulate()),
    ):
        begin, end = f"<!-- {name} -->\n\n", f"\n\n<!-- end of {name} -->"
        before, mark, rest = page.read_text(encoding="utf-8").partition(begin)
        if not mark or end not in rest:
            raise PoolboxError(f"{page}: no {begin.strip()} … {end.strip()}")
        contents[page] = before + begin + block + rest[rest.index(end) :]
    return contents
