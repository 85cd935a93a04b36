"""What is published, place by place, for ``sharectl status``."""

from __future__ import annotations

from typing import Any, Optional

from sharectl.adapters import sharectl_file, signing
from sharectl.adapters.config_model import Config
from sharectl.adapters.config_publish import CollectorPublisherConfig, HttpsPublisherConfig, PublisherConfig
from sharectl.adapters.sharectl_file import SharectlFile
from sharectl.adapters.signing import Key
from sharectl.adapters.target_ads import Holding
from sharectl.cli import options
from sharectl.errors import ConfigError, InputError, PublishError
from sharectl.report.words import counted


def places(config: Config, now: int, sequence: int = 0) -> list[dict[str, Any]]:
    """Each place where nodes look for targets, with what it holds at Unix time ``now`` and what is wrong there.

    ``sequence`` is that of the plan that was published last, 0 if that is not known.
    """
    keys, problem = _keys(config)
    found = [
        _beside_newest({"way": _name(way), **place}, sequence)
        for way in config.publish
        for place in _of_way(config, way, keys, now)
    ]
    return [*found, {"place": str(config.signing_key_file), "problem": problem}] if problem else found


def is_valid(place: dict[str, Any]) -> bool:
    """Whether nodes can find something there that has not run out."""
    left = place.get("valid_for_seconds")
    return "targets" in place and (left is None or left > 0)


def _name(way: PublisherConfig) -> str:
    if way.collector is not None:
        return "collector"
    return "https" if way.https is not None else "file"


def _beside_newest(place: dict[str, Any], sequence: int) -> dict[str, Any]:
    """The place, with a problem if it holds an older plan than that of number ``sequence``."""
    held = place.get("sequence")
    older = held is not None and held < sequence
    said = (
        f"{place['place']}: an older plan stands there: sequence {held}, and {sequence} was published last: a copy "
        "put back, or no publishing since; nodes that took the newer one refuse it; `sharectl cycle`"
    )
    return {**place, "older": older, "problem": said if older else place["problem"]}


def line(place: dict[str, Any]) -> str:
    """One place in words."""
    said = [
        f"{counted(place['targets'], 'target')}, sequence {place['sequence']}, valid for {place['valid_for_seconds']} s"
    ]
    if place.get("signed_by"):
        said.append(f"signed by {place['signed_by']}{'' if place['verified'] else ' (not verified)'}")
    if place.get("identity"):
        said.append(f"from {place['identity']}")
    if place.get("served") is not None:
        said.append("served" if place["served"] else "NOT served")
    return ", ".join(said)


def _keys(config: Config) -> tuple[Optional[tuple[Key, ...]], Optional[str]]:
    """The keys, None if they cannot be read; and what is wrong with them, unless they are not for this user."""
    if config.signing_key_file is None:
        return None, None
    try:
        return signing.read_keys(config.signing_key_file), None
    except ConfigError as error:
        return None, None if isinstance(error.__cause__, PermissionError) else str(error)


def _of_way(
    config: Config, way: PublisherConfig, keys: Optional[tuple[Key, ...]], now: int
) -> list[dict[str, Any]]:
    if way.collector is not None:
        return _in_collectors(config, way.collector, now)
    file = way.https.file if way.https is not None else way.file
    if file is None:
        return []
    try:
        content = sharectl_file.content_of(file)
        place = {"place": str(file), **_text(content, str(file), config, keys, now)}
    except InputError as error:
        return [{"place": str(file), "problem": str(error)}]
    return [place if way.https is None else {**place, **_served(way.https, content, place["problem"])}]


def _text(
    content: bytes, name: str, config: Config, keys: Optional[tuple[Key, ...]], now: int
) -> dict[str, Any]:
    read = sharectl_file.parse(content, name)
    left = read.valid_until - now if read.valid_until is not None else None
    wrong = signing.problem_of(content, keys) if keys is not None else None
    return {
        "sequence": read.sequence,
        "targets": len(read.targets),
        "valid_for_seconds": left,
        "signed_by": read.signature.key_id if read.signature else None,
        "verified": keys is not None and wrong is None,
        "problem": _problem(name, read, left, wrong, config),
    }


def _problem(
    name: str, read: SharectlFile, left: Optional[int], wrong: Optional[str], config: Config
) -> Optional[str]:
    if left is not None and left <= 0:
        return f"{name}: expired {-left} s ago: no node has a target"
    if wrong is not None:
        return f"{name}: {wrong}: nodes with the key refuse it; `sharectl cycle` publishes anew"
    if read.pool != config.pool.name:
        return f"{name}: is for pool {read.pool}, and pool.name is {config.pool.name}: `sharectl cycle`"
    return None


def _served(way: HttpsPublisherConfig, content: bytes, problem: Optional[str]) -> dict[str, Any]:
    from sharectl.adapters.https_targets import fetch

    fetched = fetch(options.served_at(way))
    served = fetched.problem is None and fetched.content == content
    if fetched.problem is not None:
        problem = f"{way.url}: {fetched.problem}"
    elif not served:
        problem = f"{way.url}: is not what {way.file} holds; let the server serve that file, uncached"
    return {"place": way.url, "served": served, "problem": problem}


def _in_collectors(config: Config, way: CollectorPublisherConfig, now: int) -> list[dict[str, Any]]:
    from sharectl.adapters import collector_targets

    try:
        looks = collector_targets.look(options.collector_of(config, way))
    except PublishError as error:
        return [{"place": "collector", "problem": str(error)}]
    return [
        in_collector(f"collector:{address}", look.held, look.problem, config, now)
        for address, look in looks.items()
    ]


def in_collector(
    name: str, held: Optional[Holding], problem: Optional[str], config: Config, now: int
) -> dict[str, Any]:
    """What one collector holds, and what is wrong with it."""
    if held is None or held.sequence is None or held.valid_until is None:
        missing = problem or _no_plan(held)
        return {"place": name, "problem": f"{name}: {missing}"}
    left = held.valid_until - now
    if left <= 0:
        problem = f"{name}: expired {-left} s ago: no node has a target from there"
    elif held.pool != config.pool.name:
        problem = f"{name}: is for pool {held.pool}, and pool.name is {config.pool.name}: `sharectl cycle`"
    elif held.foreign:
        problem = (
            f"{name}: holds ads of targets that are not sharectl's: {_who(held)}; nodes refuse them, and "
            "COLLECTOR_REQUIREMENTS keeps them out (docs/transports.md)"
        )
    return {
        "place": name,
        "sequence": held.sequence,
        "targets": held.targets,
        "valid_for_seconds": left,
        "identity": held.identity,
        "problem": problem,
    }


def _no_plan(held: Optional[Holding]) -> str:
    if held is None or not held.foreign:
        return "holds no plan of sharectl: no node has a target from there; `sharectl cycle`"
    return (
        f"holds no plan of the identity that publish: names, and ads of targets of others: {_who(held)}; nodes that go by "
        "one of these have targets from there; is identity wrong? (docs/transports.md)"
    )


def _who(held: Holding) -> str:
    return ", ".join(f"{count} of {identity}" for identity, count in sorted(held.foreign.items()))
