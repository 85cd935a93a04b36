"""The section ``pledges:``, where the groups' pledges are from.

The entries of ``publish:``, a way each for targets to reach the nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union

from pydantic import AfterValidator, Field, model_validator

from sharectl.config.fields import AbsolutePath, DaemonName, Section, wrong
from sharectl.shares.pledges import SOURCES
from sharectl.words import quoted

CRIC_COPY = "pledges-cric.json"
"""Name of the copy of CRIC's answer in ``state_directory``."""

KNOBS_COPY = "pledges-negotiator.json"
"""Name of the copy of the negotiator's knobs there."""

CRIC_URL = "https://wlcg-cric.cern.ch/api/core/federation/query/?json&start_year={previous_year}"

_PLEDGES_URL = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9._~%/+?&=;{}-]*")
_PROXY = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?")
_YEARS = re.compile(r"\{(year|previous_year)\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()/+-]{0,99}")


def _pledges_url(url: str) -> str:
    if not _PLEDGES_URL.fullmatch(url) or "{" in _YEARS.sub("", url) or "}" in _YEARS.sub("", url):
        raise wrong(
            f"{quoted(url)} will not do; write https://HOST[:PORT]/PATH[?QUERY], without user; "
            f"{{year}} stands for "
            "the year of the pledges, {previous_year} for the one before"
        )
    return url


def _proxy(url: str) -> str:
    if not _PROXY.fullmatch(url):
        raise wrong(f"{quoted(url)} is no proxy; write http://HOST:PORT")
    return url


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise wrong(
            f"{quoted(name)} is no name in CRIC; write it as CRIC shows it, such as IT-INFN-CNAF"
        )
    return name


CricName = Annotated[str, AfterValidator(_name)]


class NegotiatorPledgesConfig(Section):
    """Pledges from the negotiator's group quotas, nested ones too."""

    file: Optional[AbsolutePath] = Field(
        None,
        description="File with the negotiator's knobs, such as `condor_config_val -dump -expand GROUP_` prints, instead of the "
        "negotiator itself; null: it is asked.",
    )
    name: Optional[DaemonName] = Field(
        None,
        description="Name of the negotiator, where the collector knows several; null for the only one.",
    )
    deadline_seconds: float = Field(
        20.0,
        gt=0,
        le=600,
        description="How long the collector and the negotiator may take together.",
    )
    max_age_seconds: float = Field(
        86400.0,
        ge=0,
        le=2_592_000,
        description="How long what it said is used while it does not answer: it is busy while it negotiates.",
    )
    pool_cores: Optional[float] = Field(
        None,
        gt=0,
        le=1e9,
        description="Weighted slots that dynamic quotas are shares of; null for the cores that the collector knows.",
    )
    weight_hs06: Optional[float] = Field(
        None,
        gt=0,
        le=1e6,
        description="Power that a weighted slot stands for; null for the mean power of a core in the pool.",
    )


class CricPledgesConfig(Section):
    """Pledges from WLCG CRIC, over HTTPS, with a copy for when it does not answer."""

    federations: Annotated[tuple[CricName, ...], Field(strict=False, min_length=1)] = Field(
        description="Federations whose pledges this pool delivers, by name or accounting name as CRIC has them; the "
        "pledges of several are added up."
    )
    federation_ratio: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Part of the federations' pledges that this pool delivers, where other sites deliver the rest.",
    )
    url: Annotated[str, AfterValidator(_pledges_url)] = Field(
        CRIC_URL,
        description="What is asked for. `{year}` stands for the year of the pledges, which begins in April, and "
        "`{previous_year}` for the one before.",
    )
    ca_file: Optional[AbsolutePath] = Field(
        None,
        description="Certificates, PEM, by which the server is known; null for `ca_directory`, or for those that this "
        "machine trusts.",
    )
    ca_directory: Optional[AbsolutePath] = Field(
        None,
        description="Folder of hashed certificates, such as `/etc/grid-security/certificates`; null for `ca_file`.",
    )
    proxy: Optional[Annotated[str, AfterValidator(_proxy)]] = Field(
        None, description="Web proxy, `http://HOST:PORT`; the environment is not looked at."
    )
    deadline_seconds: float = Field(
        30.0, gt=0, le=600, description="How long the server may take in all."
    )
    refresh_seconds: int = Field(
        21600,
        ge=60,
        le=2_592_000,
        description="Age of the copy from which the server is asked again; before that it is not.",
    )
    max_age_days: float = Field(
        30.0,
        gt=0,
        le=366,
        description="Age from which a copy is not used any more: cycles then change nothing until the server answers.",
    )
    max_change_factor: float = Field(
        2.0,
        gt=1,
        le=1000,
        description="A pledge that rises or falls by more than this is not used until `sharectl pledges --confirm`; "
        "the one before it stays.",
    )
    copy_file: Optional[AbsolutePath] = Field(
        None, description=f"Where the copy lies; null for `{CRIC_COPY}` in `state_directory`."
    )

    @model_validator(mode="after")
    def _one_trust(self) -> CricPledgesConfig:
        if self.ca_file is not None and self.ca_directory is not None:
            raise wrong("there are two sets of certificates; write either ca_file or ca_directory")
        return self

    def copy_in(self, state_directory: Path) -> Path:
        """Where the copy lies."""
        return self.copy_file or state_directory / CRIC_COPY


