"""The section ``pledges:``, where the groups' pledges are from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

from pydantic import AfterValidator, Field, model_validator

from sharectl.adapters.config_types import AbsolutePath, DaemonName, Section, wrong
from sharectl.adapters.wording import quoted
from sharectl.core.pledges import SOURCES

CRIC_COPY = "pledges-cric.json"
"""Name of the copy of CRIC's answer in ``state_directory``."""

KNOBS_COPY = "pledges-negotiator.json"
"""Name of the copy of the negotiator's knobs there."""

CRIC_URL = "https://wlcg-cric.cern.ch/api/core/federation/query/?json&start_year={previous_year}"

_URL = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9._~%/+?&=;{}-]*")
_PROXY = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?")
_YEARS = re.compile(r"\{(year|previous_year)\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()/+-]{0,99}")


def _url(url: str) -> str:
    if not _URL.fullmatch(url) or "{" in _YEARS.sub("", url) or "}" in _YEARS.sub("", url):
        raise wrong(
            f"{quoted(url)} will not do; write https://HOST[:PORT]/PATH[?QUERY], without user; {{year}} stands for "
            "the year of the pledges, {previous_year} for the one before"
        )
    return url


def _proxy(url: str) -> str:
    if not _PROXY.fullmatch(url):
        raise wrong(f"{quoted(url)} is no proxy; write http://HOST:PORT")
    return url


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise wrong(f"{quoted(name)} is no name in CRIC; write it as CRIC shows it, such as IT-INFN-CNAF")
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
        None, description="Name of the negotiator, where the collector knows several; null for the only one."
    )
    deadline_seconds: float = Field(
        20.0, gt=0, le=600, description="How long the collector and the negotiator may take together."
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
    url: Annotated[str, AfterValidator(_url)] = Field(
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
    deadline_seconds: float = Field(30.0, gt=0, le=600, description="How long the server may take in all.")
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
                "from: cric needs the federations; write cric: {federations: [IT-INFN-CNAF]} beside it, with yours"
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
