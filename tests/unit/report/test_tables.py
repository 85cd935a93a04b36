from __future__ import annotations

from sharectl.report.tables import number


def test_no_number_is_minus_zero() -> None:
    assert [number(value) for value in (-0.01, 0.0, -0.06)] == ["0.0", "0.0", "-0.1"]
