"""Two installations that publish to one place: a pair of central managers, and strangers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest

from sharectl.cycle.cycle import CycleResult, run_cycle
from sharectl.cycle.publication import Publishing, are_partners, load_state, writer_of
from sharectl.model import Disabled
from tests.fakes import NOW, FakePublisher
from tests.unit.cycle.test_publication import CONFIG, OFF, PERIOD, Cycles

FIRST, SECOND = (writer_of(f"cm-{n}.example.org", Path("/var/lib/sharectl")) for n in (1, 2))
STRANGER = writer_of("cm-1.example.org", Path("/home/ann/a test"))


def installation(writer: str, place: Optional[FakePublisher] = None) -> Cycles:
    """Installation with a state of its own, at the place of another one."""
    own = FakePublisher(writer=writer)
    if place is not None:
        own = replace(place, writer=writer)  # it shares the lists
    return Cycles(publishers=[own], writer=writer)


def both(second: str) -> tuple[Cycles, Cycles]:
    """Two installations of one place; the first has published in the first period."""
    one = installation(FIRST)
    assert one.cycle(0).problems == ()
    return one, installation(second, one.publishers[0])


def holder(world: Cycles) -> str:
    """Writer of the plan that stands."""
    publisher = world.publishers[0]
    return publisher.writers[publisher.plans[-1].sequence]


def is_left(done: CycleResult) -> bool:
    """Return whether the cycle left the other one's plan, and said so."""
    assert done.record is not None
    left = done.publication.is_left
    assert (done.record.reason == "foreign") == left
    if left:
        assert done.publication.places == ()
        assert "stays: nothing is published meanwhile" in done.problems[0]
    return left


def test_a_name_is_one_line_of_ascii_and_partners_have_one_state_directory() -> None:
    assert STRANGER == "cm-1.example.org:/home/ann/a%20test"
    assert writer_of("cm", Path("/\xfc\n")).isascii()
    assert [are_partners(FIRST, other) for other in (SECOND, STRANGER)] == [True, False]


def test_a_stranger_publishes_nothing_while_a_valid_plan_stands_and_remembers_no_targets() -> None:
    one, test = both(STRANGER)
    for number in range(1, 5):
        done = test.cycle(number)
        assert is_left(done)
        assert FIRST in done.problems[0]
        assert "`sharectl disable` for it on cm-1.example.org" in done.problems[0]
        assert one.cycle(number).problems == (), "the first one goes on, and sees nothing"
    assert (test.state.state.standing, test.audit.records) == ((), [])
    assert all(node.target is None for node in test.history.records[-1].nodes)
    assert not is_left(test.cycle(8)), "its plan has run out"
    assert holder(one) == STRANGER
    assert is_left(one.cycle(8))


def test_a_partner_takes_over_in_its_first_cycle_and_says_so_once() -> None:
    one, two = both(SECOND)
    (problem,) = two.cycle(1).problems
    assert "taken over: if its cycles go on" in problem
    assert (holder(one), two.cycle(2).problems, two.cycle(3).problems) == (SECOND, (), ())
    # Back again after hours, when its own plan has run out.
    two.cycle(9)
    assert "taken over" in one.cycle(10).problems[0]
    assert (holder(one), one.cycle(11).problems) == (FIRST, ())


def test_a_partner_that_is_back_soon_takes_over_once_the_other_one_has_ended() -> None:
    one, two = both(SECOND)
    two.cycle(1)
    assert is_left(one.cycle(2)), "both may publish"
    assert "taken over" in one.cycle(3).problems[0]
    assert (holder(one), one.cycle(4).problems) == (FIRST, ())


def test_of_two_partners_that_both_publish_one_yields_for_as_long_as_the_other_goes_on() -> None:
    one, two = both(SECOND)
    two.cycle(1)
    for number in range(2, 12):
        assert is_left(one.cycle(number))
        assert two.cycle(number).problems == ()
    assert is_left(one.cycle(12)), "renewed after its last look"
    assert not is_left(one.cycle(13))


def test_a_pair_with_one_state_has_one_plan() -> None:
    one, two = both(SECOND)
    two.state = one.state
    for number in (1, 2, 3):
        assert one.cycle(number).problems == two.cycle(number).problems == ()


@pytest.mark.parametrize("writer", [SECOND, STRANGER])
def test_disable_takes_the_targets_of_another_away_and_says_who_publishes(writer: str) -> None:
    one, _ = both(writer)
    other = installation(writer, one.publishers[0])
    before, _ = load_state(other.state, NOW + 60)
    done = Publishing(CONFIG, other.ports(), NOW + 60).withdraw(OFF, before)
    (problem,) = map(str, done.errors)
    assert "replaced by one without targets" in problem
    assert "run `sharectl disable` for it on" in problem
    assert one.stands() == set()
    assert one.cycle(1).publication.is_left == (writer == STRANGER)
    # A partner's withdrawal is nothing to leave, nor to speak of when both are switched off.
    if writer == SECOND:
        one.switch.said = Disabled("cooling", "ann@cm", NOW)
        one.cycle(2)
        again = Publishing(CONFIG, other.ports(), NOW + 3 * PERIOD).withdraw(OFF, before)
        assert again.errors == ()


def test_a_plan_that_no_node_believes_is_nobodys() -> None:
    one, test = both(STRANGER)
    place = one.publishers[0]
    place.plans[-1] = replace(place.plans[-1], valid_until=NOW + 2 * 86_400)
    assert test.cycle(1).problems == ()
    nameless = Cycles(publishers=[replace(place, writers={})], writer=STRANGER)
    assert run_cycle(CONFIG, nameless.ports(), NOW + PERIOD).problems == ()


def test_one_that_observes_leaves_a_partners_plan_for_as_long_as_that_goes_on() -> None:
    one, two = both(SECOND)
    two.cycle(1)
    observing = replace(CONFIG, observes=True)
    for number in (2, 3, 4):
        (problem,) = one.cycle(number, observing).problems
        assert "stays: nothing is published meanwhile" in problem
        two.cycle(number)
        assert holder(one) == SECOND
    assert one.publishers[0].plans[-1].targets
