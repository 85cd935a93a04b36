"""A plan as ``sharectl plan --json`` printed it, read back to be published."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from sharectl.core.group_tree import levels_above
from sharectl.core.groups import NESTED_GROUP_NAME
from sharectl.core.limits import LIMITS
from sharectl.core.model import SCHEMA_VERSION, Plan
from sharectl.core.nodes import HOST_NAME
from sharectl.core.plan import REASONS
from sharectl.errors import InputError

MAX_BYTES = 2**26
"""Size of a plan that is still read: some 100,000 targets."""


def parse(text: str, name: str) -> Plan:
    """Plan of the JSON ``text``; ``name`` is what messages call its source.

    Raises
    ------
    InputError
        If it is not a plan, or holds a name that must not reach a node; all problems at once.
    """
    from pydantic import TypeAdapter, ValidationError

    if len(text) > MAX_BYTES:
        raise InputError(
            [f"{name}: has more than {MAX_BYTES} bytes; give what `sharectl plan --json` printed"]
        )
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError([f"{name}: not JSON: {error}; give what `sharectl plan --json` printed"]) from error
    if not isinstance(content, dict) or content.get("kind") != "plan":
        raise InputError([f'{name}: "kind" is not "plan"; give what `sharectl plan --json` printed'])
    if content.get("schema_version") != SCHEMA_VERSION:
        raise InputError([f"{name}: schema_version is not {SCHEMA_VERSION}; plan again with this sharectl"])
    del content["kind"], content["schema_version"]
    # For who reads it, not part of the plan.
    content.pop("warnings", None)
    try:
        decided = TypeAdapter(Plan).validate_json(json.dumps(content), strict=True, extra="forbid")
    except ValidationError as error:
        raise InputError(
            [f"{name}: {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        ) from error
    problems = _problems(decided)
    if problems:
        raise InputError([f"{name}: {problem}" for problem in problems])
    return decided


def _problems(decided: Plan) -> list[str]:
    groups = [*decided.groups, *(group for t in decided.targets for group in (t.held_back, t.helped))]
    inner = {above for group in decided.groups for above in levels_above(group)}
    nodes = Counter(target.node for target in decided.targets)
    checks = [
        *((NESTED_GROUP_NAME.fullmatch(group), f"{group!r} is no group name") for group in groups),
        *(
            (group in decided.groups, f"group {group!r} of a target is not among the groups")
            for group in groups
        ),
        *(
            (
                target_group not in inner,
                f"group {target_group!r} of a target is steered by the groups within it",
            )
            for target_group in {group for t in decided.targets for group in (t.held_back, t.helped)}
        ),
        *((HOST_NAME.fullmatch(node), f"{node!r} is no host name") for node in nodes),
        *((times == 1, f"node {node!r} has two targets") for node, times in nodes.items()),
        *((t.cap_cores >= 0, f"{t.node}: cap_cores is below 0") for t in decided.targets),
        *((t.request_cores >= 1, f"{t.node}: request_cores is below 1") for t in decided.targets),
        *((t.held_back != t.helped, f"{t.node}: holds back and helps one group") for t in decided.targets),
        (decided.reason in REASONS, f"reason {decided.reason!r} is none of {', '.join(REASONS)}"),
        *((n.code in LIMITS, f"limit {n.code!r} is none of {', '.join(LIMITS)}") for n in decided.limits),
        (decided.generated_at < decided.valid_until, "valid_until is not after generated_at"),
    ]
    return sorted({problem for fine, problem in checks if not fine})
