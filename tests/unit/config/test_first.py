"""The first configuration: numbers with their origin, and nothing a user writes breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sharectl.cli.init import with_quotas
from sharectl.condor.negotiator import QuotaKnob
from sharectl.config.first import MOST_GROUPS, AnyGroup, FirstLook, render
from sharectl.config.load import parse
from sharectl.config.model import OBSERVE
from sharectl.errors import AbsentError
from sharectl.model import Node, PendingJobs, Snapshot, Source
from sharectl.shares.groups import group_of
from tests.fakes import NOW, running

SOURCES = (Source("collector", 0.1), Source("schedd ap-1.example.org", 0.2))
LIKE_OTHER_TYPES = ("no", "on", "null", "y", "true", "1e3", "123", "0x1f", "08", "1_0")
"""Group names that YAML could take for something else."""


def node(name: str, cores: int = 16, hs06_per_core: float = 10.0, **more: Any) -> Node:
    return Node(name, f"{name}.example.org", cores, hs06_per_core, controlled=True, **more)


NODES = tuple(node(f"wn-{number}") for number in range(40))
LOOK = FirstLook(
    Snapshot(
        NOW,
        NODES,
        (running("wn-1", "cms", 8, 2), running("wn-2", "alice", 1, 5), running("wn-2", "cms", 4)),
        (PendingJobs("cms", 8, 3), PendingJobs("lhcb", 1, 7)),
        SOURCES,
    )
)


def seen(look: FirstLook) -> dict[str, Any]:
    """Content of the YAML, which is a sound configuration that observes."""
    text = render(look)
    assert parse(text, "first").mode == OBSERVE
    assert max(map(len, text.splitlines())) <= 160
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def with_(**changes: Any) -> FirstLook:
    """The look with another snapshot."""
    return replace(LOOK, snapshot=replace(LOOK.snapshot, **changes))


def comments(look: FirstLook) -> str:
    """Comments in one line."""
    lines = (line.strip() for line in render(look).splitlines())
    return " ".join(line[2:] for line in lines if line.startswith("# "))


def test_groups_by_use_with_equal_parts_where_no_quota_is_known() -> None:
    assert seen(LOOK) == {
        "mode": "observe",
        "groups": {name: {"pledge_hs06": 2133.33} for name in ("cms", "alice", "lhcb")},
        "nodes": {"controlled": "5%"},
        "control": {"multicore_cores": 8},
    }
    text = comments(LOOK)
    assert "40 nodes with 640 cores, 6400 HS06. 1 of 1 schedd answered." in text
    assert "20 cores in use; 4-core jobs: 1 run, 0 wait; 8-core jobs: 2 run, 3 wait" in text
    assert "Write what each group was promised." in text
    assert "No quotas, because GROUP_NAMES of the negotiator is empty." in text
    assert "share of those with the execute point's snippet (40 of 40 nodes now), 2 if all" in text


def knobs(**values: str) -> list[QuotaKnob]:
    return [QuotaKnob("negotiator", name, value) for name, value in values.items()]


def test_quotas_are_pledges_and_other_groups_are_shown() -> None:
    look = with_quotas(
        LOOK,
        knobs(
            GROUP_NAMES="CMS, cms.prod, atlas, lhcb, group_x!",
            GROUP_QUOTA_CMS="320",
            GROUP_QUOTA_cms_prod="7",
            **{"GROUP_QUOTA_DYNAMIC_cms.prod": "0.5", "GROUP_QUOTA_group_x!": "9"},
            GROUP_QUOTA_DYNAMIC_atlas="0.25",
            GROUP_QUOTA_unlisted="30",
        ),
    )
    data = seen(look)
    assert (data["groups"], data["pledges"]) == ({"cms": {}, "atlas": {}}, {"from": "negotiator"})
    text = comments(look)
    assert "quota 320 of 640 cores" in text
    assert "atlas" not in text
    assert "lhcb: {pledge_hs06: }" in text
    assert "It also has 1 quota of groups within these" in text


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (
            {"GROUP_NAMES": "cms", "GROUP_QUOTA_cms": "many"},
            "negotiator: GROUP_QUOTA_cms is 'many'",
        ),
        ({"GROUP_NAMES": "cms"}, "the negotiator: no quota in it"),
        ({}, "GROUP_NAMES of the negotiator is empty"),
        ({"GROUP_NAMES": "cms", "GROUP_QUOTA_cms": "0"}, "the negotiator has none above 0"),
    ],
)
def test_without_a_sound_quota_the_reason_is_told(values: dict[str, str], why: str) -> None:
    look = with_quotas(LOOK, knobs(**values))
    assert "pledges" not in seen(look)
    assert f"No quotas, because {why}" in comments(look)


def test_nodes_without_power_are_counted() -> None:
    assert "All nodes publish their power, t1_wn_hs06." in comments(LOOK)
    look = with_(nodes=(*NODES, node("wn-a", 16, 25.0, power_assumed=True)))
    assert "pool" not in seen(look)
    assert "1 of 41 nodes publish no t1_wn_hs06, and count as 400 HS06." in comments(look)


@pytest.mark.parametrize(("count", "controlled"), [(3, "*"), (19, "*"), (20, "5%")])
def test_nodes_to_steer_by_their_number(count: int, controlled: str) -> None:
    nodes = tuple(
        node(f"wn-{number}", deaf="no-snippet" if number < 2 else None) for number in range(count)
    )
    assert seen(with_(nodes=nodes))["nodes"] == {"controlled": controlled}
    assert f"snippet ({count - 2} of {count} nodes now)" in comments(with_(nodes=nodes))
    bare = tuple(replace(one, deaf="no-snippet") for one in nodes)
    assert f"none of {count} nodes now" in comments(with_(nodes=bare))


def test_size_of_multicore_work() -> None:
    four = with_(running=(running("wn-1", "cms", 4, 9), running("wn-1", "cms", 8, 4)), pending=())
    assert seen(four)["control"] == {"multicore_cores": 4}
    assert "SHARECTL_MULTICORE_CORES = 4" in comments(four)
    single = with_(running=(running("wn-1", "cms", 1, 9),), pending=())
    assert "control" not in seen(single)
    assert "control: {multicore_cores: 8}" in comments(single)


def test_a_shorter_period_of_the_timer_is_advised_for_jobs_of_minutes_alone() -> None:
    def written(*ages: int) -> str:
        held = (running("wn-1", "cms", 8, 3)._replace(seconds=age) for age in ages)
        return comments(with_(running=tuple(held)))

    brief, long = written(60, 240, 90_000), written(60, 700, 90_000)
    assert "Half of the jobs began in the last 4 min." in brief
    assert "validity_seconds: 660" in brief
    assert "Half of the jobs" not in long
    assert "validity_seconds" not in long


@pytest.mark.parametrize(
    ("publisher", "works"),
    [
        (None, False),
        (("unauthenticated@unmapped", "no method"), False),
        (("condor@example.org", "FS"), True),
    ],
)
def test_transport_that_would_work(publisher: Any, works: bool) -> None:  # noqa: FBT001 - a parameter
    look = replace(LOOK, publisher=publisher)
    assert "publish" not in seen(look)
    line = '# publish: [{collector: {identity: "condor@example.org"}}]'
    assert (line in render(look)) == works
    assert ("do not work from here yet" in comments(look)) != works
    if works:
        chosen = render(look).replace(line, line[2:])
        assert parse(chosen, "chosen").publish[0].collector is not None


def test_a_silent_schedd_is_named() -> None:
    silent = Source("schedd ap-2\n\x1b[31m: {", 60.0, "no answer\nwithin 60 s")
    look = with_(sources=(*SOURCES, silent))
    seen(look)
    assert "1 of 2 schedds answered" in comments(look)
    assert "schedd ap-2\\n\\x1b[31m: { did not answer (no answer\\nwithin 60 s)" in comments(look)


def test_no_group_at_all_is_an_error() -> None:
    with pytest.raises(AbsentError, match=r"no job has an AccountingGroup .* write groups:"):
        render(with_(running=(), pending=(PendingJobs("other", 1, 5),)))


def test_many_groups_are_counted() -> None:
    held = [running("wn-1", f"g{number}", 1, 100 - number) for number in range(MOST_GROUPS + 6)]
    look = with_(running=tuple(held), pending=())
    assert list(seen(look)["groups"]) == [f"g{number}" for number in range(MOST_GROUPS)]
    assert "6 groups more with jobs" in comments(look)
    some = replace(look, quotas={"g69": 5.0})
    assert list(seen(some)["groups"]) == ["g69"]
    assert "5 groups more with jobs" in comments(some)


NAMES = st.text(max_size=80) | st.sampled_from((*LIKE_OTHER_TYPES, "x" * 10**6, "a\n- b", "{"))


@given(st.lists(NAMES, max_size=5))
def test_whatever_users_write_the_file_is_sound(names: list[str]) -> None:
    groups = [group_of(name, AnyGroup()) for name in names]
    look = with_(running=tuple(running("wn-1", group, 1) for group in groups))
    data = seen(look)
    assert set(data["groups"]) == (set(groups) | {"cms", "lhcb"}) - {"other"}
    assert render(look).replace("\n", "").isprintable()


def test_dynamic_quotas_are_shares_of_the_slots_that_the_negotiator_sees() -> None:
    values = {"GROUP_NAMES": "cms", "GROUP_QUOTA_DYNAMIC_cms": "0.5"}
    assert with_quotas(LOOK, knobs(**values), 8.0).quotas == {"cms": 4.0}
