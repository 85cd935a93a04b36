"""The first configuration: numbers with their origin, and nothing a user writes breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import ndiff
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sharectl.cli.init import with_quotas
from sharectl.config.first import MOST_GROUPS, AnyGroup, FirstLook, render
from sharectl.config.load import parse
from sharectl.config.model import OBSERVE
from sharectl.errors import AbsentError
from sharectl.model import Node, PendingJobs, Snapshot, Source
from sharectl.shares.groups import group_of
from tests.fakes import NOW, running

SOURCES = (Source("collector", 0.1), Source("schedd ap-1.example.org", 0.2))
SILENT = Source("schedd ap-2\n\x1b[31m: {", 60.0, "no answer\nwithin 60 s")
LIKE_OTHER_TYPES = ("no", "on", "null", "y", "true", "1e3", "123", "0x1f", "08", "1_0")
"""Group names that YAML could take for something else."""


def node(number: int, hs06_per_core: float = 10.0, **more: Any) -> Node:
    name = f"wn-{number}"
    return Node(name, f"{name}.example.org", 16, hs06_per_core, controlled=True, **more)


NODES = tuple(map(node, range(40)))
BARE = tuple(node(number, deaf="no-snippet") for number in range(20))
LOOK = FirstLook(
    Snapshot(
        NOW,
        NODES,
        (running("wn-1", "cms", 8, 2), running("wn-2", "alice", 1, 5), running("wn-2", "cms", 4)),
        (PendingJobs("cms", 8, 3), PendingJobs("lhcb", 1, 7)),
        SOURCES,
    )
)
MANY = tuple(running("wn-1", f"g{n}", 1, 100 - n) for n in range(MOST_GROUPS + 6))


def with_(**changes: Any) -> FirstLook:
    """The look with another snapshot."""
    return replace(LOOK, snapshot=replace(LOOK.snapshot, **changes))


def of_knobs(values: dict[str, str], cores: float | None = None) -> FirstLook:
    return with_quotas(LOOK, {name.lower(): value for name, value in values.items()}, cores)


def of_ages(*seconds: int) -> FirstLook:
    """Look at jobs of these ages."""
    jobs = (running("wn-1", "cms", 8, 3)._replace(seconds=age) for age in seconds)
    return with_(running=tuple(jobs))


LOOKS: dict[str, FirstLook] = {
    "quotas, also of groups without jobs, within others, and not in GROUP_NAMES": of_knobs(
        {
            "GROUP_NAMES": "CMS, cms.prod, atlas, lhcb, group_x!",
            "GROUP_QUOTA_CMS": "320",
            "GROUP_QUOTA_cms_prod": "7",
            "GROUP_QUOTA_DYNAMIC_cms.prod": "0.5",
            "GROUP_QUOTA_group_x!": "9",
            "GROUP_QUOTA_DYNAMIC_atlas": "0.25",
            "GROUP_QUOTA_unlisted": "30",
        }
    ),
    "a share of eight cores that the negotiator sees": of_knobs(
        {"GROUP_NAMES": "cms", "GROUP_QUOTA_DYNAMIC_cms": "0.5"}, 8.0
    ),
    "an invalid quota": of_knobs({"GROUP_NAMES": "cms", "GROUP_QUOTA_cms": "many"}),
    "no quota": of_knobs({"GROUP_NAMES": "cms"}),
    "a quota of 0": of_knobs({"GROUP_NAMES": "cms", "GROUP_QUOTA_cms": "0"}),
    "a node without power": with_(nodes=(*NODES, node(40, 25.0, power_assumed=True))),
    "three nodes": with_(nodes=NODES[:3]),
    "19 nodes, two without the snippet": with_(nodes=(*BARE[:2], *NODES[2:19])),
    "20 nodes without the snippet": with_(nodes=BARE),
    "most work has 4 cores": with_(running=(running("wn-1", "cms", 4, 9),), pending=()),
    "jobs of one core": with_(running=(running("wn-1", "cms", 1, 9),), pending=()),
    "half of the jobs run for 4 minutes": of_ages(60, 240, 90_000),
    "more than half of them for 10": of_ages(60, 700, 90_000),
    "nobody": replace(LOOK, publisher=("unauthenticated@unmapped", "no method")),
    "a publisher": replace(LOOK, publisher=("condor@example.org", "FS"), collector="cm:9618"),
    "a silent schedd": with_(sources=(*SOURCES, SILENT)),
}


def seen(look: FirstLook) -> dict[str, Any]:
    """Content of the YAML, which is a sound configuration that observes."""
    text = render(look)
    assert parse(text, "first").mode == OBSERVE
    assert max(map(len, text.splitlines())) <= 160
    assert text.replace("\n", "").isprintable()
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def test_numbers_have_their_origin(golden: Callable[[str, str], None]) -> None:
    """The whole file of a pool, and the lines in which those of others differ."""
    first = render(LOOK)
    parts = [first]
    for title, look in LOOKS.items():
        seen(look)
        lines = ndiff(first.splitlines(), render(look).splitlines())
        parts += [f"\n== {title}", *(line for line in lines if line[0] in "+-")]
    golden("config/first.txt", "\n".join(parts) + "\n")
    assert len(LOOKS) == 16


def test_the_transport_that_would_work_does() -> None:
    line = '# publish: [{collector: {identity: "condor@example.org"}}]'
    text = render(LOOKS["a publisher"])
    assert parse(text.replace(line, line[2:]), "chosen").publish[0].collector is not None


def test_no_group_at_all_is_an_error() -> None:
    with pytest.raises(AbsentError, match=r"no job has an AccountingGroup .* write groups:"):
        render(with_(running=(), pending=(PendingJobs("other", 1, 5),)))


def test_many_groups_are_counted() -> None:
    look = with_(running=MANY, pending=())
    assert list(seen(look)["groups"]) == [f"g{number}" for number in range(MOST_GROUPS)]
    assert "6 groups more with jobs" in render(look)
    assert "69 groups more with jobs" in render(replace(look, quotas={"g69": 5.0}))


NAMES = st.text(max_size=80) | st.sampled_from((*LIKE_OTHER_TYPES, "x" * 10**6, "a\n- b", "{"))


@given(st.lists(NAMES, max_size=5))
def test_whatever_users_write_the_file_is_sound(names: list[str]) -> None:
    groups = [group_of(name, AnyGroup()) for name in names]
    look = with_(running=tuple(running("wn-1", group, 1) for group in groups))
    assert set(seen(look)["groups"]) == (set(groups) | {"cms", "lhcb"}) - {"other"}
