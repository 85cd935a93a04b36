"""Addresses of daemons, and why none answers there."""

from __future__ import annotations

import socket

import htcondor2

from sharectl.condor.daemons import schedd_questions, why_silent

FAILED = htcondor2.HTCondorException("Failed communication with collector.")


def test_where_nobody_listens_and_where_is_no_host() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        said = why_silent(f"<{place}?sock=x>", "SCHEDD", FAILED)
        assert said.startswith(f"nobody listens at {place}: SCHEDD does not run there")
    assert why_silent("nowhere.invalid, other.invalid", "COLLECTOR", FAILED).startswith(
        "no such host: nowhere.invalid ("
    )
    assert why_silent("127.0.0.1:99999", "COLLECTOR", FAILED)


def test_a_name_forges_no_line_and_has_an_end() -> None:
    names = ["ap-1.example.org", "x\nsharectl: all is well\x1b[2J", "y" * 10**6]
    questions = schedd_questions([{"Name": name} for name in names], 1, lambda *_: None)
    good, forged, long = questions
    assert good == "schedd ap-1.example.org"
    assert forged == r"schedd x\nsharectl: all is well\x1b[2J"
    assert len(long) < 300
