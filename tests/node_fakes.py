"""A stand-in for condor_status, and the answers that a startd gives through it to the two node jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Union

NOW = 1_700_000_000
MACHINE = "cn-609-05-06.example.org"


def shell_tool(folder: Path, script: str) -> str:
    """Path of an executable that runs ``script`` and knows ``$0`` only."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "condor_status"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def tool_that_prints(folder: Path, text: str) -> str:
    """Path of an executable that prints ``text``."""
    folder.mkdir(parents=True, exist_ok=True)
    answer = folder / "answer"
    answer.write_text(text)
    return shell_tool(folder, f"exec cat '{answer}'")


def held(cores: Union[int, str], account: str = "undefined", machine: str = MACHINE) -> str:
    """What condor_status prints of a slot for job_ctl; ``account`` is a ClassAd literal."""
    return f'"{machine}" {cores} {account}\n'


def job_of(user: str, cores: int) -> str:
    """What it prints of a dynamic slot in which a job of ``user`` runs, such as ``alice.prod``."""
    return held(cores, f'"{user}@example.org"')


def free(slot: int, cores: int, total: int = 64, changed: int = 0) -> str:
    """What it prints of a slot for mc_grace; ``total`` is 0 for one that is not partitionable."""
    return f"{slot} {total} {cores} {changed}\n"
