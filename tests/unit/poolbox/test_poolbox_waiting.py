from __future__ import annotations

import pytest

from poolbox.errors import BoxFailedError, CommandError, DeadlineError
from poolbox.waiting import wait_for


def test_the_first_true_value_is_the_answer() -> None:
    answers = iter([[], None, ["seen"]])
    assert wait_for(lambda: next(answers), 10, "an answer") == ["seen"]


def test_at_the_deadline_it_says_what_was_awaited() -> None:
    with pytest.raises(DeadlineError, match=r"^waited 0 s in vain: pigs fly$"):
        wait_for(lambda: False, 0, "pigs fly")


def test_a_command_that_fails_counts_as_not_yet_and_is_shown_at_the_deadline() -> None:
    def failing() -> bool:
        raise CommandError(["condor_q"], 1, "", "no schedd")

    with pytest.raises(DeadlineError, match=r"(?s)pigs fly\ncondor_q exited with 1: no schedd"):
        wait_for(failing, 0, "pigs fly")


def test_a_box_that_has_ended_is_not_waited_for() -> None:
    def ended() -> bool:
        raise BoxFailedError("gone")

    with pytest.raises(BoxFailedError, match="gone"):
        wait_for(ended, 600, "pigs fly")


def test_any_other_error_is_the_predicates_own() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_for(lambda: 1 // 0, 600, "pigs fly")
