"""A pool and this machine, as `sharectl check pool` looks at them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional, Union

from sharectl.check.findings import Checks, Finding, Level, some
from sharectl.check.snippet_subject import SnippetSubject
from sharectl.condor.deadline import Answer
from sharectl.condor.library import UnreadableConfigurationError
from sharectl.condor.pool_look import PoolLook, SlotLook
from sharectl.config.model import OBSERVE, Config
from sharectl.plan.plan import State
from sharectl.words import counted

CHECKS = Checks("pool.txt")
finding = CHECKS.finding

MOST_SHOWN = 3
"""Names in a finding; the others are counted."""
_REMEDY = re.compile(r"; |: (?=write |see |`sharectl )|, or (?=`sharectl )")


@dataclass(frozen=True)
class PoolSubject:
    """Everything that the checks judge."""

    now: int
    """Unix seconds."""
    config: Config
    file: Path
    """File of ``config``."""
    status: Mapping[str, Any]
    """As ``sharectl status --json`` has it."""
    problems: Mapping[str, Sequence[str]]
    """Name of a finding -> problems that `sharectl status` names."""
    look: Optional[PoolLook] = None
    """Answer of the collector; None if it did not answer."""
    state: State = field(default_factory=State)
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """As of `sharectl.condor.pool_look.ask_daemons`."""
    local: Union[SnippetSubject, UnreadableConfigurationError, OSError, None] = None
    """HTCondor's configuration of this machine, or why HTCondor or this user cannot read it."""
    timer: Mapping[str, str] = field(default_factory=dict)
    """Settings of the timer's unit as systemd has them; empty without systemd or unit."""
    timer_name: str = ""

    @property
    def slots(self) -> tuple[SlotLook, ...]:
        """Partitionable slots."""
        return self.look.slots if self.look is not None else ()

    @property
    def cycle(self) -> Mapping[str, Any]:
        """Last cycle; empty if there was none."""
        return self.status["last_cycle"] or {}

    @property
    def observes(self) -> bool:
        """True if nothing is steered."""
        return self.config.mode == OBSERVE

    @property
    def controlled(self) -> Collection[str]:
        """Host names of the nodes under control."""
        return self.look.control.controlled if self.look is not None else ()

    @property
    def expected(self) -> tuple[SlotLook, ...]:
        """Slots of nodes that should act on targets."""
        expected = self.look.control.expected if self.look is not None else ()
        return tuple(slot for slot in self.slots if slot.machine in expected)

    @property
    def steered(self) -> frozenset[str]:
        """Nodes, by short or full name, that may act on a target."""
        standing = self.state.standing_at(self.now)
        return frozenset(stood.target.node.lower() for stood in standing)

    def of(self, kind: str) -> dict[str, Answer]:
        """Answers of the daemons of a kind (``schedd``), by the names that they were asked by."""
        return {name: answer for name, answer in self.answers.items() if name.split()[0] == kind}


def named(names: Iterable[str]) -> str:
    """First of these names, and the number of the others."""
    return some(list(dict.fromkeys(names)), MOST_SHOWN, ", ")


def of_slots(
    kind: str, slots: Sequence[SlotLook], *, level: Level = Level.ERROR, **words: Any
) -> Finding:
    """Finding of that name about slots, with their number as ``count``."""
    place, count = named(slot.machine for slot in slots), counted(len(slots), "slot")
    return finding(kind, place, level=level, count=count, **words)


def divided(problem: str, otherwise: str) -> dict[str, Any]:
    """Fact and remedy of a problem that has both; ``otherwise`` is for one without a remedy."""
    matches = list(_REMEDY.finditer(problem))
    if not matches:
        return {"fault": problem, "remedy": otherwise}
    return {"fault": problem[: matches[-1].start()], "remedy": problem[matches[-1].end() :]}
