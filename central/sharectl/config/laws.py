"""Policies of the law `learned`: read and checked where a configuration names it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from sharectl.config.groups import place_of
from sharectl.config.load import steering_of
from sharectl.config.model import OBSERVE, Config
from sharectl.control.laws import LEARNED, Control
from sharectl.control.steering import SteeringConfig
from sharectl.errors import ConfigError, NewerFileError
from sharectl.plan.plan import PlanConfig
from sharectl.shares.groups import GroupTree
from sharectl.words import printable

if TYPE_CHECKING:
    from sharectl.control.learned import Policy

MAX_BYTES = 2**16
"""Size of a policy that is still read."""
_MOST_PROBLEMS, _MOST_WORDS = 10, 300
"""Problems of a policy in a message, and characters of each."""


def with_laws(steering: SteeringConfig) -> SteeringConfig:
    """``steering`` with its policies read; raises ConfigError with all problems of laws that act.

    A shadow whose policy cannot be read is left out, and each cycle warns of it instead.
    """
    loaded, of_acting, _ = _with_laws(steering)
    if of_acting:
        raise ConfigError(of_acting)
    return loaded


def problems(steering: SteeringConfig) -> list[str]:
    """Problems of all laws, also of one that is a shadow."""
    _, of_acting, of_shadows = _with_laws(steering)
    return list(dict.fromkeys((*of_shadows, *of_acting)))


def _with_laws(steering: SteeringConfig) -> tuple[SteeringConfig, list[str], list[str]]:
    """``steering`` with policies read, problems of laws that act, and those of shadows."""
    of_acting: list[str] = []
    of_shadows: list[str] = []

    def loaded(control: Control, place: str) -> Control:
        shadow = control.shadow
        if shadow is not None:
            policy, problems = _loaded(shadow.law, shadow.policy, "control.shadow")
            shadow = replace(shadow, loaded=problems[0] if problems else policy)
            of_shadows.extend(problems)
        policy, problems = _loaded(control.law, control.policy, place)
        of_acting.extend(problems)
        return replace(control, loaded=policy, shadow=shadow)

    control = loaded(steering.control, "control")
    by_group = {
        name: loaded(of_group, f"{place_of(name)}.control")
        for name, of_group in steering.by_group.items()
    }
    steering = replace(steering, control=control, by_group=by_group)
    return steering, list(dict.fromkeys(of_acting)), of_shadows


def policy_digests(steering: SteeringConfig) -> dict[str, Optional[str]]:
    """Path of each policy that a law may read, and its SHA-256; None if it is unreadable."""
    controls = (steering.control, *steering.by_group.values())
    laws = [(control.law, control.policy) for control in controls]
    laws += [(control.shadow.law, control.shadow.policy) for control in controls if control.shadow]
    paths = {policy for law, policy in laws if law == LEARNED and policy is not None}
    return {str(path): _digest(path) for path in sorted(paths)}


def plan_config_of(
    config: Config, tree: GroupTree, *, offline: bool = False, withdraws: bool = False
) -> PlanConfig:
    """Settings of plans for groups of these pledges.

    ``offline`` is for a list of jobs, which has no blocks of cores. Policies are read, and raise
    ConfigError, unless a plan only ``withdraws`` targets.
    """
    steering = steering_of(config)
    return PlanConfig(
        pledge_hs06=tree.steered_hs06,
        own_hs06=tree.own_hs06,
        limits=config.control.limits,
        validity_seconds=config.validity_seconds,
        controlled=config.nodes.controlled,
        steering=steering if withdraws else with_laws(steering),
        strategy=config.control.strategy,
        give_up=None if offline else config.control.give_up,
        observes=config.mode == OBSERVE,
    )


def _digest(path: Path) -> Optional[str]:
    from sharectl.files.files import read_regular

    with contextlib.suppress(OSError):
        content, _ = read_regular(path, MAX_BYTES)
        return None if content is None else sha256(content).hexdigest()
    return None


def _loaded(law: str, path: Optional[Path], place: str) -> tuple[Optional[Policy], list[str]]:
    """Policy of a law and its problems; None of a law without one, or with a problem."""
    if law != LEARNED:
        return None, []
    from sharectl.control.learned import Policy, faults
    from sharectl.files.documents import Document, DocumentError, record

    if path is None:
        wanted = f"{place}.law: {LEARNED} acts by a policy"
        return None, [f"{wanted}; write policy: FILE beside it (docs/control.md)"]
    remedy = "write it by `sharectl learn`, or name another"
    policy = None
    try:
        policy = Document(path, MAX_BYTES).read(lambda content: record(Policy, content))
        problems = [] if policy is None else list(faults(policy))
    except DocumentError as error:
        problems = list(error.problems)
    except OSError as error:
        problems = [f"cannot be read: {error.strerror or error}"]
    except NewerFileError as error:
        problems = [f"schema_version {error.version} is of a newer sharectl"]
    if policy is None and not problems:
        fact = f"there is no {path} on this machine"
        return None, [f"{place}.policy: {fact}; {remedy}"]
    words = [printable(problem, _MOST_WORDS) for problem in problems[:_MOST_PROBLEMS]]
    lines = [f"{place}.policy: {path}: {problem}; {remedy}" for problem in words]
    if more := len(problems) - len(words):
        lines.append(f"{place}.policy: {path}: and {more} more problems")
    return (None if lines else policy), lines
