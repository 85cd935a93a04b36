"""Quotas on which HTCondor's negotiator ends as it starts: they are no weights."""

from __future__ import annotations

import re

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.condor.negotiator import groups_of_knobs
from sharectl.errors import InputError
from tests.quota_knobs import knobs_of

NAMES = "GROUP_NAMES = alpha, beta, Gamma, beta.x, lost.y\n"
BETA = "GROUP_QUOTA_DYNAMIC_beta = 0.4\n"
ENDING = [
    "GROUP_QUOTA_DYNAMIC_alpha = 60.0",
    "GROUP_QUOTA_DYNAMIC_alpha = -0.1",
    "GROUP_QUOTA_DYNAMIC_alpha = 30 * 2",
    "GROUP_QUOTA_DYNAMIC_beta.x = 1.01",
    "GROUP_QUOTA_alpha = -1",
    "GROUP_QUOTA_alpha = 2147483648",
    "GROUP_QUOTA_alpha = many",
    'GROUP_QUOTA_alpha = "4"',
    "GROUP_QUOTA_GAMMA = 1_000",
    "GROUP_ACCEPT_SURPLUS_alpha = yes",
]
QUOTAS = {
    # Lines beside BETA -> weighted slots of 1000.
    "GROUP_QUOTA_DYNAMIC_alpha = 0.6": {"alpha": 600, "beta": 400},
    "GROUP_QUOTA_DYNAMIC_alpha = 1.0": {"alpha": 1000 / 1.4, "beta": 400 / 1.4},
    "GROUP_QUOTA_DYNAMIC_alpha = 3.0 / 5": {"alpha": 600, "beta": 400},
    "GROUP_QUOTA_alpha = 10 * 4": {"alpha": 40, "beta": 384},
    "GROUP_QUOTA_alpha = 5000": {"alpha": 5000, "beta": 0},
    # The dynamic quota is not read where there is a static one.
    "GROUP_QUOTA_alpha = 40\nGROUP_QUOTA_DYNAMIC_alpha = 60": {"alpha": 40, "beta": 384},
    # Not a number is not below 0, and not above: as if it were not there.
    "GROUP_QUOTA_alpha = nan\nGROUP_QUOTA_DYNAMIC_alpha = 0.5": {"alpha": 500, "beta": 400},
    # Neither is the quota of a group that is not in GROUP_NAMES, or within one that is not.
    "GROUP_QUOTA_DYNAMIC_other = 60": {"beta": 400},
    "GROUP_QUOTA_DYNAMIC_lost.y = 60": {"beta": 400},
}


@pytest.mark.parametrize("line", ENDING)
def test_the_negotiator_ends_on_them(line: str) -> None:
    with pytest.raises(InputError) as raised:
        groups_of_knobs(knobs_of(f"{NAMES}{BETA}{line}\n"), "f", 1000.0)
    (problem,) = raised.value.problems
    knob, _, group = line.partition(" =")[0].rpartition("_")
    group = group.lower()
    assert problem.startswith(f"f: {knob}_{group} is ")
    assert f"HTCondor's negotiator ends on it, so {group} has no valid quota" in problem


@pytest.mark.parametrize(("lines", "quotas"), QUOTAS.items())
def test_quotas_that_it_takes(lines: str, quotas: dict[str, float]) -> None:
    groups = groups_of_knobs(knobs_of(f"{NAMES}{BETA}{lines}\n"), "f", 1000.0)
    assert {name: group.weight for name, group in groups.items()} == pytest.approx(quotas)


SPEC = BoxSpec((ExecutePoint("wn-001.example.org", 8),), access_points=("ap-1.example.org",))


@pytest.mark.pool
@pytest.mark.semantics
def test_a_negotiator_reads_them_so(pool: Box) -> None:
    """It is run by hand for each, so that it may end."""
    host = pool.spec.central_point
    binary = pool.run(["condor_config_val", "NEGOTIATOR"], host=host).stdout.strip()

    main_file = pool.run(["sh", "-c", "echo $CONDOR_CONFIG"], host=host).stdout.strip()
    folder = pool.shared_directory / "negotiator"
    folder.mkdir()

    def says(lines: str) -> str:
        (folder / "condor_config").write_text(
            f"include : {main_file}\n{NAMES}{BETA}{lines}\nLOCAL_CONFIG_DIR =\n"
            f"SPOOL = {folder}\nLOG = {folder}\nLOCK = {folder}\nNEGOTIATOR_INTERVAL = 600\n"
        )
        own = {"CONDOR_CONFIG": str(folder / "condor_config")}
        # Gamma is the last group, and has no quota.
        for seconds in ("2", "20", "120"):
            command = ["timeout", seconds, binary, "-f", "-t"]
            done = pool.run(command, 180, host, check=False, environment=own)
            text = done.stdout + done.stderr
            if 'ERROR "' in text or 'no quota specified for group "Gamma"' in text:
                return text
        return text

    for lines in ENDING:
        assert re.search('ERROR ".*GROUP_', says(lines)), lines
    for lines in QUOTAS:
        text = says(lines)
        assert 'group "Gamma"' in text, lines
        assert 'ERROR "' not in text, lines
