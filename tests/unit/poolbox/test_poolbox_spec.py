from __future__ import annotations

from pathlib import PurePath

import pytest

from poolbox.configuration import Installation, host_configurations
from poolbox.errors import SpecError
from poolbox.spec import BoxSpec, ExecutePoint

HERE = Installation(
    *(PurePath(path) for path in ("/usr", "/usr/libexec/condor", "/usr/lib/condor", "/usr/sbin"))
)


def configuration(spec: BoxSpec, host: str) -> dict[str, str]:
    return host_configurations(spec, host, PurePath("/box/hosts") / host, 20001, HERE)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (BoxSpec(suite="bookworm"), "suite 'bookworm': write one of trixie, forky"),
        (BoxSpec(access_points=()), "access_points: at least one is needed"),
        (BoxSpec(access_points=("AP 1",)), "host 'AP 1': write a lower-case host name"),
        (BoxSpec(access_points=("../ap",)), "host '../ap': write a lower-case host name"),
        (BoxSpec(access_points=("cm-1.example.org",)), "host 'cm-1.example.org': named 2 times"),
        (
            BoxSpec((ExecutePoint(cores=0),)),
            "execute point wn-001.example.org: cores and memory_mib must be",
        ),
        (
            BoxSpec((ExecutePoint(memory_mib=-1),)),
            "execute point wn-001.example.org: cores and memory_mib must be",
        ),
        (BoxSpec(groups={"c m": 1}), "group 'c m': write letters"),
        (BoxSpec(groups={"cms": 1.5}), "group cms: quota 1.5: write cores as an int, or a share"),
        (BoxSpec(groups={"cms": -1}), "group cms: quota -1"),
        (BoxSpec(groups={"cms": True}), "group cms: quota True"),
        (BoxSpec(groups={"cms": float("nan")}), "group cms: quota nan"),
        (BoxSpec(groups={"cms": float("inf")}), "group cms: quota inf"),
    ],
)
def test_what_cannot_be_a_pool_is_refused_by_name(spec: BoxSpec, problem: str) -> None:
    with pytest.raises(SpecError) as raised:
        spec.check()
    assert len(raised.value.problems) == 1
    assert raised.value.problems[0].startswith(problem)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(SpecError) as raised:
        BoxSpec((ExecutePoint(cores=0),), access_points=(), suite="sid", groups={"": 2.0}).check()
    assert len(raised.value.problems) == 5


def test_configuration_of_the_whole_box_comes_before_the_roles_and_the_nodes_own() -> None:
    node = ExecutePoint(config="X = node\n")
    spec = BoxSpec(
        (node,), config="X = box\n", execute_config="X = execute\n", access_config="X = access\n"
    )
    texts = configuration(spec, node.name)
    assert [texts[name] for name in sorted(texts) if name.startswith("config.d")] == [
        "X = box\n",
        "X = execute\n",
        "X = node\n",
    ]
    assert configuration(spec, "ap-1.example.org")["config.d/20-role.config"] == "X = access\n"


def test_an_int_is_a_quota_in_cores_and_a_float_a_share() -> None:
    text = configuration(BoxSpec(groups={"cms": 40, "atlas": 0.5, "all": 1.0}), "cm-1.example.org")[
        "condor_config"
    ]
    assert "GROUP_NAMES = cms, atlas, all\n" in text
    for line in (
        "GROUP_QUOTA_cms = 40\n",
        "GROUP_QUOTA_DYNAMIC_atlas = 0.5\n",
        "GROUP_QUOTA_DYNAMIC_all = 1.0\n",
    ):
        assert line in text
