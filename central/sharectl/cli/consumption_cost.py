"""``sharectl consumption cost`` and ``capacity``."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, TextIO

if TYPE_CHECKING:
    from sharectl.condor.ad_files import AdOfFile
    from sharectl.config.model import PoolConfig
    from sharectl.consumption.asks import Jobs, PoolAds
    from sharectl.shares.quotas import Group

_EPILOG = """\
<none> is the root group: jobs that are in no other. It has no quota of its own but what the groups
leave, so its quota may be 0 while all that slots have counts as within it.
? is unknown, - is nothing. docs/match-cost.md explains the columns."""
_COST_EPILOG = """\
columns of --group, in weighted slots:
  no slot       pending jobs of the group that match no slot as it is
  their cost    of all others, each on the slot where it costs least, in that cycle; >= where the
                same job costs more on another slot: how many fit on the cheapest is not looked at
  usage later   charge of these jobs from the next cycle on, with the least of each; >= as above
  least cost    the smallest cost of such a match
  least weight  the smallest SlotWeight of a slot that they match: a slot without policy costs it
  past quota    usage beyond the quota that leftovers allow

"""
_ASSETS = ("cpus", "memory", "disk")
_AMOUNT = r"[1-9][0-9]{0,14}"
_REQUEST = re.compile(rf"(?:{_AMOUNT}(?:,{_AMOUNT}){{0,2}})?(?:(?:^|,)[A-Za-z_]\w*={_AMOUNT})*")


def _request(text: str) -> tuple[str, dict[str, str]]:
    """Name and ad of a job of a ``--request``."""
    from sharectl.consumption.policy import attribute_of

    words = [word for word in text.split(",") if "=" not in word]
    named = [word.lower().split("=") for word in text.split(",") if "=" in word]
    pairs = [*zip(_ASSETS, words), *((name, amount) for name, amount in named if name)]
    amounts = dict(pairs)
    if not text or not _REQUEST.fullmatch(text) or len(amounts) < len(pairs):
        raise argparse.ArgumentTypeError(
            f"{text[:60]!r}: write cores, MiB and KiB such as 8,16000,1000000, others by name such "
            "as 8,gpus=1; each is a whole number from 1 on, of 15 digits at most"
        )
    amounts = {**dict.fromkeys(_ASSETS, "1"), **amounts}
    return f"request {text}", {f"Request{attribute_of(name)}": n for name, n in amounts.items()}


def add_cost_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``cost``."""
    parser.epilog = _COST_EPILOG + _EPILOG
    parser.add_argument(
        "--group",
        action="store_true",
        help="sums by accounting group against its quota, and how far leftovers pass it",
    )
    _add_common(
        parser,
        "ads that condor_q -long or -json printed (default: the jobs that pend in the pool)",
        "jobs of this request instead of those that pend in the pool",
    )


def add_capacity_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``capacity``."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "--pending",
        action="store_true",
        help="also count claims for the jobs that pend in the pool",
    )
    _add_common(
        parser,
        "also count claims for these jobs: ads that condor_q -long or -json printed",
        "also count claims for jobs of this request",
    )


