"""What a publication goes through, as the configuration says it."""

from __future__ import annotations

import os
import time

from sharectl.adapters.audit import AuditFile, who_runs
from sharectl.adapters.config_model import Config
from sharectl.adapters.config_text import as_data
from sharectl.adapters.disabled import DisabledFile
from sharectl.adapters.state_file import StateFile
from sharectl.cli import options
from sharectl.publication import Outlets, in_force


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
    return Outlets(options.publishers_of(config, seal), state_of(config), switch, audit_of(config, verb))


def state_of(config: Config) -> StateFile:
    """What one cycle hands to the next."""
    return StateFile(config.state_directory / "state.json")


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
