"""An hour under HTCondor's own intervals and security, on both versions side by side.

Four nodes of 16 cores; jobs of 5 to 40 minutes: one core of two groups, which fill the pool, and
eight of a third, which holds none of its half; a cycle each period of sharectl.timer, with
sharectl's defaults. Figures: matches that nodes refuse, time from decision to START (of the startd,
and of the collector's copy, by which the negotiator goes), caps passed, idle cores under
targets. Most of the hour is waiting; --minutes for less.

Exit code 1 if a requirement is missed: at most 1 match of 100 refused, none because of a stale
copy, no cap passed, at least one target that acted.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":  # a script finds the checkout by itself
    sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "central")]

from bench import as_shipped_pool  # noqa: E402
from bench.as_shipped_pool import HELPED, MULTICORE_CORES, Watch  # noqa: E402
from poolbox import Box  # noqa: E402
from poolbox.root import htcondor_version  # noqa: E402
from poolbox.spec import SUITES  # noqa: E402

MINUTES = 60.0
JOB_SECONDS = (300, 2400)
SMALL_JOBS_EACH, LARGE_JOBS_EACH = 150, 30
SETTLE_SECONDS = 180
"""Until the small jobs have filled the pool; large ones come then, the first cycle after them."""
MOST_REFUSED_RATIO = 0.01
_PERIOD = re.compile(r"^OnUnitActiveSec=(\d+)min$", re.MULTILINE)


def main(argv: Sequence[str]) -> int:
    """Exit code, 1 for a missed requirement of a version."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, help="default: %(default)s")
    parser.add_argument("--suite", choices=SUITES, help="one version, by Debian suite")
    options = parser.parse_args(argv)
    if options.suite:
        return one_pool(options.suite, options.minutes)
    command = [sys.executable, __file__, "--minutes", str(options.minutes), "--suite"]
    runs = [subprocess.Popen([*command, suite]) for suite in SUITES]
    return max(run.wait() for run in runs)


def one_pool(suite: str, minutes: float) -> int:
    """Run one version and print its figures."""
    timer = (CHECKOUT / "systemd" / "sharectl.timer").read_text()
    period_seconds = 60.0 * int(_PERIOD.findall(timer)[0])
    with (
        tempfile.TemporaryDirectory() as folder,
        Box(replace(as_shipped_pool.SPEC, suite=suite)) as box,
    ):
        for group, access_point in zip(("alice", "lhcb"), box.spec.access_points):
            box.submit(as_shipped_pool.jobs(group, 1, SMALL_JOBS_EACH, *JOB_SECONDS), access_point)
        watch = Watch.start(box, Path(folder))
        watch.watch(SETTLE_SECONDS)
        for access_point in box.spec.access_points:
            large = as_shipped_pool.jobs(HELPED, MULTICORE_CORES, LARGE_JOBS_EACH, *JOB_SECONDS)
            box.submit(large, access_point)
        end = watch.began + 60 * minutes
        while (left := end - time.time()) > 0:
            watch.cycle()
            watch.watch(min(period_seconds, left))
        return print_figures(watch, suite)


def print_figures(watch: Watch, suite: str) -> int:
    """Print the figures; 1 if a requirement is missed."""
    hours = (time.time() - watch.began) / 3600
    matches, refused = watch.matches, watch.refusals
    lines = [f"HTCondor {htcondor_version(suite)} ({suite}), {hours:.2f} h"]
    lines += [f"  {cycle_line(watch, number)}" for number in range(len(watch.cycles))]
    for refusal in refused:
        lines += [f"  refused: {refusal.node} copy {refusal.copy} startd {refusal.startd}"]
        lines += [f"    {line}" for line in refusal.log]
    places = Counter((r.node.partition(".")[0], int(r.after_seconds // 3600)) for r in refused)
    by_place = ", ".join(f"{node} hour {hour}: {n}" for (node, hour), n in sorted(places.items()))
    lines.append(f"  matches {matches}, claims by them {watch.claims}")
    lines.append(f"  refused {len(refused)} ({by_place or 'none'})")
    lines.append(f"  of a stale copy {len(watch.stale_refusals())}")
    for name, effects in (
        ("targets set", [effect for effect in watch.effects if effect.target]),
        ("targets withdrawn", [effect for effect in watch.effects if not effect.target]),
    ):
        at_startd = [e.startd_seconds for e in effects if e.startd_seconds is not None]
        in_copy = [e.copy_seconds for e in effects if e.copy_seconds is not None]
        lines.append(
            f"  {name}: {len(effects)}; decision to START of {len(at_startd)} startds "
            f"{as_shipped_pool.summary(at_startd)}; of {len(in_copy)} copies "
            f"{as_shipped_pool.summary(in_copy)}"
        )
    lines.append(f"  caps passed {len(watch.caps_passed)} {watch.caps_passed}")
    lines.append(
        f"  idle cores: {watch.idle_ratio(under_targets=True):.1%} under targets, "
        f"{watch.idle_ratio(under_targets=False):.1%} on other nodes; "
        f"of the pool's cores {pool_ratio(watch):.1%} idle under targets"
    )
    ratio = len(refused) / max(1, matches)
    lines.append(f"  refused / matches, ratio {ratio:.4f}  required <= {MOST_REFUSED_RATIO}")
    print("\n".join(lines), flush=True)
    acted = any(effect.target and effect.startd_seconds is not None for effect in watch.effects)
    sound = acted and matches > 0 and ratio <= MOST_REFUSED_RATIO
    return int(not sound or bool(watch.caps_passed) or bool(watch.stale_refusals()))


def cycle_line(watch: Watch, number: int) -> str:
    """Errors and targets of a cycle, in words."""
    cycle = watch.cycles[number]
    record = cycle.record or {}
    errors = {row["group"]: round(row["error_hs06"]) for row in record.get("errors", ())}
    targets = len((record.get("plan") or {}).get("targets", ()))
    return f"cycle {number}: exit code {cycle.exit_code}, errors {errors}, {targets} target(s)"


def pool_ratio(watch: Watch) -> float:
    """Part of all the cores that is idle under targets."""
    return sum(watch.idle_cores[True]) / max(1, sum(map(sum, watch.cores.values())))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
