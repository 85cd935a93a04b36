"""The entries of ``publish:``, a way each for targets to reach the nodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Optional, Union

from pydantic import AfterValidator, Field, model_validator

from sharectl.adapters.config_types import AbsolutePath, Section, wrong
from sharectl.adapters.wording import quoted

Place = tuple[Union[str, int], ...]
"""Where something is named in the configuration file."""

TARGETS_FILE = Path("/var/lib/sharectl/sharectl.txt")
"""Where targets are published unless the configuration says otherwise."""

UNMAPPED = "unmapped"
"""Domain of the identity that HTCondor gives to those whom it could not tell."""

_URL = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9._~%/+-]*[A-Za-z0-9._~%+-]")
_IDENTITY = re.compile(r"[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,190}")


def _url(url: str) -> str:
    if not _URL.fullmatch(url):
        raise wrong(
            f"{quoted(url)} will not do; write https://HOST[:PORT]/PATH, without user, query, comma or blank, "
            "such as https://cm.example.org/sharectl.txt"
        )
    return url


def _identity(identity: str) -> str:
    if not _IDENTITY.fullmatch(identity):
        raise wrong(
            f"{quoted(identity)} is no identity; write it as HTCondor does, such as sharectl@example.org"
        )
    if identity.rpartition("@")[2] == UNMAPPED:
        raise wrong(
            f"{quoted(identity)} is what everybody has whom HTCondor cannot tell; give sharectl a token, and "
            "write its identity"
        )
    return identity


class HttpsPublisherConfig(Section):
    """Targets as a file that a web server of the site serves. After writing, and in ``status``, it is fetched."""

    file: AbsolutePath = Field(
        description="Where the file appears, by rename: below the server's document root."
    )
    url: Annotated[str, AfterValidator(_url)] = Field(
        description="Where the server serves it, `https://HOST[:PORT]/PATH`: what the nodes fetch."
    )
    ca_file: Optional[AbsolutePath] = Field(
        None,
        description="Certificates, PEM, by which the server is known; null for those that this machine trusts.",
    )
    deadline_seconds: float = Field(20.0, gt=0, le=600, description="How long the server may take.")


class CollectorPublisherConfig(Section):
    """Targets as ads in the collectors of the pool, replaced at every cycle."""

    identity: Optional[Annotated[str, AfterValidator(_identity)]] = Field(
        None,
        description="The identity under which the collectors know sharectl, and the only one that nodes believe "
        "(docs/transports.md); any other is an error. null: whatever it is, it is only reported.",
    )
    deadline_seconds: float = Field(
        20.0, gt=0, le=600, description="How long a collector may take; all are asked at the same time."
    )


class PublisherConfig(Section):
    """A way for targets to reach the nodes: exactly one of the keys."""

    file: Optional[AbsolutePath] = Field(
        None,
        description="Where the file of targets appears, by rename: on a file system that the nodes share, or that "
        "is copied to them. A symbolic link there is replaced, not followed; a device or a folder is an error.",
    )
    https: Optional[HttpsPublisherConfig] = Field(None, description="A file that a web server serves.")
    collector: Optional[CollectorPublisherConfig] = Field(
        None, description="An ad a target in the pool's collectors; `{}` for the defaults."
    )

    @model_validator(mode="after")
    def _one_way(self) -> PublisherConfig:
        if sum(way is not None for way in (self.file, self.https, self.collector)) != 1:
            raise wrong(
                "an entry has exactly one way; write - file: /PATH, - https: {file: /PATH, url: https://…}, or "
                "- collector: {}"
            )
        return self

    def written_files(self, number: int) -> list[tuple[Place, Path]]:
        """The files that entry ``number`` writes, each after where it is named."""
        named: list[tuple[Place, Optional[Path]]] = [
            (("publish", number, "file"), self.file),
            (("publish", number, "https", "file"), self.https.file if self.https else None),
        ]
        return [(at, path) for at, path in named if path is not None]


def each_once(ways: tuple[PublisherConfig, ...]) -> tuple[PublisherConfig, ...]:
    """``ways``, unless two of them would withdraw each other's ads or are served at one place."""
    seen: dict[object, int] = {}
    for number, way in enumerate(ways):
        place = "collector" if way.collector is not None else way.https and way.https.url
        if place and seen.setdefault(place, number) != number:
            at: Place = (number, "collector") if way.collector else (number, "https")
            raise wrong(f"is the same as publish[{seen[place]}]; keep one of them", *at)
    return ways
