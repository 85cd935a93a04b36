"""``sharectl cadence``."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""


def run(_arguments: argparse.Namespace) -> int:
    """Run it."""
    return 1
