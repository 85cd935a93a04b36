"""What a publication goes through, as the configuration says it."""

from __future__ import annotations

import os

from sharectl.adapters.audit import AuditFile, who_runs
from sharectl.adapters.config_model import Config
from sharectl.adapters.config_text import as_data
from sharectl.adapters.disabled import DisabledFile
from sharectl.adapters.state_file import StateFile
from sharectl.cli import options
from sharectl.publication import Outlets


def outlets_of(config: Config, verb: str) -> Outlets:
    """Everything that the verb publishes through; it is what the audit names."""
    return Outlets(options.publishers_of(config), state_of(config), switch_of(config), audit_of(config, verb))


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
