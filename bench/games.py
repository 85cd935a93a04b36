"""Games against the plan, in the twin: a group below its share plays for idle cores.

100 nodes of 32 cores, cycles of 17 minutes. Two-hour single-core jobs of alice, which is over its
share, always wait; cms plays. Each game runs beside honest play with the same seeds. Idle cores are
percent of the pool, those of honest play taken off; what others lose and the player gains is power
in percent of the pool's; waits are those of honest jobs of cms that are there in both runs.
A *phantom* looks placeable, and no slot ever takes it.

``python -m bench.games [GAME...] [--days D] [--seeds N] [--causes]``
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import fsum, inf
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "central"))

from sharectl.sim.file import parse
from sharectl.sim.pool import Claim, ShapedKind
from sharectl.sim.run import Run
from sharectl.sim.strategy_file import read_strategies
from sharectl.workload.draw import JobStream

HOUR = 3600.0
FIRST_HOURS = 2
"""Time after which idle cores count."""
ALICE, PLAYER = "alice", "cms"
STAGGERED = "{" + ", ".join(f"{seconds}: 1" for seconds in range(300, 7201, 300)) + "}"
NO_TARGET = "!(TARGET.AvoidsTargets =?= True) || MY.t1_Targetcores =?= undefined"
"""Site's START: stands for Requirements of jobs that refuse nodes with targets."""
Streams = tuple[str, ...]
"""Streams of jobs, as a scenario's file has them, without braces."""


def jobs(cores: int, how: str, run_time: str = "constant:7200", group: str = PLAYER) -> str:
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


ALWAYS = (jobs(8, "per_hour: 20"),)
LATER = (jobs(8, f"per_hour: 20, phases: [{outage(12)}]"),)
"""Honest jobs of eight cores, all the time and after twelve hours."""
ATLAS = (
    jobs(8, "keep_pending: 40", "exponential:3600", "atlas"),
    jobs(1, "keep_pending: 400", "exponential:7200", "atlas"),
)
ALL = range(2, 33)


@dataclass(frozen=True)
class Game:
    """A game of the player's group, and honest play."""

    name: str
    who: str
    """Who can play it."""
    play: Streams
    honest: Streams = ()
    """Jobs that the player has instead in honest play."""
    beside: Streams = ()
    """Honest jobs of the player's group in both."""
    others: Streams = ()
    """Jobs of other groups beside alice's."""
    nodes: tuple[int, int] = (100, 32)
    """Number, and cores of each."""


ANYBODY = "a user of the group"
GAMES = (
    Game("one-8", ANYBODY, phantoms([8])),
    Game("one-32", ANYBODY, phantoms([32])),
    Game("single-core", ANYBODY, phantoms([1])),
    Game("many-sizes", ANYBODY, phantoms(ALL)),
    Game("large-nodes", ANYBODY, phantoms(range(2, 129)), nodes=(25, 128)),
    Game("beside-8", ANYBODY, phantoms(s for s in ALL if s != 8), beside=ALWAYS),
    Game("same-size-beside-8", ANYBODY, phantoms([8]), beside=ALWAYS),
    Game("after-12-h", ANYBODY, phantoms([8], outage(12, 12)), beside=LATER),
    Game("sizes-after-12-h", ANYBODY, phantoms(ALL, outage(12, 12)), beside=LATER),
    Game("before-and-after-12-h", ANYBODY, phantoms([8]), beside=LATER),
    Game("phases", ANYBODY, phantoms(ALL, outage(2, 2, 4)), beside=ALWAYS),
    Game("quick-phases", ANYBODY, phantoms(ALL, outage(0.5, 0.5, 1)), beside=ALWAYS),
    Game(
        "alternating",
        ANYBODY,
        tuple(
            stream
            for turn in range(8)
            for stream in phantoms(
                ALL[turn::8], ", ".join(outage(1, t, 8) for t in range(8) if t != turn)
            )
        ),
        beside=ALWAYS,
    ),
    Game(
        "proving-sizes",
        ANYBODY,
        phantoms(ALL) + tuple(jobs(s, "per_hour: 0.5", "constant:60") for s in ALL),
    ),
    Game(
        "proving-32",
        ANYBODY,
        (*phantoms([32]), jobs(32, "per_hour: 2", "constant:60")),
    ),
)


class Figures(NamedTuple):
    """Figures of one run."""

    idle: tuple[float, ...]
    """Idle cores in each interval, percent of the pool."""
    causes: dict[str, float]
    """Cause -> idle cores, percent of the pool, after the first hours."""
    power: dict[str, float]
    """`play`, `beside` and groups of others -> cores held, percent of the pool."""
    waits: tuple[float, ...]
    """Waits of the honest jobs, hours; those that did not start count until the end."""


