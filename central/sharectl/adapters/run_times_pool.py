"""What a live pool tells of its cadence: its cores, what ran on them, and how long its negotiator's cycles take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Optional

from sharectl.adapters import negotiation_cycles, run_times_history
from sharectl.adapters.collector import CollectorAnswer, look
from sharectl.adapters.condor_reach import why_collector, why_daemon
from sharectl.adapters.deadline import Answer, Question, ask_all
from sharectl.adapters.negotiation_cycles import Cycle
from sharectl.adapters.run_times_file import Tally
from sharectl.core.model import SCHEDD_SOURCE, Source
from sharectl.core.run_times_jobs import Job, Jobs
from sharectl.errors import PoolUnavailableError

MOST_JOBS = 10_000
_RAN = "RemoteWallClockTime > 0"


@dataclass(frozen=True)
class Access:
    """How to reach the pool."""

    collector: Optional[str] = None
    """Address; None for the pool of this machine's HTCondor configuration."""
    groups: Optional[Collection[str]] = None
    """Configured groups; None for whatever the jobs say."""
    negotiator: Optional[str] = None
    """Name, where there are several."""
    limit: int = MOST_JOBS
    """Jobs of each schedd, the newest."""
    collector_deadline_seconds: float = 20
    schedd_deadline_seconds: float = 60
    """The negotiator's too: it answers between cycles."""


@dataclass(frozen=True)
class PoolCadence:
    """What there is to know; what nobody told is empty or None, and in `sources`."""

    cores: Optional[int]
    jobs: Jobs
    negotiator: Optional[str]
    cycles: tuple[Cycle, ...]
    knobs: Mapping[str, int]
    sources: tuple[Source, ...]
    schedds: int = field(default=0)
    """How many told of their jobs."""


def ask(access: Access) -> PoolCadence:
    """Ask the collector, then all schedds and the negotiator at once.

    Raises
    ------
    PoolUnavailableError
        If the collector does not answer, or there are several negotiators and none of them was named.
    """
    # Loaded before the questions fork, or each of them would load it anew.
    import htcondor2  # noqa: F401

    seconds = access.collector_deadline_seconds
    first = ask_all(
        {
            "collector": Question(
                partial(look, access.collector), seconds, partial(why_collector, access.collector)
            ),
            "negotiators": Question(partial(negotiation_cycles.locate, access.collector), seconds),
        }
    )
    if first["collector"].value is None:
        raise PoolUnavailableError(
            f"collector: {first['collector'].source.problem}; see --config, or CONDOR_CONFIG. Without a pool, give "
            "--run-time, --history or --swf"
        )
    known: CollectorAnswer = first["collector"].value
    negotiator = _chosen(first["negotiators"].value or [], access.negotiator)
    schedds = {
        f"{SCHEDD_SOURCE}{location['Name']}": location for location in known.schedds if "Name" in location
    }
    answers = ask_all(_questions(access, schedds, negotiator))
    jobs, told = _together([answers[name].value for name in schedds], access.limit)
    return PoolCadence(
        cores=sum(slot.cores for slot in known.slots) or None,
        jobs=jobs,
        negotiator=negotiator["Name"] if negotiator else None,
        cycles=tuple(_value(answers, "negotiator", [])),
        knobs=_value(answers, "negotiator's configuration", {}),
        sources=(
            first["collector"].source,
            *(answer.source for answer in answers.values()),
            *([] if negotiator else [no_negotiator(first["negotiators"], access.negotiator)]),
        ),
        schedds=told,
    )


def history(location: Mapping[str, str], groups: Optional[Collection[str]], limit: int) -> Jobs:
    """Jobs that ran, as one schedd has them on record, the newest ``limit``."""
    import classad2
    import htcondor2

    ads = htcondor2.Schedd(classad2.ClassAd(dict(location))).history(
        _RAN, list(run_times_history.ATTRIBUTES), match=limit
    )
    tally = Tally(location["Name"], limit)
    for ad in ads:
        run_times_history.count(tally, ad.get, groups)
    return Jobs(dict(tally.counted), dict(tally.left_out), limit if tally.full else None)


def _questions(
    access: Access, schedds: Mapping[str, Mapping[str, str]], negotiator: Optional[Mapping[str, str]]
) -> dict[str, Question]:
    seconds = access.schedd_deadline_seconds
    questions = {
        name: Question(
            partial(history, location, access.groups, access.limit),
            seconds,
            partial(why_daemon, location, "SCHEDD"),
        )
        for name, location in schedds.items()
    }
    if negotiator:
        questions["negotiator"] = Question(
            partial(negotiation_cycles.last_cycles, negotiator),
            seconds,
            partial(why_daemon, negotiator, "NEGOTIATOR"),
        )
        questions["negotiator's configuration"] = Question(
            partial(negotiation_cycles.knobs, negotiator),
            seconds,
            partial(why_daemon, negotiator, "NEGOTIATOR"),
        )
    return questions


def _chosen(negotiators: Collection[dict[str, str]], name: Optional[str]) -> Optional[dict[str, str]]:
    if name is not None:
        negotiators = [found for found in negotiators if found["Name"].lower() == name.lower()]
    if len(negotiators) > 1:
        names = ", ".join(sorted(found["Name"] for found in negotiators))
        raise PoolUnavailableError(f"the pool has several negotiators: give --negotiator with one of {names}")
    return next(iter(negotiators), None)


def no_negotiator(answer: Answer, name: Optional[str]) -> Source:
    """What is told of a negotiator that is not asked: of ``answer``, those that the collector knows, none has the name."""
    known = ", ".join(sorted(found["Name"] for found in answer.value or []))
    said = (
        f"the collector knows none named {name[:80]!r}, only {known}; give --negotiator with one of these, or leave it out"
        if name is not None and known
        else "the collector does not know it"
    )
    return replace(answer.source, name="negotiator", problem=answer.source.problem or said)


def _together(answers: Collection[Optional[Jobs]], limit: int) -> tuple[Jobs, int]:
    counted: Counter[Job] = Counter()
    left_out: Counter[str] = Counter()
    told = [answer for answer in answers if answer is not None]
    for jobs in told:
        counted.update(jobs.counted)
        left_out.update(jobs.left_out)
    return Jobs(counted, left_out, limit if any(jobs.limit for jobs in told) else None), len(told)


def _value(answers: Mapping[str, Answer], name: str, default: Any) -> Any:
    value = answers[name].value if name in answers else None
    return default if value is None else value
