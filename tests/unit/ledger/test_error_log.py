from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.errors import InputError
from sharectl.ledger import error_log
from sharectl.model import GroupUsage
from sharectl.shares.errors import group_errors
from tests.logs import errors_in


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    log = tmp_path / "shares_Error.log"
    usage = {
        "alice": GroupUsage(single_cores=3, power_hs06=30, pending_single_jobs=5),
        "cms": GroupUsage(multi_cores=8, power_hs06=80, pending_multi_jobs=2),
    }
    errors = group_errors(usage, {"alice": 100.0, "cms": 100.0})
    written = [row for moment in (1000, 1010) for row in error_log.rows(moment, errors)]
    error_log.append(log, written[:2], 10**6, 1)
    error_log.append(log, written[2:], 10**6, 1)
    read = errors_in(log)
    assert [(moment, error.group, error.usage.power_hs06) for moment, error in read] == [
        (1000, "alice", 30.0),
        (1000, "cms", 80.0),
        (1010, "alice", 30.0),
        (1010, "cms", 80.0),
    ]
    assert [row for moment, error in read for row in error_log.rows(moment, [error])] == written


def test_every_wrong_row_is_named_with_its_line(tmp_path: Path) -> None:
    log = tmp_path / "shares_Error.log"
    good = "1627101243 cms 87100 -542 0 4888 -3321 -29403 0 12784"
    log.write_text(
        f"{error_log.HEADER}\n{good}\n1627101243 cms 1 2\n{good.replace('4888', 'nan')}\n"
    )
    with pytest.raises(InputError) as refused:
        errors_in(log)
    assert [problem.split(": ")[0] for problem in refused.value.problems] == [
        f"{log}:3",
        f"{log}:4",
    ]


@pytest.mark.parametrize("content", [None, b"\xff\xfe\n"])
def test_a_log_that_is_not_text_is_refused(tmp_path: Path, content: bytes | None) -> None:
    log = tmp_path / "shares_Error.log"
    if content is not None:
        log.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        errors_in(log)
