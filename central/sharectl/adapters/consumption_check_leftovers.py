"""Check of leftovers: what access points claim of a slot beside what the negotiator matches."""

from __future__ import annotations

from collections.abc import Iterator

from sharectl.adapters.consumption_check_subject import LEFTOVERS, Node, Subject
from sharectl.adapters.snippet_subject import Finding

_REMEDY = (
    f"write {LEFTOVERS} = False, on the nodes and on the access points: since HTCondor 23.7.2 the access "
    "point's alone decides"
)


def leftovers(subject: Subject) -> Iterator[Finding]:
    """Both ways to use a slot more than once in a cycle: HTCondor's wiki names that an unsupported combination.

    Since 23.7.2 the startd does not ask its own knob for slots with a policy (request_claim in
    src/condor_startd.V6/command.cpp): it sends leftovers to any access point that wants them. Seen on both versions, with
    False on the node: so a node that leaves it to HTCondor has no fault.
    """
    for node in subject.nodes:
        if not node.is_on(LEFTOVERS):
            continue
        is_set = bool(node.configuration.assignments(LEFTOVERS))
        if subject.slots and (node.runs("SCHEDD") or (is_set and node.with_policy)):
            yield Finding(
                "leftovers",
                _place(node),
                f"{_told(node)} beside a consumption policy: access "
                "points that want leftovers get them, and start jobs there that the negotiator has not weighed against "
                "group quotas and concurrency limits",
                _REMEDY,
            )
        elif not subject.slots and node.is_access_point:
            yield Finding(
                "leftovers",
                _place(node),
                f"{_told(node)} on an access point: if any node has a consumption policy, this access point starts jobs on the "
                "leftovers of its slots, which pass group quotas and concurrency limits",
                f"write {LEFTOVERS} = False here: since HTCondor 23.7.2 the access point's alone decides",
                advice=True,
            )


def _place(node: Node) -> str:
    """Where it is set, or the configuration that leaves it to HTCondor."""
    is_set = node.configuration.assignments(LEFTOVERS)
    return node.configuration.place(LEFTOVERS) if is_set else node.input.name


def _told(node: Node) -> str:
    return f"{LEFTOVERS} is True" + ("" if node.configuration.assignments(LEFTOVERS) else ", as by default,")