def _add_common(parser: argparse.ArgumentParser, of_jobs: str, of_request: str) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--jobs", type=Path, metavar="FILE", help=of_jobs)
    parser.add_argument(
        "--request",
        action="append",
        default=[],
        type=_request,
        metavar="[CPUS[,MIB[,KIB]]][,NAME=AMOUNT…]",
        help=f"{of_request} (cores, MiB of memory, KiB of disk, each 1 if left out; GPUs and "
        "custom resources by name, such as 8,gpus=1); may be repeated",
    )
    parser.add_argument(
        "--slots",
        type=Path,
        metavar="FILE",
        help="ads that condor_status -long or -json printed, - for standard input (default: ask "
        "the pool)",
    )
    parser.add_argument("--constraint", metavar="EXPR", help="slots for which this is true")
    parser.add_argument("--job-constraint", metavar="EXPR", help="jobs for which this is true")
    parser.add_argument(
        "--empty",
        action="store_true",
        help="take each slot as it is when nothing runs on it (TotalSlotCpus, …), and groups as "
        "using nothing",
    )
    parser.add_argument(
        "--quotas",
        type=Path,
        metavar="FILE",
        help="ads of groups that condor_status -any -constraint IsAccountingGroup -long or -json "
        "printed (default: ask the pool)",
    )
    parser.add_argument(
        "--leftovers",
        choices=("on", "off"),
        help="CLAIM_PARTITIONABLE_LEFTOVERS of the access points (default: ask those of the pool; "
        "on, HTCondor's default, where there is none to ask)",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="sharectl's configuration, for its section pool (default: the pool of this machine's "
        "HTCondor configuration)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with a schema version")


def cost(arguments: argparse.Namespace) -> int:
    """Print amounts, cost and number of the jobs that each slot takes."""
    from sharectl.consumption.asks import price
    from sharectl.consumption.cost import group_cost, group_of, with_groups_of_jobs
    from sharectl.report import match_cost

    subject = _Subject(arguments)
    jobs = subject.requested()
    if arguments.jobs is not None or not jobs:
        jobs += subject.jobs()
    priced = price(subject.slots, jobs)
    content = match_cost.priced(priced)
    if arguments.group:
        groups = with_groups_of_jobs(
            subject.groups(), (job.accounting_group for job in priced.jobs)
        )
        names = [group.name for group in groups]
        of_jobs = [group_of(job.accounting_group, names) for job in priced.jobs]
        leftovers = subject.leftovers()
        content["groups"] = match_cost.groups(
            [
                group_cost(
                    group,
                    priced,
                    [number for number, name in enumerate(of_jobs) if name == group.name],
                    leftovers=leftovers,
                )
                for group in groups
            ]
        )
    return subject.show("consumption-cost", content, match_cost.cost_tables)


def capacity(arguments: argparse.Namespace) -> int:
    """Print the number of claims that slots, slot types and groups can have now."""
    from sharectl.consumption.asks import price, smallest_offers
    from sharectl.consumption.cost import group_of
    from sharectl.report import match_cost

    subject = _Subject(arguments)
    groups = subject.groups()
    leftovers = bool(groups) and subject.leftovers()
    content = match_cost.capacity(
        smallest_offers(subject.slots), groups, leftovers=leftovers, empty=arguments.empty
    )
    jobs = subject.requested()
    jobs += subject.jobs() if arguments.jobs is not None or arguments.pending else []
    if jobs or arguments.jobs is not None or arguments.pending:
        priced = price(subject.slots, jobs)
        by_name = {group.name: group for group in groups}
        named = [by_name.get(group_of(job.accounting_group, by_name)) for job in priced.jobs]
        content["jobs"] = match_cost.shapes(priced, named)
    return subject.show("consumption-capacity", content, match_cost.capacity_tables)


