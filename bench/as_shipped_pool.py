"""A pool as HTCondor ships it under the loop, and what is seen of it: matches, refusals, delays.

The collector's copies are looked at every few seconds; a startd is asked only while the effect of
a plan is awaited or after a refusal, because asking has it evaluate its expressions.
"""

from __future__ import annotations

import re
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import classad2
import htcondor2  # noqa: F401  # with it expressions mean what they mean in the daemons
import yaml

from poolbox import Box, BoxSpec
from poolbox.demo import pictures, scenario
from poolbox.demo.steering import Cycle, run_cycle

CHECKOUT = Path(__file__).parents[1]
NODES, NODE_CORES, MULTICORE_CORES = 4, 16, 8
HELPED = "cms"
PLEDGE_HS06 = {"alice": 80.0, "lhcb": 80.0, HELPED: 160.0}
LOOK_SECONDS, EFFECT_LOOK_SECONDS = 5.0, 2.0
EFFECT_SECONDS = 600.0
"""Longest time that startds are asked for the effect of a plan."""
DEPLOYED = f"""\
include : {CHECKOUT}/config.d/60-sharectl-execute-point.conf
SHARECTL_SOURCE = file:$(LOCAL_DIR)/../../shared/sharectl.txt
STARTD_CRON_JOB_CTL_EXECUTABLE = {CHECKOUT}/startd_cron/job_ctl.py
"""
SPEC = BoxSpec.of_equal_nodes(
    NODES,
    NODE_CORES,
    as_shipped=True,
    groups={group: hs06 / sum(PLEDGE_HS06.values()) for group, hs06 in PLEDGE_HS06.items()},
    central_config=scenario.QUOTAS_WITHOUT_IDLE_CORES,
    execute_config=DEPLOYED,
)
REFUSED = re.compile(
    r"^(\S+ \S+) .*(?:can't be split to allocate a dynamic slot|resource refused)", re.MULTILINE
)
REFUSAL_LINES = 25
"""Lines of StartLog up to a refusal, with HTCondor's analysis of it."""
ACCEPTED = "Request accepted"
MATCHED = "Successfully matched with"


@dataclass(frozen=True)
class Policy:
    """Target and grace of a node by one ad: the startd's, or the collector's copy."""

    active: bool
    target: tuple[Any, ...]
    """Groups and cores."""
    in_grace: bool
    free_cores: int = field(compare=False)

    @classmethod
    def of(cls, ad: Any) -> Policy:
        """Policy of the ad of a partitionable slot, evaluated now."""
        words = [
            tuple(ad.eval(name)) if isinstance(ad.get(name), list) else ()
            for name in ("t1_TargetGroups", "t1_Targetcores")
        ]
        active = "t1_TargetActive" in ad and ad.eval("t1_TargetActive") is True
        in_grace = "MC_GRACE" in ad and ad.eval("MC_GRACE") is True
        return cls(active, tuple(words) if active else (), in_grace, int(ad["Cpus"]))


@dataclass(frozen=True)
class Refusal:
    """Match that a node refused."""

    node: str
    when: str
    """As StartLog writes it."""
    after_seconds: float
    """Time from the begin of the watch."""
    copy: Policy
    """Of the collector's copy before."""
    startd: Policy
    """Of the startd after."""
    log: tuple[str, ...]
    """Lines of StartLog up to it."""

    @property
    def of_stale_copy(self) -> bool:
        """True if the copy had another target or grace than the startd."""
        return self.copy != self.startd


@dataclass
class Effect:
    """Change of a node's target that a plan wants."""

    node: str
    target: tuple[Any, ...]
    """Groups and cores; empty for none."""
    decided_at: float
    startd_seconds: Optional[float] = None
    """From the decision until START of the startd goes by it; None until then."""
    copy_seconds: Optional[float] = None
    """Until START of the collector's copy does."""