def scenario(game: Game, streams: Iterable[str], days: float) -> Any:
    """Scenario of the pool with the player's streams."""
    count, cores = game.nodes
    filling = (
        jobs(1, f"at_start: {count * cores}", group=ALICE).replace('"constant:7200"', STAGGERED),
        jobs(1, f"keep_pending: {count * cores}", group=ALICE),
    )
    every = (*filling, *game.others, *game.beside, *streams)
    groups = dict.fromkeys((ALICE, PLAYER, *(["atlas"] if game.others else [])), 100)
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
    """Watcher of a run that plays removals and notes jobs by their stream."""

    run: Run
    roles: Sequence[str]
    """Role of each stream."""
    used: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        twin, streams = self.run.twin, self.run.scenario.jobs
        # No stream has two kinds.
        self.role_of = dict(zip(range(len(streams)), self.roles))
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
                twin._add_pending(kind, -len(kind.pending))  # noqa: SLF001 - no user of it removes
                kind.pending.clear()
        twin.at(now + 60.0, self.remove)

    def note(self, claim: Claim, now: float) -> None:
        """Note a job that ended, or that still runs."""
        role = self.role_of[claim.job.number]
        self.used[role] += claim.cores * max(0.0, now - claim.started_at)
        if role == "beside":
            self.waits.append((claim.started_at - claim.submitted_at) / HOUR)

    def figures(self) -> Figures:
        """Figures of the run so far."""
        twin = self.run.twin
        for node in twin.nodes:
            for claim in node.claims():
                self.note(claim, twin.now)
        for kind in twin.kinds:
            if self.role_of[kind.number] == "beside":
                self.waits += [(twin.now - submitted) / HOUR for submitted, _ in kind.pending]
        outcome = self.run.outcome()
        part, first = 100 / outcome.pool_cores, int(FIRST_HOURS * HOUR / self.run.step)
        causes = {c: mean(cores[first:]) * part for c, cores in outcome.idle_cores.items()}
        return Figures(
            tuple(part * fsum(cores) for cores in zip(*outcome.idle_cores.values())),
            {cause: cores for cause, cores in causes.items() if cores},
            {role: part * seconds / outcome.seconds for role, seconds in self.used.items()},
            tuple(sorted(self.waits)),
        )


def figures_of(game: Game, streams: Streams, days: float, seed: int) -> Figures:
    """Figures of a game or of honest play."""
    made = scenario(game, streams, days)
    run = Run(made, read_strategies("live")[0], seed)
    roles = [ALICE, ALICE, *["atlas"] * len(game.others)]
    roles += [*["beside"] * len(game.beside), *["play"] * len(streams)]
    watch = Watch(run, roles)
    run.until(run.end)
    return watch.figures()


class Score(NamedTuple):
    """A game beside honest play."""

    after: float
    """More idle cores after the first hours, percent of the pool."""
    day: float
    """Those of the whole time."""
    worst: float
    """Those of the worst hour after the first hours."""
    lost: float
    """Power that others lose, percent of theirs."""
    gained: float
    """Cores that the player's group holds more, percent of the pool."""
    waits: tuple[tuple[float, float, float], ...]
    """Mean, first and 90 % of the honest jobs' waits, hours: of honest play, and of the game."""

    @property
    def late_ratio(self) -> float:
        """Mean wait in the game to that of honest play; 1 without honest jobs."""
        (honest, *_), (play, *_) = self.waits
        return play / honest if honest else 1.0


def score(honest: Figures, play: Figures, step_seconds: float = 300.0) -> Score:
    """Figures of a game beside those of honest play."""
    more = [b - a for a, b in zip(honest.idle, play.idle)]
    first, hour = int(FIRST_HOURS * HOUR / step_seconds), int(HOUR / step_seconds)
    late = more[first:]
    theirs = [
        fsum(power for role, power in figures.power.items() if role not in ("play", "beside"))
        for figures in (honest, play)
    ]
    own = [fsum(figures.power.values()) - rest for figures, rest in zip((honest, play), theirs)]
    return Score(
        mean(late),
        mean(more),
        max(mean(late[n : n + hour]) for n in range(0, max(1, len(late) - hour + 1), hour)),
        100 * (theirs[0] - theirs[1]) / theirs[0],
        own[1] - own[0],
        tuple(_summary(figures.waits) for figures in (honest, play)),
    )


def _summary(waits: Sequence[float]) -> tuple[float, float, float]:
    if not waits:
        return 0.0, 0.0, 0.0
    return mean(waits), waits[0], waits[len(waits) * 9 // 10]


def played(game: Game, days: float, seed: int) -> tuple[Score, Figures]:
    """Score of a game, and its figures."""
    honest, play = (figures_of(game, s, days, seed) for s in (game.honest, game.play))
    return score(honest, play), play


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Print a row for each game."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("games", nargs="*", help="names; all by default")
    parser.add_argument("--days", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--causes", action="store_true", help="idle cores of the game by cause")
    asked = parser.parse_args(argv)
    print("idle: % of the pool beyond honest play; waits in hours: mean/first/90 %, honest -> game")
    for game in GAMES:
        if asked.games and game.name not in asked.games:
            continue
        began = time.process_time()
        rows = [played(game, asked.days, seed) for seed in range(1, asked.seeds + 1)]
        scores = [row for row, _ in rows]
        print(line(game, scores), f"({time.process_time() - began:.0f} s)", flush=True)
        if asked.causes:
            print("   ", {cause: round(part, 2) for cause, part in rows[0][1].causes.items()})
    return 0


def line(game: Game, scores: Sequence[Score]) -> str:
    """Row of a game; the mean of seeds, with the spread of what others lose."""
    after, day, worst, lost, gained = (mean(s[n] for s in scores) for n in range(5))
    spread = max(s.lost for s in scores) - min(s.lost for s in scores)
    text = (
        f"{game.name:22} idle after 2 h {after:5.2f}, all {day:5.2f}, worst hour {worst:5.1f}; "
        f"others lose {lost:5.2f} (spread {spread:.2f}) %, player gains {gained:5.2f}"
    )
    if scores[0].waits[0] != (0.0, 0.0, 0.0):
        pairs = ("/".join(f"{mean(v):.2f}" for v in zip(*(s.waits[n] for s in scores))) for n in (0, 1))
        text += f"; waits {' -> '.join(pairs)} ({mean(s.late_ratio for s in scores):.2f} times)"
    return text


if __name__ == "__main__":
    sys.exit(main())
