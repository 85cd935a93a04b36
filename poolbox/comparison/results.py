"""Results of a comparison: a folder of runs, and the tables and the picture made of them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Callable, NamedTuple, Optional

from poolbox.comparison.recording import STEP_SECONDS, TWIN, Record
from poolbox.comparison.scenario import SCENARIOS
from poolbox.demo.scenario import CHECKOUT, HELPED, PLEDGE_HS06
from poolbox.errors import PoolboxError
from sharectl.report.scale import ticks_up_to
from sharectl.report.svg import Curve, Figure, document, limits_of

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
UNKNOWN = "-"


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
    """Runs of one length and scale."""

    runs: Sequence[Record]
    bound: Mapping[str, Mapping[str, float]]
    """Scenario -> key of a measure -> least value without killing; empty if there is no file."""

    @classmethod
    def of(cls, folder: Path) -> Results:
        """Results of a folder. Raises PoolboxError if lengths or scales differ."""
        path, bound = folder / RUNS, folder / BOUND
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        runs = [Record(**json.loads(line)) for line in lines]
        if len({(run.seconds, run.scale) for run in runs}) > 1:
            raise PoolboxError(f"{path}: several lengths or scales; write a folder for each")
        return cls(runs, json.loads(bound.read_text("utf-8")) if bound.exists() else {})

    def readme(self) -> str:
        """Markdown of the pools, or of twins alone: each cell has all scenarios."""
        rows = [
            [
                name,
                *(
                    " / ".join(
                        self._cell(key, strategy, scenario, twin=self.twins_alone)
                        for scenario in SCENARIOS
                    )
                    for key in MEASURES
                ),
            ]
            for strategy, name in {**NAMES, **LEAST}.items()
        ]
        titles = [" / ".join(SCENARIOS), *(measure.title for measure in MEASURES.values())]
        return f"{table(titles, rows)}\n\nOn {self._terms(twin=self.twins_alone)}."

    @property
    def twins_alone(self) -> bool:
        """True if no run was on a pool."""
        return all(run.source == TWIN for run in self.runs)

    def simulate(self) -> str:
        """Markdown of pools beside twins, a column for each scenario and measure."""
        columns = [(scenario, key) for scenario in SCENARIOS for key in ("missing", "idle")]
        rows = [
            [
                f"`{strategy}`",
                *(
                    " / ".join(
                        self._cell(key, strategy, scenario, twin=twin) for twin in (False, True)
                    )
                    for scenario, key in columns
                ),
            ]
            for strategy in NAMES
        ]
        titles = ["", *(MEASURES[key].title for _, key in columns)]
        titles[1::2] = [f"{scenario}: {title}" for scenario, title in zip(SCENARIOS, titles[1::2])]
        pools, twins = self._terms(twin=False), self._terms(twin=True)
        return f"{table(titles, rows)}\n\nPools / twins: {pools};\n{twins}."

    def picture(self) -> str:
        """SVG file: cores of the group that comes back, on pools, one line a strategy."""
        curves = []
        for number, (strategy, name) in enumerate(reversed(NAMES.items())):
            chosen = self._chosen("steady", strategy, twin=self.twins_alone)
            series = [fmean(cores) for cores in zip(*(run.returning_cores for run in chosen))]
            hours = STEP_SECONDS * chosen[0].scale / 3600 if chosen else 0.0
            readings = [(hours * (place + 0.5), cores) for place, cores in enumerate(series)]
            curves.append(Curve(name, f"group{number}", readings))
        first = self.runs[0]
        due = first.pool_cores * PLEDGE_HS06[HELPED] / sum(PLEDGE_HS06.values())
        most = first.seconds * first.scale / 3600
        curves.append(Curve("its due", "group5", [(0.0, due), (most, due)]))
        unit = f"cores of {HELPED}, of {first.pool_cores}"
        figure = Figure(
            key="cores",
            title=f"Cores of a group that comes back, of {first.pool_cores}",
            description=f"One line for each of {', '.join(NAMES.values())}, over {most:.0f} hours.",
            across=(0.0, most),
            ticks=ticks_up_to(most, 6),
            up=limits_of([curves]),
            unit=unit,
            curves=curves,
            across_words="hours of a site",
        )
        return document([figure])

    def _chosen(self, scenario: str, strategy: str, *, twin: bool) -> list[Record]:
        return [
            run
            for run in self.runs
            if (run.scenario, run.strategy) == (scenario, strategy) and (run.source == TWIN) == twin
        ]

    def _cell(self, key: str, strategy: str, scenario: str, *, twin: bool) -> str:
        """Mean and standard deviation of a measure."""
        measure = MEASURES[key]
        if strategy in LEAST:
            least = self.bound.get(scenario, {}).get(key)
            return UNKNOWN if least is None else f"{least:.{measure.decimals}f}"
        values = [measure.value(run) for run in self._chosen(scenario, strategy, twin=twin)]
        numbers = [value for value in values if value is not None]
        if not numbers:
            return "never" if values else UNKNOWN
        alone = self._chosen(scenario, "nothing", twin=twin) if key == "idle" else []
        mean = fmean(numbers) - (fmean(run.idle_cores for run in alone) if alone else 0.0)
        spread = stdev(numbers) if len(numbers) > 1 else 0.0
        text = f"{mean:.{measure.decimals}f}"
        if spread >= 0.5 * 10**-measure.decimals:
            text += f"±{spread:.{measure.decimals}f}"
        never = len(values) - len(numbers)
        return f"{text}, never in {never} of {len(values)}" if never else text

    def _terms(self, *, twin: bool) -> str:
        """Versions, time, seeds."""
        runs = [run for run in self.runs if (run.source == TWIN) == twin]
        if not runs:
            return "no runs"
        sources = sorted({run.source for run in runs})
        seeds = len({run.seed for run in runs})
        return (
            f"{'the digital twin' if twin else 'HTCondor ' + ', '.join(sources)}, "
            f"{runs[0].seconds / 60:g} minutes at 1/{runs[0].scale:g} of a site's times, "
            f"means ± standard deviations of {seeds} seeds"
        )


def append(folder: Path, run: Record) -> None:
    """Add a run to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / RUNS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(dataclasses.asdict(run), separators=(",", ":")) + "\n")


def written(results: Results) -> dict[Path, str]:
    """File of the checkout -> its content with these results."""
    contents = {CHECKOUT / PICTURE: results.picture()}
    for page, name, block in (
        (CHECKOUT / "README.md", "comparison", results.readme()),
        (CHECKOUT / "docs/simulate.md", "twins", results.simulate()),
    ):
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, found, rest = page.read_text(encoding="utf-8").partition(begin)
        if not found or end not in rest:
            raise PoolboxError(f"{page}: no {begin.strip()} … {end.strip()}")
        contents[page] = before + begin + block + rest[rest.index(end) :]
    return contents


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown table."""
    ruler = ["---"] * len(header)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ruler, *rows))
