"""What the configuration file may say: names, units, ranges and defaults. `config_file` reads one.

The descriptions are the reference in ``docs/configuration.md``.

What the configuration file says about the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    model_validator,
)

from sharectl.config.control import ControlConfig, NodesConfig
from sharectl.config.fields import AbsolutePath, DaemonName, Section, wrong
from sharectl.config.groups import GroupConfig, GroupName, no_group_twice, sound_groups, tree_of
from sharectl.config.places import (
    CRIC_COPY,
    KNOBS_COPY,
    TARGETS_FILE,
    PledgesConfig,
    PublisherConfig,
    each_once,
)
from sharectl.ledger.ledger import KEEP_DEFAULT
from sharectl.model import DEFAULT_NODE_CORES, DEFAULT_NODE_HS06
from sharectl.shares.groups import GroupTree
from sharectl.words import quoted


class LedgerConfig(Section):
    """What is kept of every cycle in ``ledger/ledger.sqlite`` (docs/ledger.md)."""

    keep_days: int = Field(
        KEEP_DEFAULT.days,
        ge=1,
        le=36500,
        description="Age from which cycles are removed, the oldest first.",
    )
    keep_nodes_days: int = Field(
        KEEP_DEFAULT.nodes_days,
        ge=1,
        le=36500,
        description="Age from which the nodes of a cycle are removed, with their jobs and targets; the figures of "
        "groups stay.",
    )
    max_bytes: int = Field(
        KEEP_DEFAULT.max_bytes,
        ge=2**20,
        le=2**44,
        description="Largest size of the file: beyond it what nodes held is removed first, the oldest first, then "
        "whole cycles.",
    )


POOL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


def _pool_name(name: str) -> str:
    if not POOL_NAME.fullmatch(name):
        raise wrong(
            f"{quoted(name)} is no pool name; write letters, digits, _ . : and -, a letter or "
            "digit first, "
            "at most 128"
        )
    return name


PoolName = Annotated[str, AfterValidator(_pool_name)]


class PoolConfig(Section):
    """How the pool is asked."""

    name: Optional[PoolName] = Field(
        None,
        description="Name of the pool, where nodes are told one (docs/transports.md): they refuse the targets of "
        "another pool.",
    )
    collector: Optional[DaemonName] = Field(
        None,
        description="Address of the collector; null for COLLECTOR_HOST of this machine's HTCondor.",
    )
    mode: Literal["counted", "jobs"] = Field(
        "counted",
        description="`counted` takes running cores from the collector and lets each schedd count its pending jobs; "
        "`jobs` fetches every job. Both give the same table.",
    )
    schedds: Annotated[tuple[DaemonName, ...], Field(strict=False)] = Field(
        (),
        description="Schedds that must answer even if the collector does not know them. All that the collector "
        "knows are asked in any case.",
    )
    demand: Literal["placeable", "pending"] = Field(
        "placeable",
        description="`placeable` tries the pending jobs on the ads of the nodes, as if these were empty: jobs that no node "
        "could run are no demand. `pending` counts every pending job as demand.",
    )
    collector_deadline_seconds: float = Field(
        20.0, gt=0, le=3600, description="How long the collector may take."
    )
    schedd_deadline_seconds: float = Field(
        60.0,
        gt=0,
        le=3600,
        description="How long a schedd may take; all are asked at the same time.",
    )
    default_node_hs06: float = Field(
        DEFAULT_NODE_HS06,
        gt=0,
        le=1e6,
        description="Power of a node that does not publish `t1_wn_hs06`.",
    )
    default_node_cores: int = Field(
        DEFAULT_NODE_CORES,
        ge=1,
        le=65536,
        description="Cores of a node that does not publish TotalSlotCpus.",
    )


HISTORY_FILES = {
    "jobs_file": Path("/var/lib/sharectl/AcctGroup_hs06.txt"),
    "errors_log": Path("/var/lib/sharectl/shares_Error.log"),
}
"""Where the files lie unless the configuration says otherwise; with another ``state_directory``, there."""


OWN_FILES = (
    "lock",
    "state.json",
    "places.json",
    "disabled",
    CRIC_COPY,
    KNOBS_COPY,
)
"""What sharectl keeps in ``state_directory`` in any case, besides the folder ``ledger``."""


class HistoryConfig(Section):
    """What is kept of every cycle."""

    jobs_file: AbsolutePath = Field(
        HISTORY_FILES["jobs_file"],
        description="The jobs of the last cycle, replaced each time. By default in `state_directory`.",
    )
    errors_log: AbsolutePath = Field(
        HISTORY_FILES["errors_log"],
        description="The groups' errors, rows appended each time. By default in `state_directory`.",
    )
    errors_log_max_bytes: int = Field(
        10 * 2**20, ge=4096, le=2**40, description="Size from which `errors_log` is rotated."
    )
    errors_log_keep: int = Field(10, ge=1, le=1000, description="Rotated files that are kept.")
    changes_max_bytes: int = Field(
        10 * 2**20,
        ge=4096,
        le=2**40,
        description="Size from which `ledger/changes.jsonl` in `state_directory` is rotated: who changed which "
        "node's target, and why.",
    )
    changes_keep: int = Field(10, ge=1, le=1000, description="Rotated files of it that are kept.")


class Config(Section):
    """Everything an operator decides. Only ``groups`` has to be written."""

    groups: Annotated[
        Mapping[GroupName, GroupConfig],
        BeforeValidator(no_group_twice),
        AfterValidator(sound_groups),
    ] = Field(
        description="Group to pledge. The name is the first part of AccountingGroup; case does not count. At least one "
        "pledge is above 0. `other` and `none` are reserved."
    )
    pledges: PledgesConfig = Field(
        PledgesConfig(), description="Where the groups' pledges are from."
    )
    nodes: NodesConfig = Field(NodesConfig(), description="Which execute points may be steered.")
    control: ControlConfig = Field(ControlConfig(), description="How strongly.")
    pool: PoolConfig = Field(PoolConfig(), description="How the pool is asked.")
    publish: Annotated[
        tuple[PublisherConfig, ...], Field(strict=False, min_length=1), AfterValidator(each_once)
    ] = Field(
        (PublisherConfig(file=TARGETS_FILE),),
        description="Ways for targets to reach the nodes: a list of mappings with one key each.",
    )
    signing_key_file: Optional[AbsolutePath] = Field(
        None,
        description="Keys by which `file:` and `https:` are signed (docs/transports.md); null: they are not signed.",
    )
    validity_seconds: int = Field(
        3060,
        ge=60,
        le=86400,
        description="How long nodes act on targets that are not renewed; three periods of 17 minutes.",
    )
    history: HistoryConfig = Field(HistoryConfig(), description="What is kept of every cycle.")
    ledger: LedgerConfig = Field(LedgerConfig(), description="The ledger of every cycle.")
    state_directory: AbsolutePath = Field(
        Path("/var/lib/sharectl"),
        description="Where the lock and what one cycle hands to the next are kept.",
    )
    lock_wait_seconds: float = Field(
        60.0,
        ge=0,
        le=3600,
        description="How long a cycle waits for one that still runs, before it leaves.",
    )

    @property
    def tree(self) -> GroupTree:
        """The groups of every level, with their pledges."""
        return tree_of(self.groups)

    @model_validator(mode="before")
    @classmethod
    def _files_follow_the_state_directory(cls, content: Any) -> Any:
        """Files without a path of their own lie in ``state_directory``."""
        if not isinstance(content, Mapping):
            return content
        folder, history = content.get("state_directory"), content.get("history", {})
        sound = isinstance(folder, str) and folder.startswith("/") and folder.isprintable()
        if not (sound and isinstance(history, Mapping)):
            return content
        own = {
            name: str(Path(str(folder), default.name)) for name, default in HISTORY_FILES.items()
        }
        return {
            "publish": [{"file": str(Path(str(folder), TARGETS_FILE.name))}],
            **content,
            "history": {**own, **history},
        }
