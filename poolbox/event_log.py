"""Event logs of jobs: when each began and ended, and where."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

EVENT_TIMES = "DEFAULT_USERLOG_FORMAT_OPTIONS = ISO_DATE, UTC, SUB_SECOND\n"
"""Configuration of an access point: without it an event's time is a whole second of local time."""

EXECUTE, EVICTED, TERMINATED = "001", "004", "005"
_HEADER = re.compile(r"(\d{3}) \((\d+\.\d+)\.\d+\) (\S+)[ T](\S+?)Z? ")
_SLOT = re.compile(r"SlotName: \S*?@?([\w.-]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Event:
    """One event of one job."""

    number: str
    job: str
    at: float
    """Unix seconds."""
    host: str
    """Where the job ran; empty if the event does not say."""


def events(path: Path, *numbers: str) -> list[Event]:
    """Events with those numbers, in the order of the file; none if there is no file."""
    size = path.stat().st_size if path.exists() else 0
    return [event for event in _read(path, size) if event.number in numbers]


@functools.lru_cache
def _read(path: Path, size: int) -> tuple[Event, ...]:
    """All events of a file of that size."""
    logged = []
    for block in (path.read_text() if size else "").split("...\n"):
        header = _HEADER.match(block)
        if header:
            slot = _SLOT.search(block)
            at = datetime.fromisoformat(f"{header[3]}T{header[4]}+00:00").timestamp()
            logged.append(Event(header[1], header[2], at, slot[1] if slot else ""))
    return tuple(logged)


def times(path: Path, number: str) -> list[float]:
    """Unix seconds of the events with that number."""
    return [event.at for event in events(path, number)]


def most_at_once(path: Path) -> Counter[str]:
    """Host -> most jobs of the log that ran there at the same time."""
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for host, change in _changes(events(path, EXECUTE, EVICTED, TERMINATED)):
        running[host] += change
        most[host] = max(most[host], running[host])
    return most


def _changes(unsorted: Iterable[Event]) -> Iterable[tuple[str, int]]:
    hosts: dict[str, str] = {}
    for event in sorted(unsorted, key=lambda event: event.at):
        if event.number == EXECUTE:
            hosts[event.job] = event.host
            yield event.host, 1
        elif event.job in hosts:
            yield hosts.pop(event.job), -1
