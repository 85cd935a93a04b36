"""Laws of what bounds the change of targets."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from sharectl.model import PlanLimits, Snapshot, Standing, Target
from sharectl.plan.diff import changes
from sharectl.plan.limits import LIMITS, dwelling, limited, standing_after
from sharectl.plan.nodes import nodes_in_share
from sharectl.plan.plan import PlanConfig, State, decide, withdrawal
from sharectl.plan.settings import STRATEGIES
from tests.fakes import NOW
from tests.property.shares.test_law_laws import NODES, pledges, snapshots

GROUPS = ("alice", "cms")
GONE_GROUP = "dune"
KINDS = ("dropped", "altered", "added")

Asked = tuple[list[Standing], list[Target], PlanLimits, int, int]
"""Targets that stand and that are wanted, limits, nodes of the pool, uncertain nodes."""


def target(node: str, cap_cores: int, held_back: str = "alice") -> Target:
    return Target(node, held_back, cap_cores, "cms", 8)


def one_a_node(node_of: dict[str, st.SearchStrategy[Target]]) -> st.SearchStrategy[list[Target]]:
    def some(nodes: list[str]) -> st.SearchStrategy[list[Target]]:
        drawn = st.tuples(*(st.none() | node_of[node] for node in nodes))
        return drawn.map(lambda targets: [target for target in targets if target is not None])

    return st.permutations(sorted(node_of)).flatmap(some)


caps = st.sampled_from((0, 8, 56))
groups = st.sampled_from(("alice", GONE_GROUP))
stood = one_a_node(
    {node: st.builds(target, st.just(node), caps, groups) for node in (*NODES, "gone")}
)
asked_for = one_a_node({node: st.builds(target, st.just(node), caps) for node in NODES})
limits = st.builds(
    PlanLimits,
    max_nodes=st.none() | st.integers(1, 5),
    max_target_ratio=st.none() | st.sampled_from((0.0, 0.25, 0.29, 0.5, 1.0)),
    max_changed_nodes=st.none() | st.integers(1, 4),
    dwell_seconds=st.sampled_from((0, 100)),
)


@st.composite
def situations(draw: st.DrawFn) -> Asked:
    ages = st.sampled_from((-50, 0, 50, 99, 100, 5000))
    standing = [Standing(each, NOW - draw(ages)) for each in draw(stood)]
    pool_nodes = draw(st.integers(len(NODES), 12))
    return standing, draw(asked_for), draw(limits), pool_nodes, draw(st.integers(0, 3))


def staying(standing: list[Standing]) -> list[Standing]:
    """Targets of nodes and groups that are there."""
    return [old for old in standing if may_stay(old.target)]


def may_stay(target: Target) -> bool:
    return target.node in NODES and target.held_back in GROUPS


def result(asked: Asked, **others: object) -> tuple[Target, ...]:
    standing, wanted, bounds, pool_nodes, uncertain = asked
    changed = replace(bounds, **others)  # type: ignore[arg-type]
    return limited(standing, staying(standing), wanted, changed, NOW, pool_nodes, uncertain)[0]


def room(bounds: PlanLimits, pool_nodes: int) -> float:
    share = bounds.max_target_ratio
    shares = inf if share is None else nodes_in_share(share, pool_nodes)
    return min(shares, inf if bounds.max_nodes is None else bounds.max_nodes)


def forced(standing: int, kept: int, most: float) -> int:
    """Number of targets that must go: of lost nodes and groups, and beyond the room."""
    return standing - int(min(kept, most))


@given(situations())
def test_limits_are_kept_and_named_where_they_act(asked: Asked) -> None:
    """Room, changes, dwell; old or wanted targets alone; codes of the table, each once."""
    standing, wanted, bounds, pool_nodes, uncertain = asked
    kept, most = staying(standing), room(bounds, pool_nodes)
    targets, notes = limited(standing, kept, wanted, bounds, NOW, pool_nodes, uncertain)
    assert len(targets) <= most
    changed = changes(standing, standing_after(standing, targets, NOW))
    if bounds.max_changed_nodes is not None:
        must_go = forced(len(standing), len(kept), most)
        assert len(changed) <= max(bounds.max_changed_nodes - uncertain, must_go)
    young = dwelling(kept, bounds, NOW)
    if len(young) <= most:
        assert set(young) <= set(targets)
    assert [each for each in targets if not may_stay(each)] == []
    assert set(targets) <= {each.target for each in standing} | set(wanted)
    assert len({each.node for each in targets}) == len(targets)
    codes = [note.code for note in notes]
    assert set(codes) <= set(LIMITS)
    assert len(set(codes)) == len(codes)
    assert min((note.nodes for note in notes), default=1) >= 1
    if not notes:
        assert targets == tuple(wanted)
    free = limited(standing, kept, wanted, PlanLimits(), NOW, pool_nodes, uncertain)
    assert free == (tuple(wanted), ())


@given(situations())
def test_removals_come_before_alterations_before_additions(asked: Asked) -> None:
    """While a change of one kind is put off for their number, none of a later kind is made."""
    standing, _, bounds, *_ = asked
    most = bounds.max_changed_nodes or 2
    made, due = (
        {each.nodes[0]: KINDS.index(each.kind) for each in changes(standing, after)}
        for limit in (most, None)
        for after in [standing_after(standing, result(asked, max_changed_nodes=limit), NOW)]
    )
    put_off = [kind for node, kind in due.items() if node not in made]
    ours = {each.target.node for each in standing if may_stay(each.target)}
    by_choice = [kind for node, kind in made.items() if node in ours or KINDS[kind] == "added"]
    assert max(by_choice, default=0) <= min(put_off, default=2)


@given(situations())
def test_changes_are_not_put_off_for_ever(asked: Asked) -> None:
    """In the end limits let through the targets that they would without max_changed_nodes."""
    standing, wanted, bounds, pool_nodes, _ = asked
    settled = replace(bounds, dwell_seconds=0)
    for _ in range(len(NODES) * 2 + 3):
        targets, _ = limited(standing, staying(standing), wanted, settled, NOW, pool_nodes)
        standing = list(standing_after(standing, targets, NOW))
    unbounded = replace(settled, max_changed_nodes=None)
    assert targets == limited(standing, standing, wanted, unbounded, NOW, pool_nodes)[0]


@given(situations(), st.randoms(use_true_random=False), st.integers(0, 400))
def test_order_does_not_matter_and_a_withdrawal_takes_all_away(
    asked: Asked, source: Random, later: int
) -> None:
    """A withdrawal has no target, under whatever limits and however young those are that stand."""
    standing, _, bounds, _, uncertain = asked
    mixed = source.sample(standing, len(standing))
    assert result((mixed, *asked[1:])) == result(asked)
    state = State(5, standing=tuple(standing), standing_until=NOW + 900, uncertain_nodes=uncertain)
    config = PlanConfig(dict.fromkeys(GROUPS, 1.0), bounds, 900)
    decided, after = withdrawal(config, state, NOW + later, reason="disabled")
    assert (decided.targets, after.standing) == ((), ())


@given(
    st.lists(snapshots, min_size=2, max_size=4),
    pledges,
    limits,
    st.sampled_from(tuple(STRATEGIES)),
)
def test_cycle_after_cycle_stays_within_the_limits(
    looks: list[Snapshot], pledge: dict[str, float], bounds: PlanLimits, strategy: str
) -> None:
    """From cycle to cycle no more targets change than allowed, but for those that must go."""
    config, state = PlanConfig(pledge, bounds, 3060, strategy=strategy), State()
    for number, taken in enumerate(looks):
        now, before = NOW + 17 * number, state
        made = decide(config, before, taken, now)
        decided, state = made.plan, made.state
        controlled = {node.name for node in taken.nodes if node.controlled}
        kept = [old for old in before.standing if old.target.node in controlled]
        changed, most = changes(before.standing, state.standing), room(bounds, len(taken.nodes))
        must_go = forced(len(before.standing), len(kept), most)
        assert len(decided.targets) <= most
        assert len(changed) <= max(bounds.max_changed_nodes or len(NODES), must_go)
        young = set(dwelling(kept, bounds, now))
        if len(young) <= most:
            assert young <= set(decided.targets)