class PledgesConfig(Section):
    """Where the pledges are from. A pledge that is written in `groups` goes before any other."""

    source: Literal["yaml", "negotiator", "cric"] = Field(
        "yaml",
        alias="from",
        description="`yaml`: each group has its pledge under `groups`. `negotiator`: its group quotas. `cric`: WLCG "
        "CRIC. Only groups that are listed under `groups` are steered, whatever the source knows.",
    )
    negotiator: NegotiatorPledgesConfig = Field(
        NegotiatorPledgesConfig(), description="How the negotiator is asked."
    )
    cric: Optional[CricPledgesConfig] = Field(
        None, description="How CRIC is asked; needed with `from: cric`."
    )

    @model_validator(mode="after")
    def _cric_is_told(self) -> PledgesConfig:
        if self.source == "cric" and self.cric is None:
            raise wrong(
                "from: cric needs the federations; write cric: {federations: [IT-INFN-CNAF]} "
                "beside it, with yours"
            )
        return self


PLEDGES_FROM = "pledges_from"
"""Key of the context of a validation: where pledges are from, None if that is wrong."""

_HAS_PLEDGES_OF = {"yaml": (), "negotiator": ("group", "subgroup"), "cric": ("group",)}
"""Source -> what need not have a pledge in the file with it."""


def context_of(content: Any) -> dict[str, Optional[str]]:
    """Context in which the plain data of a configuration is to be validated."""
    section = content.get("pledges", {}) if isinstance(content, Mapping) else {}
    source = section.get("from", "yaml") if isinstance(section, Mapping) else None
    return {PLEDGES_FROM: source if isinstance(source, str) and source in SOURCES else None}


def may_leave_out(context: Optional[Mapping[str, Optional[str]]], what: str) -> bool:
    """Whether a ``group`` or ``subgroup`` may be without a pledge: the source has it, or nobody knows which it is."""
    source = (context or {}).get(PLEDGES_FROM, "yaml")
    return source is None or what in _HAS_PLEDGES_OF[source]


Place = tuple[Union[str, int], ...]
"""Where something is named in the configuration file."""

TARGETS_FILE = Path("/var/lib/sharectl/sharectl.txt")
"""Where targets are published unless the configuration says otherwise."""

UNMAPPED = "unmapped"
"""Domain of the identity that HTCondor gives to those whom it could not tell."""

_PUBLISH_URL = re.compile(
    r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9._~%/+-]*[A-Za-z0-9._~%+-]"
)
_IDENTITY = re.compile(r"[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,190}")


def _publish_url(url: str) -> str:
    if not _PUBLISH_URL.fullmatch(url):
        raise wrong(
            f"{quoted(url)} will not do; write https://HOST[:PORT]/PATH, without user, query, "
            "comma or blank, "
            "such as https://cm.example.org/sharectl.txt"
        )
    return url


def _identity(identity: str) -> str:
    if not _IDENTITY.fullmatch(identity):
        raise wrong(
            f"{quoted(identity)} is no identity; write it as HTCondor does, such as "
            "sharectl@example.org"
        )
    if identity.rpartition("@")[2] == UNMAPPED:
        raise wrong(
            f"{quoted(identity)} is what everybody has whom HTCondor cannot tell; give sharectl "
            "a token, and "
            "write its identity"
        )
    return identity


class HttpsPublisherConfig(Section):
    """Targets as a file that a web server of the site serves.

    After writing, and in ``status``, it is fetched.
    """

    file: AbsolutePath = Field(
        description="Where the file appears, by rename: below the server's document root."
    )
    url: Annotated[str, AfterValidator(_publish_url)] = Field(
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
        20.0,
        gt=0,
        le=600,
        description="How long a collector may take; all are asked at the same time.",
    )


class PublisherConfig(Section):
    """A way for targets to reach the nodes: exactly one of the keys."""

    file: Optional[AbsolutePath] = Field(
        None,
        description="Where the file of targets appears, by rename: on a file system that the nodes share, or that "
        "is copied to them. A symbolic link there is replaced, not followed; a device or a "
        "folder is an error.",
    )
    https: Optional[HttpsPublisherConfig] = Field(
        None, description="A file that a web server serves."
    )
    collector: Optional[CollectorPublisherConfig] = Field(
        None, description="An ad a target in the pool's collectors; `{}` for the defaults."
    )

    @model_validator(mode="after")
    def _one_way(self) -> PublisherConfig:
        if sum(way is not None for way in (self.file, self.https, self.collector)) != 1:
            raise wrong(
                "an entry has exactly one way; write - file: /PATH, - https: {file: /PATH, url: "
                "https://…}, or "
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
