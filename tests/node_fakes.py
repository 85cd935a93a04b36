"""Stand-ins for sources of the node jobs: condor_status and documents with targets."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Union

NOW = 1_700_000_000
MACHINE = "cn-609-05-06.example.org"


def words_of(options: Mapping[str, str]) -> list[str]:
    """Arguments of a program: ``{"max_age_seconds": "60"}`` stands for --max-age-seconds 60."""
    return [
        word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)
    ]


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


def held(cores: Union[int, str], account: str = "undefined") -> str:
    """What condor_status prints of a slot for job_ctl; ``account`` is a ClassAd literal."""
    return f"{cores} {account}\n"


def job_of(user: str, cores: int) -> str:
    """What it prints of a dynamic slot in which a job of ``user`` runs, such as ``alice.prod``."""
    return held(cores, f'"{user}@example.org"')


def free(slot: int, cores: int, total: int = 64, changed: int = 0) -> str:
    """What it prints of a slot for mc_grace; ``total`` is 0 for one that is not partitionable."""
    return f"{slot} {total} {cores} {changed}\n"


KEYS = {"old": "0b" * 32, "new": "c7" * 64}
"""Key ids and keys, as a key file has them."""


def document(  # one argument for each line
    *lines: str,
    now: int = NOW,
    sequence: Union[int, str] = NOW,
    groups: str = "alice,cms",
    pool: str = "",
    validity_seconds: int = 1800,
    key_id: str = "",
    pending: str = "",
) -> str:
    """Document with ``lines`` such as ``cn-1 alice 56 cms 8``; signed if there is a key."""
    header = [
        "# sharectl: 1",
        f"# sequence: {sequence}",
        *([f"# pool: {pool}"] if pool else []),
        f"# generated: {now}",
        f"# valid_until: {now + validity_seconds}",
        f"# groups: {groups}",
        *([f"# multicore_pending: {pending}"] if pending else []),
        f"# targets: {len(lines)}",
    ]
    text = "".join(f"{line}\n" for line in (*header, *lines))
    return text + signature(text, key_id) if key_id else text


def signature(text: str, key_id: str) -> str:
    """The last line of a document, made with one of `KEYS`."""
    digest = hmac.new(bytes.fromhex(KEYS[key_id]), text.encode(), "sha256").hexdigest()
    return f"# signature: hmac-sha256 {key_id} {digest}\n"


def key_file(folder: Path, *key_ids: str) -> str:
    """Path of a safe key file with those of the `KEYS`."""
    path = folder / "keys"
    path.write_text("# KEYID HEX\n\n" + "".join(f"{key_id} {KEYS[key_id]}\n" for key_id in key_ids))
    path.chmod(0o640)
    return str(path)


def ad_line(
    identity: str,
    *order: object,
    sequence: object = NOW,
    generated: int = NOW,
    pool: str = "",
    pending: str = "undefined",
) -> str:
    """Line of condor_status for target_collector; ``order`` is node, group, cap, group, size.

    Without an order it is the plan's ad.
    """
    node, groups, cores, named = "undefined", "undefined", "undefined", "alice,cms"
    if order:
        name, held_back, cap, helped, request = order
        node, named = f'"{name}"', f"{held_back},{helped}"
        groups, cores = f'{{ "{held_back}","{helped}" }}', f"{{ {cap},{request} }}"
    whose = f'"{pool}"' if pool else "undefined"
    return (
        f'"{identity}" {node} {sequence} {generated} {generated + 1800} {groups} {cores} '
        f'"{named}" {whose} {pending}\n'
    )
