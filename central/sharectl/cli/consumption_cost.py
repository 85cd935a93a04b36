"""``sharectl consumption cost``."""

from __future__ import annotations

import argparse

from sharectl.cli import consumption_ads

_EPILOG = """\
columns of --group, in weighted slots:
  their cost    of all pending jobs of the group that match a slot, each on the one where it costs least, in that cycle;
                >= where the same job costs more on another slot: how many fit on the cheapest ones is not looked at
  usage later   what these jobs are charged from the next cycle on, each on the slot where that is least; >= likewise
  least cost    the smallest cost of such a match
  least weight  the smallest SlotWeight of a slot that they match: what a match costs at least on slots without policy
  past quota    by how much leftovers could take the group past its quota

"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    consumption_ads.add_jobs(
        parser,
        "ads that condor_q -long or -json printed (default: the jobs that pend in the pool)",
        _EPILOG,
    )
    consumption_ads.add_request(
        parser, "jobs of this request instead of those that pend in the pool"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--sequence",
        action="store_true",
        help="match the jobs one after another with each slot, as one cycle would (default: each with the slot as it is)",
    )
    how.add_argument(
        "--group",
        action="store_true",
        help="sums by accounting group against its quota: who gets one match at a time without policies, who may run past it",
    )
    consumption_ads.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what each job would take of each slot, what it costs, what remains and how many more fit."""
    from sharectl.consumption.asks import MOST_CLAIMS, demands, on_empty, price, price_in_sequence
    from sharectl.consumption.cost import group_cost, with_groups_of_jobs
    from sharectl.report import match_cost

    given = consumption_ads.Given(arguments)
    slots = given.slots()
    jobs = consumption_ads.requested(arguments)
    jobs += given.jobs(arguments.jobs) if arguments.jobs is not None or not jobs else []
    if arguments.quotas is not None and not arguments.group:
        given.groups(slots)
        given.notes.append(f"{arguments.quotas}: read and checked; only --group shows quotas")
    if arguments.sequence:
        content = match_cost.sequence(
            price_in_sequence(slots, jobs), [job.ad.place for job in jobs for _ in range(job.count)]
        )
    else:
        priced = price(slots, jobs, MOST_CLAIMS)
        empty = priced.matches if arguments.empty else on_empty(slots, jobs, priced)
        content = match_cost.priced(priced, empty)
        if arguments.group:
            groups = with_groups_of_jobs(
                given.groups(slots), (job.accounting_group for job in priced.jobs)
            )
            leftovers = given.leftovers()
            content["groups"] = match_cost.groups(
                [
                    group_cost(group, found, leftovers=leftovers)
                    for group, found in demands(priced, groups, empty)
                ]
            )
    return consumption_ads.print_found(
        "consumption-cost", content, given, arguments, match_cost.cost_tables
    )
