"""Games against the plan, in the twin: a group below its share plays for idle cores.

100 nodes of 32 cores, cycles of 5 minutes. alice is over its share with single-core jobs of two
hours on average, which always wait; cms plays, in some games beside atlas. A game runs beside
honest play with the same seeds. Idle cores are percent of the pool beyond those of honest play;
others lose percent of their power; waits are those of honest jobs of cms that are there in both. A
*phantom* looks placeable, and no slot ever takes it. Waits are mean/90 %/to the first start.

``python -m bench.games [GAME...] [--days D] [--seeds N] [--causes]``
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "central"))

from sharectl_lab.scenarios.file import parse
from sharectl_lab.scenarios.strategies import read_strategies
from sharectl_lab.study.run import Run
from sharectl_lab.twin.pool import Claim

HOUR = 3600.0
FIRST_HOURS = 2
"""Time after which idle cores count."""
ALICE, PLAYER = "alice", "cms"
NO_TARGET = "!(TARGET.AvoidsTargets =?= True) || MY.t1_Targetcores =?= undefined"
"""Site's START: stands for Requirements of jobs that refuse nodes with targets."""
Streams = tuple[str, ...]
"""Streams of jobs, as a scenario's file has them, without braces."""


def jobs(cores: int, how: str, run_time: str = "exponential:7200", group: str = PLAYER) -> str:
    """Stream of jobs; ``how`` many come, and when."""
    return f'group: {group}, cores: {cores}, run_time: "{run_time}", {how}'


def phantoms(sizes: Iterable[int], outages: str = "") -> Streams:
    """Jobs that nobody takes: twenty of each size, removed in outages."""
    never = 'requirements: "TARGET.LoadAvg < -1", keep_pending: 20'
    return tuple(jobs(size, f"{never}, phases: [{outages}]") for size in sizes)


def outage(length: float, begin: float = 0, every: Optional[float] = None) -> str:
    """Hours without jobs."""
    again = f", every_hours: {every}" if every else ""
    return f"{{length_hours: {length}, begin_hours: {begin}, factor: 0{again}}}"


SIZE, ALL = 8, range(2, 33)
HONEST = (jobs(SIZE, "per_hour: 20"),)
"""Honest jobs of eight cores."""
LATER = (jobs(SIZE, f"per_hour: 20, phases: [{outage(12)}]"),)
"""Those after twelve hours without any."""
LONG = (jobs(SIZE, "per_hour: 4", "constant:86400"),)
"""Honest jobs of a day each."""
ATLAS = (
    jobs(SIZE, "keep_pending: 20", group="atlas"),
    jobs(1, "keep_pending: 200", group="atlas"),
)
"""Jobs of a rival below its share."""
FEW_ATLAS = (jobs(SIZE, "per_hour: 60", "exponential:3600", "atlas"),)
"""Jobs of eight cores that seldom wait."""
FORTY = "keep_pending: 40"
USER, BELOW = "a user of the group", "any user of a group below its share"


@dataclass(frozen=True)
class Game:
    """A game of the player's group, and honest play."""

    name: str
    play: Streams
    honest: Streams = ()
    """Jobs that the player has instead in honest play."""
    beside: Streams = ()
    """Honest jobs of the player's group in both."""
    others: Streams = ()
    """Jobs of atlas."""
    nodes: tuple[int, int] = (100, 32)
    """Number, and cores of each."""
    who: str = USER
    """Who can play it."""