class _Subject:
    """Slots, jobs and groups of the options; the pool is asked once, for those without a file."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._notes: list[str] = []
        self._missing: list[str] = []

    @cached_property
    def slots(self) -> Sequence[AdOfFile]:
        """Partitionable and static slots."""
        from sharectl.condor.ad_files import AdOfFile, read, text_of
        from sharectl.condor.slots import emptied
        from sharectl.consumption.asks import checked, restricted
        from sharectl.errors import InputError

        path, constraint = self._arguments.slots, self._arguments.constraint
        slots: Sequence[AdOfFile]
        if path is None:
            slots = self._pool.slots
        else:
            ads = checked(read(path), of_slots=True)
            whole = [ad for ad in ads if text_of(ad.attributes, "SlotType") != "Dynamic"]
            slots = restricted(whole, constraint, "--constraint")
        if not slots:
            which = "that meets --constraint" if constraint else "but dynamic ones"
            raise InputError([f"no slot: {path or 'the pool'} has none {which}"])
        if self._arguments.empty:
            return [AdOfFile(slot.place, emptied(slot.attributes)) for slot in slots]
        return slots

    def requested(self) -> list[Jobs]:
        """A job of each ``--request``."""
        from sharectl.condor.ad_files import AdOfFile
        from sharectl.consumption.asks import Jobs

        return [Jobs(AdOfFile(name, ad)) for name, ad in self._arguments.request]

    def jobs(self) -> list[Jobs]:
        """Jobs that wait, of ``--jobs`` or of the pool."""
        from sharectl.condor.ad_files import read
        from sharectl.consumption.asks import Jobs, checked, pending, restricted, waits
        from sharectl.words import counted

        path, constraint = self._arguments.jobs, self._arguments.job_constraint
        if path is None:
            restricted([], constraint, "--job-constraint")
            schedds = self._pool.schedds
            jobs, self._missing = pending(self._place, schedds, self.slots, constraint)
            return jobs
        every = checked(read(path), of_slots=False)
        waiting = [ad for ad in every if waits(ad)]
        if others := len(every) - len(waiting):
            self._notes.append(
                f"{path}: {counted(others, 'job')} left out that do not wait for a slot"
            )
        return [Jobs(ad) for ad in restricted(waiting, constraint, "--job-constraint")]

    def groups(self) -> list[Group]:
        """Groups, of ``--quotas`` or of the pool; empty where slots are of a file."""
        from sharectl.condor.ad_files import read
        from sharectl.condor.negotiator import groups_of

        arguments = self._arguments
        if arguments.quotas is not None:
            groups = groups_of(read(arguments.quotas))
        elif arguments.slots is not None:
            return []
        else:
            groups = groups_of(self._pool.groups)
            if not groups:
                self._notes.append(
                    "groups are missing: the collector has no ad of one; wait for a negotiation "
                    "cycle, or see NEGOTIATOR_ADVERTISE_ACCOUNTING"
                )
        return [replace(group, used=0.0) for group in groups] if arguments.empty else groups

    def leftovers(self) -> bool:
        """Schedds use the rest of slots."""
        from sharectl.consumption.asks import leftovers

        arguments = self._arguments
        if arguments.leftovers is not None:
            return bool(arguments.leftovers == "on")
        setting = leftovers(self._place, self._pool.schedds) if arguments.slots is None else None
        if setting is None:
            self._notes.append(
                "CLAIM_PARTITIONABLE_LEFTOVERS of the access points is taken to be on: say "
                "--leftovers off if it is not"
            )
        return setting is not False

    def show(
        self, name: str, content: dict[str, Any], tables: Callable[[Any, TextIO], None]
    ) -> int:
        """Print the content with its notes, and problems of the pool; the exit code."""
        from sharectl.errors import PoolUnavailableError
        from sharectl.report import as_json
        from sharectl.report.tables import printable

        content["notes"] = [*content["notes"], *self._notes]
        content["empty"], content["missing"] = self._arguments.empty, self._missing
        content["job_constraint"] = self._arguments.job_constraint
        if self._arguments.json:
            print(as_json.dumps(name, content))
        else:
            tables(content, sys.stdout)
        for problem in self._missing:
            print(f"sharectl: {printable(problem)}", file=sys.stderr)
        return PoolUnavailableError.exit_code if self._missing else 0

    @cached_property
    def _pool(self) -> PoolAds:
        from sharectl.consumption.asks import look, restricted

        constraint = self._arguments.constraint if self._arguments.slots is None else None
        restricted([], constraint, "--constraint")
        return look(self._place, constraint)

    @cached_property
    def _place(self) -> PoolConfig:
        from sharectl.config.load import load
        from sharectl.config.model import PoolConfig

        path = self._arguments.config
        return PoolConfig() if path is None else load(path).pool
