"""What a publication goes through, as the configuration says it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from sharectl.adapters import left_places
from sharectl.adapters.audit import AuditFile, who_runs
from sharectl.adapters.collector_targets import CollectorAccess, CollectorPublisher
from sharectl.adapters.config_model import Config
from sharectl.adapters.config_publish import TARGETS_FILE, PublisherConfig
from sharectl.adapters.config_text import as_data
from sharectl.adapters.disabled import DisabledFile
from sharectl.adapters.left_places import LeftPlacesFile
from sharectl.adapters.sharectl_file import FilePublisher, Seal
from sharectl.adapters.state_file import StateFile
from sharectl.cli import options
from sharectl.core.plan import State
from sharectl.ports import Publisher
from sharectl.publication import Outlets, in_force, load_state

_LEFT_SECONDS = 10.0
"""How long a collector may take that is only to be emptied."""


def outlets_of(config: Config, verb: str, *, withdraws: bool = False) -> Outlets:
    """Everything that the verb publishes through; it is what the audit names.

    Parameters
    ----------
    withdraws
        Whether plans without targets are all that it publishes, as for every verb while sharectl is off.

    Raises
    ------
    ConfigError
        If the file of keys cannot be used, and targets may be published.
    """
    switch = switch_of(config)
    off = withdraws or in_force(switch.disabled(), int(time.time())) is not None
    seal = options.seal_of_withdrawals(config) if off else options.seal_of(config)
    return Outlets(
        options.publishers_of(config, seal),
        state_of(config),
        switch,
        audit_of(config, verb),
        _left_places_of(config, seal),
    )


def state_of(config: Config) -> StateFile:
    """What one cycle hands to the next."""
    return StateFile(config.state_directory / "state.json")


def state_to_read(config: Config, now: int) -> State:
    """State for verbs that change nothing. A problem with it is printed; without a state they begin afresh."""
    problems: list[str] = []
    state = load_state(state_of(config), now, problems)
    for problem in problems:
        print(f"sharectl: {problem}", file=sys.stderr)
    return state


def switch_of(config: Config) -> DisabledFile:
    """The switch of this machine."""
    return DisabledFile(config.state_directory)


def audit_of(config: Config, verb: str) -> AuditFile:
    """The record of changes, made by whoever runs ``verb``."""
    return AuditFile(
        config.state_directory,
        who_runs(verb, os.environ),
        as_data(config),
        config.history.changes_max_bytes,
        config.history.changes_keep,
    )


def _left_places_of(config: Config, seal: Seal) -> LeftPlacesFile:
    """Where targets may stand that ``publish:`` names no more."""

    def publisher_of(name: str) -> Publisher:
        if name.startswith(left_places.FILE):
            return FilePublisher(Path(name[len(left_places.FILE) :]), seal)
        address = name[len(left_places.COLLECTOR) :] or None
        return CollectorPublisher(CollectorAccess(address, None, _LEFT_SECONDS), seal.pool)

    path = config.state_directory / "places.json"
    return LeftPlacesFile(path, tuple(_name(config, way) for way in config.publish), publisher_of)


def _name(config: Config, way: PublisherConfig) -> str:
    if way.collector is not None:
        return f"{left_places.COLLECTOR}{config.pool.collector or ''}"
    file = way.https.file if way.https is not None else way.file
    return f"{left_places.FILE}{file or TARGETS_FILE}"
