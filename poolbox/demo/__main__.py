"""``python -m poolbox.demo``: sharectl's loop, live, on a real HTCondor pool on this machine."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Optional

from rich.console import Console

from poolbox import Box, PoolboxError
from poolbox.demo import scenario, story, workload
from poolbox.demo.screen import Screen
from poolbox.demo.steering import MEASURE, STEER, Sharectl
from poolbox.spec import SUITES
from sharectl.errors import SharectlError

OFF_SECONDS = 40.0
ON_SECONDS = 240
LEAST_ON_SECONDS = 30
INTERRUPTED = 130


def build_parser() -> argparse.ArgumentParser:
    """Options of the demo."""
    parser = argparse.ArgumentParser(
        prog="python -m poolbox.demo",
        description="Shows sharectl's loop on a real HTCondor pool in a sandbox on this machine: "
        f"the same saturated pool for {OFF_SECONDS:.0f} s without sharectl and then with it, until "
        "every group is within half a block of its due. "
        "Ctrl-C ends it, and the pool with it.",
    )
    parser.add_argument(
        "--suite",
        choices=SUITES,
        default=SUITES[0],
        help="Debian suite whose HTCondor runs (%(default)s)",
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=ON_SECONDS, help="most time with sharectl (%(default)s)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("demo-output"),
        metavar="DIR",
        help="where the figures go (%(default)s)",
    )
    return parser


def main(argv: Optional[list[str]] = None) -> int:
    """Exit code: 0 if both groups came near their due, 1 if not, 130 after Ctrl-C."""
    options = build_parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    screen = Screen(Console())
    box = Box(scenario.pool_spec(options.suite))
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        screen.say(
            "starting a real HTCondor pool: a central manager, two access points, six nodes of "
            "16 cores"
        )
        with box:
            return _perform(box, screen, options)
    except KeyboardInterrupt:
        screen.say("interrupted; the pool is gone")
        return INTERRUPTED
    except (PoolboxError, SharectlError, OSError) as failure:
        print(f"demo: {failure}", file=sys.stderr)
        return 1


def _perform(box: Box, screen: Screen, options: argparse.Namespace) -> int:
    screen.say(box.run(["condor_version"]).stdout.splitlines()[0].strip("$ "))
    directory = box.shared_directory / "central"
    directory.mkdir()
    sharectl = Sharectl(box, directory)
    pledges = " and ".join(
        f"{group} {pledge:.0f}" for group, pledge in scenario.PLEDGE_HS06.items()
    )
    screen.say(
        f"promised, in HS06: {pledges}; small jobs of alice take every core, then 8-core jobs "
        "of cms come"
    )
    workload.saturate(box)
    screen.say(
        "without sharectl. HTCondor knows the promises as group quotas. Watch: whenever a core "
        "gets free, the next "
        "small job has it; eight are never free together, and cms waits"
    )
    before = _phase(screen, sharectl, MEASURE, "without sharectl", OFF_SECONDS)
    sharectl.switch(enabled=True)
    screen.say(
        f"with sharectl, a cycle every {scenario.CYCLE_SECONDS:.0f} s. Watch: it tells some "
        "nodes to hold alice to fewer "
        "cores. No job is killed: as alice's jobs end, their cores are kept (.) until eight are "
        "together for cms (C)"
    )
    after = _phase(screen, sharectl, STEER, "with sharectl", options.seconds)
    screen.summary(before, after)
    for path in _keep(sharectl, after, options.output):
        screen.say(f"written: {path}")
    return _verdict(box, screen, after)


def _phase(
    screen: Screen, sharectl: Sharectl, controlled: str, name: str, seconds: float
) -> story.Phase:
    started = workload.large_jobs_started(sharectl.box)
    moments: list[story.Moment] = []
    with screen.picture():
        for moment in story.watch(sharectl, controlled, seconds):
            moments.append(moment)
            screen.show(moment)
            if moment.fresh and story.Phase(name, moments).is_settled:
                break
    phase = story.Phase(name, moments, workload.large_jobs_started(sharectl.box) - started)
    if not phase.measured:
        raise PoolboxError(
            f"no cycle saw the pool: {moments[-1].cycle.errors}\n{sharectl.box.log_tail()}"
        )
    return phase


def _keep(sharectl: Sharectl, after: story.Phase, output: Path) -> list[Path]:
    """Write the picture and the log it was drawn from; return their paths."""
    from poolbox.demo.figure import log_rows, shares  # noqa: PLC0415  # --help does not need it

    log = output / sharectl.errors_log.name
    shutil.copyfile(sharectl.errors_log, log)
    rows = log_rows(log)
    picture = output / "loop.svg"
    picture.write_text(shares(rows, after.measured[0].taken_at), encoding="utf-8")
    return [log, picture]


def _verdict(box: Box, screen: Screen, after: story.Phase) -> int:
    half = f"half a block ({scenario.HALF_BLOCK_HS06:.0f} HS06)"
    if not after.is_settled:
        print(
            f"demo: a group is {after.furthest_hs06[-1]:.0f} HS06 from its due, not within {half} "
            f"for {story.SETTLED_CYCLES} cycles; write a longer --seconds\n{box.log_tail()}",
            file=sys.stderr,
        )
        return 1
    seconds = after.moments[-1].seen_at - after.moments[0].seen_at
    screen.say(
        f"both groups are within {half} of their due after {seconds:.0f} s with sharectl, without "
        "killing or draining anything"
    )
    return 0


def _seconds(text: str) -> int:
    seconds = int(text)
    if seconds < LEAST_ON_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{seconds} is too short to see anything; write {LEAST_ON_SECONDS} or more"
        )
    return seconds


def _interrupt(_signal: int, _frame: Optional[FrameType]) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
