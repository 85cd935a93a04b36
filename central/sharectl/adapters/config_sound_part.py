"""What is left of a configuration without what is wrong in it: sound, so that whatever else is wrong comes to light."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from sharectl.adapters.config_fields import section_at
from sharectl.adapters.yaml_syntax import Path

_ANY_GROUP = "any-group-at-all"
_GROUPS = "groups"
_PROMISES = ("pledge_hs06", "pledge_hepscore23", "share")


def sound_part(data: dict[str, Any], unsound: Iterable[Path]) -> dict[str, Any]:
    """A copy of ``data`` without what lies at the paths ``unsound``; where something has to be, something sound is.

    What is put in meets nothing else: a file of its own, a group that no other is.
    """
    sound = deepcopy(data)
    for path in sorted(set(unsound), key=len, reverse=True):
        if path[:1] == (_GROUPS,):
            _without_in_groups(sound, path)
        elif path[:1] == ("publish",):
            _without_in_publish(sound, path)
        elif path:
            _without(sound, path)
    return sound


def _without(sound: dict[str, Any], path: Path) -> None:
    """Take the value at ``path`` away; of what is no section all of it."""
    holder: Any = sound
    for level, key in enumerate(path[:-1]):
        inner = holder.get(key)
        if not isinstance(inner, dict) or section_at(path[: level + 1]) is None:
            path = path[: level + 1]
            break
        holder = inner
    holder.pop(path[-1], None)
    if path in _STANDS_IN:
        holder[path[-1]] = deepcopy(_STANDS_IN[path])


_STANDS_IN: dict[Path, Any] = {
    ("state_directory",): "/unsound/state",
    ("history", "jobs_file"): "/unsound/jobs",
    ("history", "errors_log"): "/unsound/errors",
    ("pledges", "cric"): {"federations": ["unsound"]},
    ("pledges", "cric", "federations"): ["unsound"],
}
"""What is there instead of values whose default, or absence, could be wrong beside others."""


def _without_in_publish(sound: dict[str, Any], path: Path) -> None:
    ways = sound.get("publish")
    number = path[1] if path[1:] else None
    if not isinstance(ways, list) or not isinstance(number, int) or number >= len(ways):
        sound.pop("publish", None)
        return
    instead = {"file": f"/unsound/{number}"}
    way = ways[number]
    if path[2:] and isinstance(way, dict):
        served = {**instead, "url": f"https://unsound/{number}"}
        known: dict[str, Any] = {**instead, "https": served, "collector": {}}
        way.pop(path[2], None)
        if path[2] in known:
            way[path[2]] = known[str(path[2])]
        if any(way.values()) or "collector" in way:
            return
    ways[number] = instead


def _without_in_groups(sound: dict[str, Any], path: Path) -> None:
    """Take away what is at ``path``; with a promise, the group, since what others may have is known only with it."""
    level = 1
    while path[level + 1 : level + 2] == (_GROUPS,) and path[level + 2 :]:
        level += 2
    holder: Any = sound
    for part in path[:level]:
        holder = holder.get(part) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or not path[level:]:
        sound[_GROUPS] = {_ANY_GROUP: {"pledge_hs06": 1.0}}
        return
    group, key = holder.get(path[level]), path[level + 1 : level + 2]
    if key and isinstance(group, dict) and key[0] not in _PROMISES:
        group.pop(key[0], None)
        if any(promise in group for promise in _PROMISES):
            return
    if key:
        holder[path[level]] = {"pledge_hs06": 1.0} if level == 1 else {"share": 0.0}
        return
    holder.pop(path[level], None)
    if level == 1:
        holder.setdefault(_ANY_GROUP, {"pledge_hs06": 1.0})
