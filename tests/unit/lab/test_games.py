"""Games against the plan have no winner: the quick ones of `bench/games.py`, a smaller pool."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

import pytest

from bench.games import GAMES, Game, figures_of, played

BY_NAME = {game.name: game for game in GAMES}
SMALL = (50, 32)
MOST_LATE_PERCENT, MOST_LOST_PERCENT, MOST_WAIT_RATIO = 0.5, 1.0, 1.5


def small(name: str) -> Game:
    return replace(BY_NAME[name], nodes=SMALL)


@pytest.mark.parametrize(
    "name", ["whole nodes", "many sizes", "proven sizes", "quick phases", "grace kept on by sizes"]
)
def test_phantoms_idle_few_cores(name: str) -> None:
    # A node of 32 jobs of two hours idles for 195 core-hours until the last has ended: 1.2 % of the
    # small pool in half a day.
    is_large = name == "whole nodes"
    score, _, play = played(BY_NAME[name] if is_large else small(name), 1 if is_large else 0.5, 1)
    assert sum(play.idle) > 0
    assert score.late <= MOST_LATE_PERCENT
    assert score.lost <= MOST_LOST_PERCENT


def test_honest_jobs_after_phantoms_of_their_size_start_in_time() -> None:
    score, honest, _ = played(BY_NAME["one size before"], 1.0, 1)
    assert honest.waits[0] > 0
    assert score.wait_ratio <= MOST_WAIT_RATIO


def test_jobs_that_die_at_once_idle_no_more_than_without_sharectl() -> None:
    """HTCondor alone gives each job that dies its cores until the next negotiation cycle."""
    game = small("crash loop")
    alone, steered = (figures_of(game, game.play, 0.5, 1, how) for how in ("nothing", "live"))
    assert alone.power["play"] > 0
    assert mean(steered.idle) - mean(alone.idle) <= MOST_LOST_PERCENT
