"""``sharectl replay``: cycles of the ledger decided again, as text and JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.ledger.retention import Keep
from sharectl.model import Snapshot, Source
from sharectl.plan.records import CycleRecord
from sharectl.report import plans
from tests.fakes import NOW
from tests.ledgers import PERIOD_SECONDS, busy, law, write
from tests.policies import write_policy
from tests.unit.explain.conftest import CYCLES, Run


@pytest.mark.usefixtures("kept")
def test_the_configuration_of_then_agrees_and_others_do_not(run: Run) -> None:
    same = run("replay", "--json").json
    assert (same["kind"], same["summary"]["agreement_ratio"]) == ("replay", 1.0)
    assert (same["summary"]["identical"], len(same["cycles"])) == (CYCLES, CYCLES)
    assert same["note"] == plans.OPEN_LOOP
    other = run("replay", "--set", "control.max_nodes=2", "--json").json
    assert other["summary"]["agreement_ratio"] == 0.5
    assert [cycle["would"]["targets"] for cycle in other["cycles"]] == [2] * CYCLES
    settings = ("--set", "control.deadband_hs06=100000", "--set", "control.law=pid")
    quiet = run("replay", *settings, "--json").json
    assert quiet["summary"]["would"]["targets"] == 0
    assert {cycle["would"]["reason"] for cycle in quiet["cycles"]} == {"no-group-over"}
    # A period begins with the targets that stood.
    period = ("--from", NOW + 1, "--to", NOW + 2 * PERIOD_SECONDS)
    (second,) = run("replay", *period, "--json").json["cycles"]
    assert (second["would"]["changed_nodes"], second["was"]["changed_nodes"]) == (0, 0)


def made_incomplete(number: int) -> tuple[CycleRecord, Snapshot]:
    silent = (Source("schedd ap-2", 60.0, "no answer"),)
    record = CycleRecord(NOW + number * PERIOD_SECONDS, 61.0, complete=False, sources=silent)
    return record, replace(busy(number), sources=silent)


@pytest.mark.usefixtures("kept")
def test_cycles_of_another_configuration_or_without_nodes_are_named(
    run: Run, tmp_path: Path
) -> None:
    Ledger(tmp_path / PLACE, Keep(nodes_days=1, doubted_cycles=1)).record(
        *made_incomplete(2 * 86_400 // PERIOD_SECONDS)
    )
    for form in ((), ("--json",)):
        ended = run("replay", *form)
        assert (ended.code, ended.out, "nothing to replay" in ended.err) == (1, "", True)
    write(tmp_path, law(max_nodes=4), [busy(300)], "0")
    rows = run("replay", "--json").json["cycles"]
    assert [row["note"] for row in rows] == [*["no-nodes"] * CYCLES, "incomplete", "configuration"]


MISTAKES: tuple[tuple[int, tuple[str, ...]], ...] = (
    (1, ("--from", "2001-01-01", "--to", "2001-02-01")),
    (1, ("--from", "now", "--to", "-1d")),
    (2, ("--set", "groups.cms.pledge_hs06=1000")),
    (2, ("--set", "groups.cms.groups={a: {share: 1}}", "--set", "groups.cms.groups.a.share=0.5")),
    (2, ("--set", "groups={cms: {pledge_hs06: 1}}")),
    (2, ("--set", "pledges.from=yaml")),
    (2, ("--set", "state_directory=/tmp/x")),
)


@pytest.mark.usefixtures("kept")
def test_messages(run: Run, golden: Callable[[str, str], None]) -> None:
    lines = []
    for code, words in MISTAKES:
        ended = run("replay", *words)
        assert (ended.code, ended.out) == (code, ""), words
        message = ended.err[ended.err.index("sharectl") :] if code == 1 else ended.err
        message = "\n".join(
            line for line in message.splitlines() if not line.startswith(("usage", " "))
        )
        lines.append(f"{' '.join(words)!r}\n{message}\n")
    golden("explain/replay-messages.txt", "".join(lines))


@pytest.mark.usefixtures("kept")
def test_a_policy_is_replayed_before_it_acts(run: Run, tmp_path: Path) -> None:
    """A policy with weight 1 of the error is the law of then; one without weights moves nothing."""
    training = {"features": ["error"], "weights": [1.0]}
    policy = f"control.policy={write_policy(tmp_path, **training)}"
    learned = ("replay", "--set", "control.law=learned")
    same = run(*learned, "--set", policy, "--json").json
    assert (same["summary"]["agreement_ratio"], same["decides"][:11]) == (1.0, "law learned")
    write_policy(tmp_path, features=[], weights=[])
    none = run(*learned, "--set", policy, "--json").json
    assert none["summary"]["would"]["targets"] == 0
    ended = run(*learned)
    assert (ended.code, "control.law: learned acts by a policy" in ended.err) == (78, True)


@pytest.mark.usefixtures("kept")
def test_settings(run: Run) -> None:
    """Mistakes come at once, and all keys are accepted."""
    keys = ("foo", "contrl.x\x1b=3", "control.law=pdi")
    ended = run("replay", *(word for key in keys for word in ("--set", key)))
    assert (ended.code, ended.err.count("\n"), "\x1b" in ended.err) == (2, 4, False)
    keys = ("control.law=ewma", "validity_seconds=600", "groups.cms.max_lent_hs06=5")
    settings = [word for key in (*keys, "groups.cms.control.law=pid") for word in ("--set", key)]
    assert run("replay", *settings).code == 0
