"""What costs and quotas mean for a group, in words."""

from __future__ import annotations

from typing import Optional

from sharectl.core.claim_capacity import GroupCost
from sharectl.report.words import counted

UNKNOWN = "?"


def verdicts(cost: GroupCost) -> list[str]:
    """What follows for the group, a line each."""
    group = cost.group
    quota = shown_number(group.quota)
    surplus = {
        "byquota": "takes surplus: what others leave unused comes on top of its quota",
        "regroup": "competes for what is left over after its quota, with the root group (autoregroup)",
        None: "whether it takes surplus is not known",
    }.get(group.surplus)
    one_by_one = (
        f"on slots without policy it gets one match at a time, charged with the whole slot (none at all up to HTCondor 8.6): "
        f"its quota of {quota} is below the weight of every such slot that its jobs match "
        f"({shown_number(cost.smallest_weight_without_policy)} at least)"
    )
    running_past = (
        f"may run past its quota through leftovers: {counted(cost.leftover_claims or 0, 'claim')}, charged "
        f"{shown_number(cost.leftover_usage)} later, {shown_number(cost.past_quota)} beyond its room"
    )
    nothing = f"its quota of {quota} counts for nothing: the negotiator cuts quotas to whole numbers"
    above = (
        f"its quota of {quota} is below the cost of every match ({shown_number(cost.smallest_cost)} at least)"
    )
    unknown = "its quota is not known: nothing is said of it (wait for a negotiation cycle, or give --quotas)"
    never = cost.jobs_without_empty_slot
    waiting = cost.jobs_without_slot - never
    least, most = cost.cost_differs or (None, None)
    differs = (
        f"the same job costs {shown_number(least)} to {shown_number(most)}, by the slot that it is matched with: their cost is "
        f"{shown_number(cost.cost)} at least, as if all of them fitted where they cost least"
    )
    lines = [
        (group.quota is None and group.has_quota_of_its_own, unknown),
        (group.has_quota_of_its_own and group.quota and not group.limit, nothing),
        (cost.one_match_at_a_time, one_by_one),
        (cost.quota_below_every_cost, above),
        (cost.past_quota, running_past),
        (cost.cost_differs, differs),
        (never, f"{_share(never, cost.jobs)} no slot, not even if it were empty"),
        (waiting, f"{_share(waiting, cost.jobs)} no slot as it is, but would if one were empty"),
        (group.has_quota_of_its_own, surplus),
    ]
    return [text for applies, text in lines if applies and text]


def _share(jobs: int, every: int) -> str:
    """How many of a group's jobs, and a verb for them."""
    return f"{jobs} of {counted(every, 'job')} {'matches' if jobs == 1 else 'match'}"


def shown_number(value: Optional[float]) -> str:
    """``value`` for people."""
    return UNKNOWN if value is None else f"{value:.6g}" if type(value) is float else str(value)