@dataclass
class Watch:
    """Cycles on a pool, and what is seen of it meanwhile."""

    box: Box
    configuration: Path
    began: float = field(default_factory=time.time)
    cycles: list[Cycle] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    caps_passed: list[str] = field(default_factory=list)
    idle_cores: dict[bool, list[int]] = field(default_factory=lambda: {True: [], False: []})
    """Under a target or not -> idle cores of a node at each look."""
    cores: dict[bool, list[int]] = field(default_factory=lambda: {True: [], False: []})
    copies: dict[str, Policy] = field(default_factory=dict)
    """Node -> what the negotiator goes by, at the last look."""
    _before: tuple[pictures.NodePicture, ...] = ()
    _refused: Counter[str] = field(default_factory=Counter)

    @classmethod
    def start(cls, box: Box, folder: Path, **settings: Any) -> Watch:
        """Watch with a configuration of sharectl's defaults, and ``settings``."""
        path = folder / "sharectl.yaml"
        content = {
            "groups": {name: {"pledge_hs06": hs06} for name, hs06 in PLEDGE_HS06.items()},
            "publish": [{"file": str(box.shared_directory / "sharectl.txt")}],
            "state_directory": str(folder),
            **settings,
        }
        path.write_text(yaml.safe_dump(content))
        return cls(box, path)

    @property
    def nodes(self) -> list[str]:
        """Full names of the execute points."""
        return [node.name for node in self.box.spec.execute_points]

    @property
    def matches(self) -> int:
        """Matches of the negotiator so far."""
        return self.box.log_text(self.box.spec.central_point, "NEGOTIATOR").count(MATCHED)

    @property
    def claims(self) -> int:
        """Claims that nodes accepted so far: an access point splits a match into several."""
        return sum(self.box.log_text(name, "STARTD").count(ACCEPTED) for name in self.nodes)

    def cycle(self) -> Cycle:
        """Run a cycle, and expect what its plan changes."""
        cycle = run_cycle(self.box, self.configuration)
        self.cycles.append(cycle)
        plan = (cycle.record or {}).get("plan")
        if plan is not None:
            self.expect(plan)
        return cycle

    def expect(self, plan: dict[str, Any]) -> None:
        """Await the effect of a plan on each node whose target it changes."""
        wanted = {
            target["node"].partition(".")[0]: (
                (target["held_back"], target["helped"]),
                (target["cap_cores"], target["request_cores"]),
            )
            for target in plan["targets"]
        }
        latest = {effect.node: effect.target for effect in self.effects}
        for name in self.nodes:
            target = wanted.get(name.partition(".")[0], ())
            if target != latest.get(name, ()):
                self.effects.append(Effect(name, target, plan["generated_at"]))

    def look(self) -> None:
        """Note what the collector's copies say, new refusals, and effects."""
        now = time.time()
        query = ["condor_status", "-long", "-constraint", "PartitionableSlot =?= True"]
        ads = {str(ad["Machine"]): ad for ad in classad2.parseAds(self.box.run(query).stdout)}
        seen = tuple(pictures.picture(ad, now) for ad in ads.values())
        self.caps_passed += pictures.overshoots(self._before, seen)
        self._before = seen
        self._note_refusals(now)
        self.copies = {name: Policy.of(ad) for name, ad in ads.items()}
        for node, policy in zip(seen, self.copies.values()):
            self.idle_cores[policy.active].append(node.idle_cores)
            self.cores[policy.active].append(node.cores)
        for effect in self._latest_effects():
            copy = self.copies.get(effect.node)
            if effect.copy_seconds is None and copy is not None and copy.target == effect.target:
                effect.copy_seconds = now - effect.decided_at
            if self._is_awaited(effect) and self._startd(effect.node).target == effect.target:
                effect.startd_seconds = time.time() - effect.decided_at

    def watch(self, seconds: float) -> None:
        """Look again and again for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            began = time.monotonic()
            self.look()
            often = any(map(self._is_awaited, self.effects))
            pause = (EFFECT_LOOK_SECONDS if often else LOOK_SECONDS) - (time.monotonic() - began)
            time.sleep(max(0.0, min(pause, left)))

    def stale_refusals(self) -> list[Refusal]:
        """Refused matches whose copy had another target or grace than the startd."""
        return [refusal for refusal in self.refusals if refusal.of_stale_copy]

    def idle_ratio(self, *, under_targets: bool) -> float:
        """Part of the cores of nodes with or without a target that is idle."""
        return sum(self.idle_cores[under_targets]) / max(1, sum(self.cores[under_targets]))

    def _is_awaited(self, effect: Effect) -> bool:
        late = time.time() - effect.decided_at > EFFECT_SECONDS
        return effect.startd_seconds is None and not late

    def _latest_effects(self) -> Iterator[Effect]:
        """The last one of each node: those before it may never be."""
        yield from {effect.node: effect for effect in self.effects}.values()

    def _note_refusals(self, now: float) -> None:
        for name in self.nodes:
            text = self.box.log_text(name, "STARTD")
            lines = list(REFUSED.finditer(text))
            fresh = lines[self._refused[name] :]
            if not fresh:
                continue
            self._refused[name] = len(lines)
            startd = self._startd(name)
            for line in fresh:
                log = tuple(text[: line.end()].splitlines()[-REFUSAL_LINES:])
                copy = self.copies.get(name, startd)
                after = now - self.began
                self.refusals.append(Refusal(name, line[1], after, copy, startd, log))

    def _startd(self, node: str) -> Policy:
        """Policy of the startd itself."""
        text = self.box.run(["condor_status", "-direct", node, "-long"]).stdout
        slots = [ad for ad in classad2.parseAds(text) if ad.get("PartitionableSlot")]
        return Policy.of(slots[0])


def jobs(group: str, cores: int, count: int, least_seconds: int, most_seconds: int) -> str:
    """Submit description of jobs that sleep for a time drawn for each."""
    return scenario.jobs(group, cores, count, f"$RANDOM_INTEGER({least_seconds},{most_seconds})")


def summary(seconds: Sequence[float]) -> str:
    """Median and largest of some times, in words."""
    if not seconds:
        return "none"
    return f"median {statistics.median(seconds):.0f} s, most {max(seconds):.0f} s"
