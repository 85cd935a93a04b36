"""``sharectl consumption capacity``."""

from __future__ import annotations

import argparse

from sharectl.cli import consumption_ads

_REQUEST = ("RequestCpus", "RequestMemory", "RequestDisk")
_UNITS = ("cores", "MiB of memory", "KiB of disk")
_MOST_DIGITS = 15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    consumption_ads.add_jobs(
        parser, "also count claims for these jobs: ads that condor_q -long or -json printed"
    )
    parser.add_argument(
        "--pending", action="store_true", help="also count claims for the jobs that pend in the pool"
    )
    parser.add_argument(
        "--request",
        action="append",
        default=[],
        type=_request,
        metavar="CPUS[,MIB[,KIB]]",
        help="also count claims for jobs of this request (cores, MiB of memory, KiB of disk; each 1 or more, 1 if left out); may be repeated",
    )
    consumption_ads.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print how many claims slots, slot types and groups can have now."""
    from sharectl.adapters.consumption_policy import MOST_CLAIMS
    from sharectl.adapters.consumption_policy_empty import on_empty
    from sharectl.adapters.consumption_policy_pricing import Jobs, job_groups, price, smallest_offers
    from sharectl.adapters.slot_ads import AdOfFile
    from sharectl.report import match_cost, match_cost_tables

    given = consumption_ads.Given(arguments)
    slots = given.slots()
    groups = given.groups(slots)
    smallest, notes = smallest_offers(slots)
    content = match_cost.capacity(
        smallest, groups, leftovers=bool(groups) and given.leftovers(), empty=arguments.empty
    )
    jobs = [Jobs(AdOfFile(name, ad)) for name, ad in arguments.request]
    jobs += given.jobs(arguments.jobs) if arguments.jobs is not None else []
    jobs += given.jobs(None) if arguments.pending else []
    if jobs:
        priced = price(slots, jobs, MOST_CLAIMS)
        empty = priced.matches if arguments.empty else on_empty(slots, jobs, priced)
        content["jobs"] = match_cost.shapes(priced, job_groups(priced, groups), empty)
        notes = (*notes, *priced.notes)
    elif arguments.pending or arguments.jobs is not None:
        content["jobs"] = []
    content["notes"] = notes
    return consumption_ads.print_found(
        "consumption-capacity", content, given, arguments, match_cost_tables.capacity_tables
    )


def _request(text: str) -> tuple[str, dict[str, str]]:
    """Option value ``text`` as a name and an ad."""
    amounts = text.split(",")
    if len(amounts) > len(_REQUEST) or not all(amount.isascii() and amount.isdecimal() for amount in amounts):
        raise argparse.ArgumentTypeError(f"{text[:60]!r}: write cores, MiB and KiB such as 8,16000,1000000")
    wrong = [
        unit for unit, amount in zip(_UNITS, amounts) if len(amount) > _MOST_DIGITS or not amount.strip("0")
    ]
    if wrong:
        raise argparse.ArgumentTypeError(
            f"{text[:60]!r}: {' and '.join(wrong)} must be 1 or more, of {_MOST_DIGITS} digits at most; write such as "
            "8,16000,1000000, or leave MiB and KiB out for 1"
        )
    return f"request {text}", dict(zip(_REQUEST, [*amounts, "1", "1"]))
