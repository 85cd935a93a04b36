"""The source of pledges that a configuration names, with all that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Callable, Optional

from sharectl.adapters.config_groups import SubgroupConfig, tree_of
from sharectl.adapters.config_model import Config
from sharectl.adapters.config_pledges import KNOBS_COPY
from sharectl.adapters.pledges import DAY_SECONDS, NestedPledges, Wanted, WrittenPledges
from sharectl.core.model import Source
from sharectl.core.pledges import SOURCE_NAME, Pledged
from sharectl.ports import Pledges

UNASKED = Pledged(Source(SOURCE_NAME, 0.0, "the source was not asked"))
"""For plans without targets, which need only the groups' names."""


def source_of(config: Config, *, keep: bool, refresh: bool = False, confirm: bool = False) -> Pledges:
    """Pledges of groups of all levels.

    Parameters
    ----------
    keep
        Keep what a server said for later.
    refresh
        Ask a server even if what it said last is young.
    confirm
        Take pledges however much they differ from those in use.
    """
    wanted = list(_wanted(config))
    makers: Mapping[str, Callable[[], Pledges]] = {
        "yaml": lambda: WrittenPledges(wanted),
        "negotiator": lambda: _negotiator(config, wanted, keep=keep),
        "cric": lambda: _cric(config, wanted, keep=keep, refresh=refresh, confirm=confirm),
    }
    source = makers[config.pledges.source]()
    return NestedPledges(source, lambda told: tree_of(config.groups, told).pledge_hs06)


def _wanted(config: Config) -> Iterator[Wanted]:
    """Groups of the first level, and those within them that have no promise in the file."""
    for name, group in config.groups.items():
        place = f"groups.{name}"
        yield Wanted(name, group.written_hs06, place, (group.cric_vo or name).lower())
        yield from _within(name, place, group.groups)


def _within(above: str, place: str, groups: Optional[Mapping[str, SubgroupConfig]]) -> Iterator[Wanted]:
    for part, group in (groups or {}).items():
        name, at = f"{above}.{part}", f"{place}.groups.{part}"
        if group.share is None and group.written_hs06 is None:
            yield Wanted(name, None, at)
        yield from _within(name, at, group.groups)


def _negotiator(config: Config, wanted: list[Wanted], *, keep: bool) -> Pledges:
    from sharectl.adapters.pledges_negotiator import NegotiatorAccess, NegotiatorPledges

    said = config.pledges.negotiator
    return NegotiatorPledges(
        NegotiatorAccess(
            collector=config.pool.collector,
            name=said.name,
            file=said.file,
            deadline_seconds=said.deadline_seconds,
            pool_cores=said.pool_cores,
            weight_hs06=said.weight_hs06,
            copy_file=config.state_directory / KNOBS_COPY,
            max_age_seconds=said.max_age_seconds,
            default_node_hs06=config.pool.default_node_hs06,
            default_node_cores=config.pool.default_node_cores,
        ),
        wanted,
        keep=keep,
    )


def _cric(config: Config, wanted: list[Wanted], *, keep: bool, refresh: bool, confirm: bool) -> Pledges:
    from sharectl.adapters.cric_server import ServerAccess
    from sharectl.adapters.pledges_cric import CricAccess, CricPledges, Manner

    said = config.pledges.cric
    if said is None:
        raise ValueError("the configuration was not validated: there is no pledges.cric")
    access = CricAccess(
        url=said.url,
        federations=said.federations,
        copy_file=said.copy_in(config.state_directory),
        server=ServerAccess(said.ca_file, said.ca_directory, said.proxy, said.deadline_seconds),
        federation_ratio=said.federation_ratio,
        refresh_seconds=said.refresh_seconds,
        max_age_seconds=said.max_age_days * DAY_SECONDS,
        max_change_factor=said.max_change_factor,
    )
    return CricPledges(access, wanted, Manner(keep=keep, refresh=refresh, confirm=confirm))