GAMES = (
    Game("one size", phantoms([SIZE])),
    Game("whole nodes", phantoms([32])),
    Game("single cores", phantoms([1]), others=ATLAS),
    Game("many sizes", phantoms(ALL)),
    Game("sizes of large nodes", phantoms(range(2, 129)), nodes=(25, 128)),
    Game("other sizes beside", phantoms(s for s in ALL if s != SIZE), beside=HONEST),
    Game("one size beside", phantoms([SIZE]), beside=HONEST),
    Game("one size before", phantoms([SIZE], outage(48, 12)), beside=LATER),
    Game("one size before and beside", phantoms([SIZE]), beside=LATER),
    Game("many sizes before", phantoms(ALL, outage(48, 12)), beside=LATER),
    Game("phases", phantoms(ALL, outage(2, 2, 4)), beside=HONEST),
    Game("quick phases", phantoms(ALL, outage(0.5, 0.5, 1)), beside=HONEST),
    Game(
        "alternating sizes",
        tuple(
            stream
            for turn in range(8)
            for stream in phantoms(
                ALL[turn::8], ", ".join(outage(1, t, 8) for t in range(8) if t != turn)
            )
        ),
        beside=HONEST,
    ),
    Game(
        "proven sizes",
        (*phantoms(ALL), *(jobs(s, "per_hour: 0.5", "constant:60") for s in ALL)),
    ),
    Game("proven whole nodes", (*phantoms([32]), jobs(32, "per_hour: 2", "constant:60"))),
    Game("many sizes beside long jobs", phantoms(ALL), beside=LONG),
    Game("many sizes beside a rival", phantoms(ALL), others=ATLAS),
    Game(
        "refusing targets",
        (jobs(SIZE, f"{FORTY}, attributes: {{AvoidsTargets: true}}"),),
        (jobs(SIZE, FORTY),),
        others=ATLAS,
    ),
    Game("huge requests", (jobs(32, FORTY),), (jobs(SIZE, FORTY),), others=ATLAS),
    Game("larger than any node", tuple(jobs(33 << n, FORTY) for n in range(10)), others=ATLAS),
    Game("crash loop", (jobs(SIZE, FORTY, "constant:5"),), (jobs(SIZE, FORTY),), others=ATLAS),
    Game(
        "crashes now and then",
        (jobs(SIZE, "per_hour: 10", "constant:5"),),
        (jobs(SIZE, "per_hour: 10"),),
        others=ATLAS,
    ),
    Game(
        "tiny jobs in blocks",
        (jobs(SIZE, FORTY, "constant:30", f"{PLAYER}.rival"),),
        (jobs(SIZE, FORTY, group=f"{PLAYER}.rival"),),
        beside=HONEST,
        others=ATLAS,
        who="another user of the group",
    ),
    Game("grace kept on", phantoms([SIZE]), others=FEW_ATLAS, who=BELOW),
    Game("grace kept on by sizes", phantoms(ALL), others=FEW_ATLAS, who=BELOW),
)


class Figures(NamedTuple):
    """Figures of one run."""

    idle: tuple[float, ...]
    """Idle cores in each interval, percent of the pool."""
    causes: dict[str, float]
    """Cause -> idle cores, percent of the pool, after the first hours."""
    power: dict[str, float]
    """`play`, `beside` and groups of others -> cores held, percent of the pool."""
    waits: tuple[float, float, float]
    """Mean and 90 % of the honest jobs' waits, and that for the first start, hours; those that did
    not start count until the end."""


def scenario(game: Game, streams: Iterable[str], days: float) -> Any:
    """Scenario of the pool with the player's streams."""
    count, cores = game.nodes
    every = (
        jobs(1, f"keep_pending: {count * cores}", group=ALICE),
        *game.others,
        *game.beside,
        *streams,
    )
    groups = dict.fromkeys((ALICE, PLAYER, *(("atlas",) if game.others else ())), 100)
    text = f"""
nodes: [{{name: wn, count: {count}, cores: {cores}, attributes: {{LoadAvg: 1.0}}}}]
groups: {{{", ".join(f"{name}: {{pledge_hs06: {hs06}}}" for name, hs06 in groups.items())}}}
start: {{site: "{NO_TARGET}"}}
warmup_hours: 0
days: {days}
jobs:
"""
    return parse(text + "".join(f"  - {{{stream}}}\n" for stream in every), game.name)


