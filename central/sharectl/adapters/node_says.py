"""What one node says of its target, asked now."""

from __future__ import annotations

from functools import partial
from typing import Any, Optional

from sharectl.adapters import node_words
from sharectl.adapters.collector import unanswered
from sharectl.adapters.condor_reach import why_collector
from sharectl.adapters.deadline import Question, ask_all
from sharectl.core.explain_node import NodeWords
from sharectl.core.nodes import HOST_NAME

_PROJECTION = (*node_words.PROJECTION, "t1_TargetSequence")


def ask(
    collector: Optional[str], name: str, now: int, stale_seconds: int, deadline_seconds: float
) -> NodeWords:
    """What the node of that short or full host name says at Unix time ``now``; never raises.

    Parameters
    ----------
    collector
        Its address; None for the pool of this machine's configuration.
    """
    if not HOST_NAME.fullmatch(name):
        return NodeWords(problem="it has no host name")
    import htcondor2  # noqa: F401 - loaded before the question forks

    question = Question(
        partial(look, collector, name, now, stale_seconds),
        deadline_seconds,
        partial(why_collector, collector),
    )
    answer = ask_all({"collector": question})["collector"]
    if answer.value is None:
        return NodeWords(problem=f"collector: {unanswered(collector, answer.source.problem or '')}")
    words: NodeWords = answer.value
    return words


def look(collector: Optional[str], name: str, now: int, stale_seconds: int) -> NodeWords:
    """The same, for a process of its own."""
    import htcondor2

    asked = htcondor2.Collector(collector) if collector else htcondor2.Collector()
    ads = asked.query(htcondor2.AdType.Slot, constraint=constraint_of(name), projection=list(_PROJECTION))
    return words_of(ads, now, stale_seconds)


def constraint_of(name: str) -> str:
    """Constraint on ads of the partitionable slots of a node; ``name`` is a host name, short or full."""
    machine = name.lower()
    begins = f'substr(toLower(Machine), 0, {len(machine) + 1}) == "{machine}."'
    return f'PartitionableSlot =?= True && (toLower(Machine) == "{machine}" || {begins})'


def words_of(ads: list[Any], now: int, stale_seconds: int) -> NodeWords:
    """What the partitionable slots of one node say together: a refusal of any, a switch of any, the newest plan that one obeys."""
    if not ads:
        return NodeWords(problem="the collector knows no partitionable slot of it")
    said = [node_words.obedience_of(ad, now, stale_seconds) for ad in ads]
    refusals = [refusal for _, refusal in said if refusal is not None]
    obeyed = [sequence for sequence, _ in said if sequence is not None]
    off = dict.fromkeys(switch for ad in ads for switch in node_words.switched_off(ad))
    return NodeWords(max(obeyed, default=None), refusals[0] if refusals else None, switched_off=tuple(off))
