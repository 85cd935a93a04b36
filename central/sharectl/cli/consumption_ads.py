"""Options of `sharectl consumption cost` and `capacity`, and the slots, jobs and groups that they name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Optional, TextIO

from sharectl.condor.ad_files import AdOfFile
from sharectl.consumption.asks import Jobs, PoolAds, PoolPlace
from sharectl.shares.quotas import Group

_EPILOG = """\
<none> is the root group: jobs that are in no other. It has no quota of its own but what the groups leave, so its quota may
be 0 while all that slots have counts as within it. ? is what is not known, - what is not there. docs/match-cost.md tells
more."""

_ASSETS = ("cpus", "memory", "disk")
_UNITS = ("cores", "MiB of memory", "KiB of disk")
_MOST_DIGITS = 15
_SUCH = "write cores, MiB and KiB such as 8,16000,1000000, others by name such as 8,gpus=1"


def add_jobs(parser: argparse.ArgumentParser, what: str, epilog: str = "") -> None:
    """Add the first of what both verbs have: ``what`` it does with jobs; ``epilog`` comes before the common one."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = epilog + _EPILOG
    parser.add_argument("--jobs", type=Path, metavar="FILE", help=what)


def add_request(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--request``; ``what`` the verb does with it."""
    parser.add_argument(
        "--request",
        action="append",
        default=[],
        type=_request,
        metavar="[CPUS[,MIB[,KIB]]][,NAME=AMOUNT…]",
        help=f"{what} (cores, MiB of memory, KiB of disk, each 1 if left out; GPUs and custom resources by name, such as "
        "8,gpus=1); may be repeated",
    )


def requested(arguments: argparse.Namespace) -> list[Jobs]:
    """A job of each ``--request``."""
    from sharectl.condor.ad_files import AdOfFile
    from sharectl.consumption.asks import Jobs

    return [Jobs(AdOfFile(name, ad)) for name, ad in arguments.request]


def _request(text: str) -> tuple[str, dict[str, str]]:
    """Option value ``text`` as a name and an ad."""
    from sharectl.consumption.policy import attribute_of

    parts = text.split(",")
    plain = [part for part in parts if "=" not in part]
    named = {
        name.lower(): amount
        for name, _, amount in (part.partition("=") for part in parts if "=" in part)
    }
    amounts = {**dict.fromkeys(_ASSETS, "1"), **dict(zip(_ASSETS, plain)), **named}
    in_order = parts[: len(plain)] == plain and len(plain) <= len(_ASSETS)
    is_each_once = len(plain) + len(named) == len(parts) and not set(_ASSETS[: len(plain)]) & set(
        named
    )
    are_names = all(name.isascii() and name.isidentifier() for name in named)
    are_numbers = all(amount.isascii() and amount.isdecimal() for amount in amounts.values())
    if not (in_order and is_each_once and are_names and are_numbers):
        raise argparse.ArgumentTypeError(f"{text[:60]!r}: {_SUCH}")
    wrong = [
        dict(zip(_ASSETS, _UNITS)).get(name, name)
        for name, amount in amounts.items()
        if len(amount) > _MOST_DIGITS or not amount.strip("0")
    ]
    if wrong:
        raise argparse.ArgumentTypeError(
            f"{text[:60]!r}: {' and '.join(wrong)} must be 1 or more, of {_MOST_DIGITS} digits "
            f"at most; {_SUCH}, or leave it out"
        )
    return f"request {text}", {
        f"Request{attribute_of(name)}": amount for name, amount in amounts.items()
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the rest of what both verbs have."""
    parser.add_argument(
        "--slots",
        type=Path,
        metavar="FILE",
        help="ads that condor_status -long or -json printed, - for standard input (default: ask the pool)",
    )
    parser.add_argument("--constraint", metavar="EXPR", help="slots for which this is true")
    parser.add_argument("--job-constraint", metavar="EXPR", help="jobs for which this is true")
    parser.add_argument(
        "--empty",
        action="store_true",
        help="take each slot as it is when nothing runs on it (TotalSlotCpus, …), and groups as using nothing",
    )
    parser.add_argument(
        "--quotas",
        type=Path,
        metavar="FILE",
        help="quotas: knobs GROUP_QUOTA_<group>, GROUP_QUOTA_DYNAMIC_<group>, GROUP_ACCEPT_SURPLUS, GROUP_AUTOREGROUP "
        "(use counts as 0), or what condor_status -any -constraint IsAccountingGroup -long "
        "prints (default: ask the pool)",
    )
    parser.add_argument(
        "--leftovers",
        choices=("on", "off"),
        help="CLAIM_PARTITIONABLE_LEFTOVERS of the access points (default: ask those of the pool; on, as HTCondor has it, "
        "where there is none to ask)",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="sharectl's configuration, for its section pool (default: the pool of this machine's HTCondor configuration)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with a schema version")


def print_found(
    name: str,
    content: dict[str, Any],
    given: Given,
    arguments: argparse.Namespace,
    tables: Callable[[Any, TextIO], None],
) -> int:
    """Print what was found, and what is missing from it; the exit code.

    Parameters
    ----------
    name
        Of the JSON document.
    """
    from sharectl.errors import PoolUnavailableError
    from sharectl.report import as_json
    from sharectl.report.tables import printable

    content["notes"] = list(dict.fromkeys((*content.get("notes", ()), *given.notes)))
    content["empty"], content["missing"] = arguments.empty, given.missing
    content["job_constraint"] = arguments.job_constraint
    if arguments.json:
        print(as_json.dumps(name, content))
    else:
        tables(content, sys.stdout)
    for missing in given.missing:
        print(f"sharectl: {printable(missing)}", file=sys.stderr)
    return PoolUnavailableError.exit_code if given.missing else 0


class Given:
    """What the options name; the pool is asked once, and only for what no file holds."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._pool: Optional[PoolAds] = None
        self._slots: list[AdOfFile] = []
        self.notes: list[str] = []
        """What is left out of files."""
        self.missing: list[str] = []
        """What the pool did not tell."""

    def slots(self) -> list[AdOfFile]:
        """Partitionable and static slots."""
        from sharectl.condor.ad_files import read, text_of
        from sharectl.consumption.asks import SLOTS, checked, restricted, when_empty
        from sharectl.errors import InputError

        arguments = self._arguments
        if arguments.slots is None:
            slots = list(self._asked().slots)
        else:
            given = checked(read(arguments.slots), SLOTS)
            every = [ad for ad in given if text_of(ad.attributes, "SlotType") != "Dynamic"]
            slots = restricted(every, arguments.constraint, "--constraint")
        if not slots:
            where = "the pool" if arguments.slots is None else str(arguments.slots)
            which = (
                " that meets --constraint"
                if arguments.constraint
                else ", but for dynamic ones at most"
            )
            raise InputError([f"no slot: {where} has none{which}"])
        self._slots = [when_empty(slot) for slot in slots] if arguments.empty else slots
        return self._slots

    def jobs(self, file: Optional[Path]) -> list[Jobs]:
        """Jobs of a file, those that pend in the pool if there is none."""
        from sharectl.condor.ad_files import read
        from sharectl.consumption.asks import JOBS, Jobs, checked, pending, restricted, waits
        from sharectl.words import counted

        constraint = self._arguments.job_constraint
        if file is not None:
            every = checked(read(file), JOBS)
            waiting = [ad for ad in every if waits(ad)]
            if len(waiting) < len(every):
                self.notes.append(
                    f"{file}: {counted(len(every) - len(waiting), 'job')} left out that do not "
                    "wait for a slot"
                )
            return [Jobs(ad) for ad in restricted(waiting, constraint, "--job-constraint")]
        if constraint is not None:
            restricted([], constraint, "--job-constraint")
        shapes, missing = pending(self._place(), self._asked().schedds, self._slots, constraint)
        self.missing += missing
        return [Jobs(shape.ad, shape.jobs) for shape in shapes]

    def groups(self, slots: Sequence[AdOfFile]) -> list[Group]:
        """Groups; none if neither a file nor a pool is there to tell.

        On slots taken for empty they use nothing.
        """
        found = self._groups(slots)
        return [replace(group, used=0.0) for group in found] if self._arguments.empty else found

    def _groups(self, slots: Sequence[AdOfFile]) -> list[Group]:
        from sharectl.condor.quotas import groups_of, quotas
        from sharectl.consumption.asks import pool_weight

        arguments = self._arguments
        if arguments.quotas is not None:
            return quotas(arguments.quotas, lambda: pool_weight(slots))
        if arguments.slots is not None and self._pool is None:
            return []
        if not self._asked().groups:
            self.notes.append(
                "groups are missing: the collector has no ad of one; wait for a negotiation "
                "cycle, or see "
                "NEGOTIATOR_ADVERTISE_ACCOUNTING"
            )
        return self._with_static_quotas(groups_of(self._asked().groups))

    def _with_static_quotas(self, groups: list[Group]) -> list[Group]:
        """Groups of which the negotiator has no quota at work, as while there is no slot, have that of its configuration."""
        from sharectl.consumption.asks import static_quotas

        unknown = [
            group.name for group in groups if group.quota is None and group.has_quota_of_its_own
        ]
        known = static_quotas(self._place(), unknown) if unknown else {}
        if known:
            self.notes.append(
                "quotas as configured, since the negotiator has not worked them out yet: "
                f"{', '.join(known)}"
            )
        return [replace(group, quota=known.get(group.name, group.quota)) for group in groups]

    def leftovers(self) -> bool:
        """Whether schedds use what is left of slots."""
        from sharectl.consumption.asks import leftovers

        arguments = self._arguments
        if arguments.leftovers is not None:
            return bool(arguments.leftovers == "on")
        told = leftovers(self._place(), self._pool.schedds) if self._pool is not None else None
        if told is None:
            self.notes.append(
                "CLAIM_PARTITIONABLE_LEFTOVERS of the access points is taken to be on: say "
                "--leftovers off if it is not"
            )
        return told is not False

    def _asked(self) -> PoolAds:
        from sharectl.consumption.asks import look, restricted

        if self._pool is None:
            constraint = self._arguments.constraint if self._arguments.slots is None else None
            if constraint is not None:
                restricted([], constraint, "--constraint")
            self._pool = look(self._place(), constraint)
        return self._pool

    def _place(self) -> PoolPlace:
        from sharectl.consumption.asks import PoolPlace

        if self._arguments.config is None:
            return PoolPlace()
        from sharectl.config.load import load

        pool = load(self._arguments.config).pool
        return PoolPlace(
            pool.collector, pool.collector_deadline_seconds, pool.schedd_deadline_seconds
        )
