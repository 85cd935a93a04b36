"""Facts of the negotiator about a job, from itself and from the collector, both at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Optional

from sharectl.condor import ads, daemons
from sharectl.condor.ads import evaluated
from sharectl.condor.deadline import ask_all
from sharectl.condor.negotiator import one_of
from sharectl.explain import turn
from sharectl.explain.turn import AccountedGroup, NegotiatorFacts, Submitter
from sharectl.model import PoolConfig

_LIMITS = ("ConcurrencyLimits", "PreemptingConcurrencyLimits")
_OF_COLLECTOR = ("used", "idle_jobs", "access_points")
"""Fields of `NegotiatorFacts` that no negotiator tells."""
_ANY_LIMIT = " || ".join(f"{name} isnt undefined" for name in _LIMITS)


def look(pool: PoolConfig, limits: Iterable[str]) -> NegotiatorFacts:
    """Facts for a job with ConcurrencyLimits as in each of ``limits``.

    The negotiator answers between its cycles; the collector has a copy of the last one's end.
    """
    names = {name for text in limits for name, _ in turn.parts_of(text)}
    ask = partial(daemons.collector_question, pool.collector, pool.collector_deadline_seconds)
    of_negotiator = ask(partial(_of_negotiator, limits=names))
    answers = ask_all({"negotiator": of_negotiator, "collector": ask(_of_collector)})
    problems = [f"{s.name}: {s.problem}" for s, _ in answers.values() if s.problem is not None]
    negotiator, collector = (answer.value for answer in answers.values())
    collector = collector or NegotiatorFacts()
    facts: NegotiatorFacts = negotiator or collector
    counts = {name: getattr(collector, name) for name in _OF_COLLECTOR}
    return replace(facts, **counts, problems=tuple(problems))


def _of_negotiator(collector: Any, limits: Collection[str]) -> NegotiatorFacts:
    location = one_of(daemons.locations(collector, "Negotiator"), None)
    try:
        facts = _accounting(daemons.daemon(location))
        return replace(facts, most=sizes(daemons.macros(location), limits)) if limits else facts
    except Exception as error:
        why = daemons.why_silent(location.get("MyAddress", ""), "NEGOTIATOR", error)
        raise type(error)(why) from error


def _of_collector(collector: Any) -> NegotiatorFacts:
    idle: Counter[str] = Counter()
    for ad in daemons.query(collector, "Submitter", projection=["Name", "IdleJobs"]):
        idle[_name(ad).rpartition("@")[0].lower()] += _whole(ad, "IdleJobs")
    slots = daemons.query(collector, "Slot", _ANY_LIMIT, _LIMITS)
    schedds = daemons.query(collector, "Schedd", "MaxJobsRunning isnt undefined")
    return replace(
        _accounting(collector),
        used=turn.use_of(ads.text(evaluated(ad, name)) or "" for ad in slots for name in _LIMITS),
        idle_jobs=idle,
        access_points={
            _name(ad).lower(): (_whole(ad, "TotalRunningJobs"), _whole(ad, "MaxJobsRunning"))
            for ad in schedds
        },
    )


def _accounting(daemon: Any) -> NegotiatorFacts:
    """Groups, submitters and the last cycle, of a negotiator or of its ads in a collector."""
    accounts = daemons.query(daemon, "Accounting")
    # Of several negotiators nobody knows here which one charges a job.
    if len({ads.text(ad.get("NegotiatorName")) for ad in accounts}) > 1:
        return NegotiatorFacts()
    groups = map(group_of, (ad for ad in accounts if evaluated(ad, "IsAccountingGroup") is True))
    submitters = map(_submitter, (ad for ad in accounts if "@" in _name(ad)))
    (cycle, *_) = daemons.query(daemon, "Negotiator") or [{}]
    return NegotiatorFacts(
        {group.name.lower(): group for group in groups},
        {submitter.name.lower(): submitter for submitter in submitters},
        cycle_ended_at=_whole(cycle, "LastNegotiationCycleEnd0"),
        period_seconds=_whole(cycle, "LastNegotiationCyclePeriod0"),
    )


def sizes(configuration: Mapping[str, str], limits: Iterable[str]) -> dict[str, float]:
    """Size of each limit, by the first of its knobs that is set; names are without case."""
    spelt = {name.lower(): name for name in configuration}
    by_limit = {}
    for limit in limits:
        names = (spelt.get(knob.lower()) for knob in turn.knobs_of(limit))
        texts = [str(configuration[name]).strip() for name in names if name is not None]
        text = next((text for text in texts if text.lower() not in daemons.UNSET), None)
        try:
            by_limit[limit] = float(text or "")
        except ValueError:
            continue  # an expression, which only the negotiator evaluates
    return by_limit


def group_of(ad: Any) -> AccountedGroup:
    """Group of its accounting ad."""
    config, subtree = _figure(ad, "ConfigQuota"), _figure(ad, "SubtreeQuota")
    # It is 0 until the first cycle has worked it out.
    worked_out = bool(subtree or not config)
    return AccountedGroup(
        _name(ad),
        _figure(ad, "WeightedResourcesUsed") or 0.0,
        _figure(ad, "EffectiveQuota") if worked_out else None,
        # The negotiator holds a static one, which is no share, against its use as it is written.
        None if not worked_out else config if config and config > 1 else subtree,
        ads.text(evaluated(ad, "SurplusPolicy")),
        _figure(ad, "GroupSortKey"),
    )


def _submitter(ad: Any) -> Submitter:
    ceiling = _figure(ad, "Ceiling")
    return Submitter(
        _name(ad).rpartition("@")[0],
        _figure(ad, "WeightedResourcesUsed") or 0.0,
        None if ceiling is None else int(ceiling),
        _figure(ad, "Priority"),
    )


def _name(ad: Any) -> str:
    return ads.text(ad.get("Name")) or ""


def _whole(ad: Any, name: str) -> int:
    return ads.whole(evaluated(ad, name), 0)


def _figure(ad: Any, name: str) -> Optional[float]:
    """Figure of an ad; None if it is missing, negative or no number."""
    figure = ads.number(evaluated(ad, name), -1.0, most=1e40)
    return figure if figure >= 0 else None