@dataclass
class Watch:
    """Watcher of a run: it removes jobs in outages and notes how long jobs waited and ran."""

    run: Run
    roles: Sequence[str]
    """Role of each stream, which has one kind of jobs."""
    used: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Role -> core-seconds."""
    waits: list[tuple[float, float]] = field(default_factory=list)
    """Submission of each honest job, and its wait."""

    def __post_init__(self) -> None:
        twin, streams = self.run.twin, self.run.scenario.jobs
        self.leaving = [
            (stream, kind)
            for stream, kind in zip(streams, twin.kinds)
            if stream.phases and stream.keep_pending
        ]
        twin.on_end.append(self.note)
        if self.leaving:
            twin.at(30.0, self.remove)

    def remove(self, now: float) -> None:
        """Remove jobs whose streams have an outage, as condor_rm does."""
        twin = self.run.twin
        for stream, kind in self.leaving:
            if kind.pending and any(phase.holds_at(now) for phase in stream.phases):
                twin.queues._count(kind, -len(kind.pending), now)  # noqa: SLF001 - only players remove jobs
                kind.pending.clear()
        twin.at(now + 60.0, self.remove)

    def note(self, claim: Claim, now: float) -> None:
        """Note a job that ended, or that still runs."""
        role = self.roles[claim.job.number]
        self.used[role] += claim.cores * max(0.0, now - claim.started_at)
        if role == "beside":
            self.waits.append((claim.submitted_at, claim.started_at - claim.submitted_at))

    def figures(self) -> Figures:
        """Figures of the run."""
        twin = self.run.twin
        for node in twin.nodes:
            for claim in node.claims():
                self.note(claim, twin.now)
        for kind in twin.kinds:
            if self.roles[kind.number] == "beside":
                self.waits += [(at, twin.now - at) for at, _ in kind.pending]
        outcome = self.run.outcome()
        part, first = 100 / outcome.pool_cores, int(FIRST_HOURS * HOUR / self.run.step)
        return Figures(
            tuple(part * fsum(cores) for cores in zip(*outcome.idle_cores.values())),
            {c: part * mean(n[first:]) for c, n in outcome.idle_cores.items() if any(n)},
            {role: part * seconds / outcome.seconds for role, seconds in self.used.items()},
            _summary(self.waits),
        )


def _summary(waits: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    if not waits:
        return 0.0, 0.0, 0.0
    ordered = sorted(wait for _, wait in waits)
    first = min(at + wait for at, wait in waits) - min(waits)[0]
    return mean(ordered) / HOUR, ordered[len(ordered) * 9 // 10] / HOUR, first / HOUR


def figures_of(
    game: Game, streams: Streams, days: float, seed: int, strategy: str = "live"
) -> Figures:
    """Figures of a game or of honest play."""
    run = Run(scenario(game, streams, days), read_strategies(strategy)[0], seed)
    roles = [ALICE, *["atlas"] * len(game.others)]
    watch = Watch(run, [*roles, *["beside"] * len(game.beside), *["play"] * len(streams)])
    run.until(run.end)
    return watch.figures()


class Score(NamedTuple):
    """A game beside honest play."""

    late: float
    """More idle cores after the first hours, percent of the pool."""
    day: float
    """Those of the whole time."""
    lost: float
    """Power that others lose, percent of theirs."""
    gained: float
    """Cores that the player's group holds more, percent of the pool."""
    wait_ratio: float
    """Mean wait of the honest jobs to that of honest play; 1 without honest jobs."""


def score(honest: Figures, play: Figures, step_seconds: float) -> Score:
    """Figures of a game beside those of honest play."""
    more = [b - a for a, b in zip(honest.idle, play.idle)]
    own, theirs = [], []
    for power in (honest.power, play.power):
        own.append(fsum(power[role] for role in power.keys() & {"play", "beside"}))
        theirs.append(fsum(power.values()) - own[-1])
    return Score(
        mean(more[int(FIRST_HOURS * HOUR / step_seconds) :]),
        mean(more),
        100 * (theirs[0] - theirs[1]) / theirs[0],
        own[1] - own[0],
        play.waits[0] / honest.waits[0] if honest.waits[0] else 1.0,
    )


def played(game: Game, days: float, seed: int) -> tuple[Score, Figures, Figures]:
    """Score of a game, figures of honest play and of the game."""
    honest, play = (figures_of(game, s, days, seed) for s in (game.honest, game.play))
    return score(honest, play, days * 24 * HOUR / len(play.idle)), honest, play


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Print a row for each game: means of the seeds, and spreads."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("games", nargs="*", help="names; all by default")
    parser.add_argument("--days", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--causes", action="store_true", help="idle cores of the game by cause")
    arguments = parser.parse_args(argv)
    print(HEADER)
    for game in GAMES:
        if arguments.games and game.name not in arguments.games:
            continue
        rows = [played(game, arguments.days, seed) for seed in range(1, arguments.seeds + 1)]
        print(line(game, rows), flush=True)
        if arguments.causes:
            print("   ", {cause: round(part, 2) for cause, part in rows[0][2].causes.items()})
    return 0


HEADER = """\
| game | who | idle after 2 h | idle | others lose | player gains | honest jobs wait, h |
|---|---|---:|---:|---:|---:|---|"""


def line(game: Game, rows: Sequence[tuple[Score, Figures, Figures]]) -> str:
    """Row of a game in Markdown."""
    scores = [row[0] for row in rows]

    def spread(values: Sequence[float]) -> str:
        around = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
        return f"{mean(values):.2f}{around}"

    cells = [
        game.name,
        game.who,
        f"{mean(s.late for s in scores):.2f}",
        f"{mean(s.day for s in scores):.2f}",
        spread([s.lost for s in scores]),
        spread([s.gained for s in scores]),
    ]
    if game.beside:
        honest, play = (
            "/".join(f"{mean(column):.2f}" for column in zip(*waits))
            for waits in ([row[1].waits for row in rows], [row[2].waits for row in rows])
        )
        times = mean(s.wait_ratio for s in scores)
        cells.append(f"{honest} → {play} ({times:.2f} times)")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
