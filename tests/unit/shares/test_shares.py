from __future__ import annotations

import pytest

from sharectl.ledger import error_log, jobs_file
from sharectl.model import GroupUsage
from sharectl.plan.nodes import ALL_NODES
from sharectl.shares.errors import group_errors, usage_by_group

T0 = 1627101243

SEED_ROWS = """\
1627101243 cms 87100 -542 0 4888 -3321 -29403 0 12784
1627101243 atlas 105300 -236 1608 4720 -489 -32021 4 2572
1627101243 alice 71400 1150 4170 1432 12594 -8785 242 410
""".splitlines()
"""The three rows that seed 004 prints."""

REST_PLEDGE_HS06 = 236200
REST_CORES, REST_POWER_HS06 = 14354, 156686.3
"""All other groups of that farm: with them power/pledge is 0.700553, cores/pledge 0.062344."""


FRACTION_HS06 = {"alice": -0.8}
"""Fractions that the printed numbers do not show: only with them the rows agree on one ratio."""


def _jobs_of_the_seed() -> list[str]:
    """Rows of a jobs file with the cores, the power and the pending jobs of the three rows."""
    lines = []
    for row in SEED_ROWS:
        _, group, pledge, _, single, multi, _, power_minus_pledge, pending_single, pending_multi = (
            row.split()
        )
        power_hs06 = int(pledge) + int(power_minus_pledge) + FRACTION_HS06.get(group, 0.0)
        power = power_hs06 / (int(single) + int(multi))
        lines += [f"2 wn-1 {group} 60 1 {power!r}"] * int(single)
        lines += [f"2 wn-1 {group} 60 8 {power!r}"] * (int(multi) // 8)
        lines += [f"1 PEND {group} 0 1 10"] * int(pending_single)
        lines += [f"1 PEND {group} 0 8 10"] * int(pending_multi)
    return [*lines, *[f"2 wn-2 rest 60 1 {REST_POWER_HS06 / REST_CORES!r}"] * REST_CORES]


def test_the_seeds_rows_come_out_of_their_own_cores_and_powers() -> None:
    pledges = {"cms": 87100.0, "atlas": 105300.0, "alice": 71400.0, "rest": float(REST_PLEDGE_HS06)}
    rows = jobs_file.parse(_jobs_of_the_seed(), "seed", frozenset(pledges))
    snapshot = jobs_file.as_snapshot(rows, T0, ALL_NODES)
    errors = group_errors(usage_by_group(snapshot, pledges), pledges)
    assert error_log.rows(T0, errors)[:3] == SEED_ROWS


@pytest.mark.parametrize(
    ("power", "written"),
    [(2.9999999999, 3), (-2.9999999999, -3), (2.9, 2), (-2.9, -2), (0.0, 0), (-0.4, 0)],
)
def test_errors_are_cut_towards_zero_but_not_by_the_last_bits_of_a_sum(
    power: float, written: int
) -> None:
    errors = group_errors({"a": GroupUsage(power_hs06=power + 100)}, {"a": 100.0})
    (row,) = error_log.rows(T0, errors)
    assert row.split()[7] == str(written)


def test_a_group_without_jobs_is_owed_its_whole_share() -> None:
    usage = {"a": GroupUsage(single_cores=10, power_hs06=100.0)}
    a, b = group_errors(usage, {"a": 1.0, "b": 3.0})
    assert (a.error_hs06, b.error_hs06) == (75.0, -75.0)
    assert (a.error_cores, b.error_cores) == (7.5, -7.5)


def test_no_pledge_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="above 0"):
        group_errors({}, {"a": 0.0})
