"""Policies of the law `learned`, which a configuration names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sharectl.cli.cycle import digest_of
from sharectl.config.advice import unusable
from sharectl.config.laws import with_laws
from sharectl.config.load import parse, steering_of
from sharectl.control.laws import Control, Reading, step
from sharectl.errors import ConfigError
from tests.policies import POLICY, write_policy

GROUPS = "groups: {cms: {pledge_hs06: 1}, alice: {pledge_hs06: 1}}\n"


def control(text: str) -> Control:
    return with_laws(steering_of(parse(f"{GROUPS}control: {text}", "F"))).control


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        control(text)
    return list(caught.value.problems)


def test_a_policy_acts(tmp_path: Path) -> None:
    law = control(f"{{law: learned, policy: {write_policy(tmp_path)}}}")
    reading = Reading(100, 500, most_hs06=1000, pool_cores=100, idle_cores=20)
    assert step(law, {}, reading, 0).output_hs06 == pytest.approx(90)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": [1.0]}, "weights: 1 for 2 features"),
        ({"weights": [1.0, 1e9]}, "weights[1]: 1000000000.0 is not a number of at most 1000"),
        ({"weights": [1.0, "2"]}, "weights.1: "),
        ({"features": ["error", "eror"]}, 'features[1]: "eror" is none of error, '),
        ({"features": ["error", "error"]}, "features: a feature is there twice"),
        ({"half_life_seconds": 0.0}, "half_life_seconds: 0.0 is not above 0"),
        ({"schema_version": 2}, "schema_version 2 is of a newer sharectl"),
        ({"more": 1}, "more: "),
        ({"training": None}, "training: "),
    ],
)
def test_a_wrong_policy(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = write_policy(tmp_path, **changes)
    (problem,) = problems_of(f"{{law: learned, policy: {path}}}")
    assert problem.startswith(f"control.policy: {path}: {words}")
    assert problem.endswith("; write it by `sharectl learn`, or name another")


def test_a_policy_that_is_no_policy(tmp_path: Path) -> None:
    (problem,) = problems_of("{law: learned}")
    assert problem.startswith("control.law: learned acts by a policy; write policy: FILE")
    (problem,) = problems_of(f"{{law: learned, policy: {tmp_path}/none}}")
    assert problem.startswith(f"control.policy: there is no {tmp_path}/none")
    path = tmp_path / "policy.json"
    for text, words in (
        (json.dumps(POLICY).replace("-0.5", "NaN"), "Out of range float values"),
        ("", "not JSON: "),
        ("\0" * 2**17, "no regular file of at most 65536 bytes"),
    ):
        path.write_text(text, encoding="utf-8")
        (problem,) = problems_of(f"{{law: learned, policy: {path}}}")
        assert problem.startswith(f"control.policy: {path}: {words}")


def test_a_hostile_policy_has_a_page_of_problems(tmp_path: Path) -> None:
    names = ["\x1b[31m" * 2000, *map(str, range(2000))]
    path = write_policy(tmp_path, features=names, weights=[1e9] * 2001)
    problems = problems_of(f"{{law: learned, policy: {path}}}")
    assert len(problems) == 11
    assert sum(map(len, problems)) < 5000
    assert all(problem.isprintable() for problem in problems)
    assert problems[-1].endswith("and 3992 more problems")


def test_another_content_of_a_policy_is_another_configuration(tmp_path: Path) -> None:
    """Of each policy that a law may read: of all groups, of one, and of a shadow."""
    path, other = write_policy(tmp_path), tmp_path / "other.json"
    ways = (
        f"control: {{law: learned, policy: {path}}}",
        f"control: {{shadow: {{law: learned, policy: {path}}}}}",
        f"control: {{policy: {path}}}",
    )
    for way in ways:
        groups = "groups: {cms: {pledge_hs06: 1, control: {law: learned}}}\n"
        config = parse(f"{groups if way == ways[-1] else GROUPS}{way}", "F")
        write_policy(tmp_path)
        first = digest_of(config)
        assert digest_of(config) == first
        write_policy(tmp_path, weights=[1.0, -0.25])
        second = digest_of(config)
        path.rename(other)
        # A shadow that cannot be read stops no cycle.
        assert len({first, second, digest_of(config)}) == 3
    unread = parse(f"{GROUPS}control: {{law: ewma, policy: {path}}}", "F")
    first = digest_of(unread)
    write_policy(tmp_path)
    assert digest_of(unread) == first


def test_laws_of_groups_have_their_place(tmp_path: Path) -> None:
    inner = "groups: {cms: {pledge_hs06: 1, control: {law: learned}}}\ncontrol: {law: learned}"
    with pytest.raises(ConfigError) as caught:
        with_laws(steering_of(parse(inner, "F")))
    places = [problem.split(":")[0] for problem in caught.value.problems]
    assert places == ["control.law", "groups.cms.control.law"]
    path = write_policy(tmp_path)
    text = "groups: {cms: {pledge_hs06: 1, control: {law: pid}}, lhcb: {pledge_hs06: 1}}\n"
    own = steering_of(parse(f"{text}control: {{law: learned, policy: {path}}}", "F"))
    loaded = with_laws(own)
    assert (loaded.by_group["cms"].loaded, loaded.control.loaded is None) == (None, False)


def test_a_shadow_that_cannot_be_loaded_stops_no_cycle(tmp_path: Path) -> None:
    """`check config` names it; a cycle goes on without the shadow."""
    text = f"{GROUPS}control: {{shadow: {{law: learned, policy: {tmp_path}/none}}}}"
    config = parse(text, "F")
    shadow = with_laws(steering_of(config)).control.shadow
    assert shadow is not None
    assert str(shadow.loaded).startswith("control.shadow.policy: there is no")
    problems, _ = unusable(config, tmp_path / "F")
    assert any(problem.startswith("control.shadow.policy: there is no") for problem in problems)


def test_a_policy_is_no_part_of_a_cycle_without_one() -> None:
    """The module of policies takes time to load."""
    code = (
        "import sys, sharectl.cli.cycle\nfrom sharectl.config.load import parse, steering_of\n"
        "from sharectl.config.laws import with_laws\n"
        "with_laws(steering_of(parse('groups: {cms: {pledge_hs06: 1}}', 'F')))\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "sharectl.control.learned" not in done.stdout.split()
