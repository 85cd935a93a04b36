"""``sharectl consumption capacity``."""

from __future__ import annotations

import argparse

from sharectl.cli import consumption_ads


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    consumption_ads.add_jobs(
        parser, "also count claims for these jobs: ads that condor_q -long or -json printed"
    )
    parser.add_argument(
        "--pending",
        action="store_true",
        help="also count claims for the jobs that pend in the pool",
    )
    consumption_ads.add_request(parser, "also count claims for jobs of this request")
    consumption_ads.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print how many claims slots, slot types and groups can have now."""
    from sharectl.consumption.asks import MOST_CLAIMS, job_groups, on_empty, price, smallest_offers
    from sharectl.report import match_cost

    given = consumption_ads.Given(arguments)
    slots = given.slots()
    groups = given.groups(slots)
    smallest, notes = smallest_offers(slots)
    content = match_cost.capacity(
        smallest, groups, leftovers=bool(groups) and given.leftovers(), empty=arguments.empty
    )
    jobs = consumption_ads.requested(arguments)
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
        "consumption-capacity", content, given, arguments, match_cost.capacity_tables
    )
