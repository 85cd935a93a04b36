from __future__ import annotations

from dataclasses import replace
from typing import Optional

from hypothesis import given
from hypothesis import strategies as st

from sharectl.control.laws import Control
from sharectl.control.setpoints import Entitlement, Loans
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.record import record_of
from sharectl.explain.codes import CODES
from sharectl.model import Node, Snapshot, Standing, Target
from sharectl.plan.plan import PlanConfig, State, decide
from sharectl.plan.settings import GiveUp
from tests.fakes import NOW, running, snapshot
from tests.ledgers import PERIOD_SECONDS, SOURCES, law

Look = tuple[list[dict[str, int]], int, int]
"""Jobs by group of each node, and waiting jobs of two groups."""
NODE = st.dictionaries(st.sampled_from(("alice", "atlas", "cms")), st.integers(1, 32), max_size=2)
LOOK = st.tuples(st.lists(NODE, min_size=1, max_size=6), st.integers(0, 20), st.integers(0, 20))
LAWS = st.builds(
    lambda name, strategy, most, dwell: replace(
        law(strategy, max_changed_nodes=most, dwell_seconds=dwell),
        steering=SteeringConfig(Control(law=name)),
        give_up=GiveUp(seconds=PERIOD_SECONDS),
    ),
    st.sampled_from(("latest", "ewma", "pid")),
    st.sampled_from(("pair", "many")),
    st.sampled_from((None, 1, 3)),
    st.sampled_from((0, 2000)),
)


def looks(drawn: list[Look]) -> list[Snapshot]:
    taken = []
    for number, (nodes, cms, atlas) in enumerate(drawn):
        held = [
            running(f"cn-{n}", group, 1, 1)._replace(seconds=age, memory_mib=age % 999)
            for n, of_node in enumerate(nodes)
            for group, jobs in of_node.items()
            # Of any age, and some have started since the last look.
            for age in [
                abs(hash((n, job, number))) % 40_000 % (900 * job + 60) for job in range(jobs)
            ]
        ]
        seen = snapshot(
            held, {("cms", 8): cms, ("cms", 1): atlas, ("atlas", 8): atlas}, sources=SOURCES
        )
        # Nodes for multicore jobs alone in one cycle are for all jobs in the next.
        of_node = tuple(
            replace(
                node,
                multicore_only=(index + number) % 2 == 0,
                # Nodes obey, or act on an older target.
                obeyed_sequence=NOW + (number - 1 - index % 2) * PERIOD_SECONDS,
            )
            for index, node in enumerate(seen.nodes)
        )
        taken.append(replace(seen, nodes=of_node, taken_at=NOW + number * PERIOD_SECONDS))
    return taken


@given(LAWS, LOOK, st.sampled_from((None, "unsigned")), st.booleans(), st.booleans())
def test_every_code_of_a_decision_has_its_sentence(
    config: PlanConfig,
    drawn: Look,
    refusal: Optional[str],
    hampered: bool,  # noqa: FBT001 - drawn
    present: bool,  # noqa: FBT001
) -> None:
    """Codes of plan, groups, nodes, limits and controllers are in the closed set."""
    (taken,) = looks([drawn])
    first, *rest = taken.nodes or (Node("cn-0", "cn-0", 8, 10.0, controlled=True),)
    odd = replace(first, refusal=refusal, draining=hampered, reserved=hampered)
    taken = replace(taken, nodes=(odd, *rest))
    loans = Loans({"alice": 50.0}, {"cms": 5.0})
    due = Entitlement("present" if present else "in_use", loans)
    config = replace(config, steering=replace(config.steering, entitlement=due))
    gone = Standing(Target("cn-gone", "alice", 1, "cms", 8), NOW - 60)
    state = State(standing=(gone,), standing_until=NOW + 60)
    decision = decide(config, state, taken, NOW)
    record = record_of(config, taken, decision, decision.plan, ())
    seen: dict[str, set[Optional[str]]] = {
        "plan": {decision.plan.reason},
        "group": {reason.code for reason in record.group_reasons.values()},
        "node": {node.reason for node in decision.nodes},
        "limit": {note.code for note in decision.plan.limits},
        "acted": {code for control in decision.groups for code in control.acted},
        "law": {control.law for control in decision.groups},
    }
    for family, codes in seen.items():
        assert codes <= set(CODES[family])
