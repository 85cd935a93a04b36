"""Processes whose clocks, and those of all that they start, show another time."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

from poolbox import Box

SOURCE = Path(__file__).with_name("other_clock.c")


def shifted(file: Path, seconds: int) -> dict[str, str]:
    """Environment of a process whose clock differs by so much, and later by what `shift` writes."""
    library = file.with_name("other_clock.so")
    if not library.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
    file.write_bytes(struct.pack("l", seconds))
    return {"LD_PRELOAD": str(library), "CLOCK_SHIFT_FILE": str(file)}


def shift(box: Box, host: str, seconds: int) -> None:
    """Have the clock of a running startd differ by so many seconds from now on."""
    with (box.shared_directory / f"{host}.shift").open("r+b") as file:
        file.write(struct.pack("l", seconds))


def restart_shifted(box: Box, seconds: Mapping[str, int]) -> None:
    """Restart startds by host with clocks that differ so much."""
    for host, number in seconds.items():
        environment = shifted(box.shared_directory / f"{host}.shift", number)
        words = " ".join(f"{name}={value}" for name, value in environment.items())
        restart(box, host, f'STARTD_ENVIRONMENT = "{words}"\n')


def restart(box: Box, host: str, text: str = "") -> None:
    """Restart a host's daemons with that configuration, and so with the right clock."""
    box.write_config(host, text)
    box.stop_host(host)
    box.start_host(host)
