from __future__ import annotations

from decimal import Decimal
from typing import Optional

import pytest

from sharectl.config.fields import number_in, plain, unit_of


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("17m", "seconds", "1020"),
        ("17 Minutes", "seconds", "1020"),
        ("1h 30m", "seconds", "5400"),
        ("1:30:00", "seconds", "5400"),
        ("2 d", "seconds", "172800"),
        ("87.1 kHS06", "hs06", "87100"),
        ("87.1k", "hepscore23", "87100"),
        ("5 HEPscore23", "hs06", "5"),
        ("10 MiB", "bytes", "10485760"),
        ("10 MB", "bytes", "10000000"),
        ("1_000", None, "1000"),
        ("87,100.5", "hs06", "87100.5"),
        ("1e3", None, "1000"),
        ("-5", None, "-5"),
        ("17m", "hs06", "17000000"),
        ("17m", None, None),
        ("17 MiB", "seconds", None),
        ("1,5", "hs06", None),
        ("", "seconds", None),
        ("5 5 m s", "seconds", None),
        ("9" * 61, None, None),
        ("1e99", None, "1" + "0" * 99),
    ],
)
def test_a_number_with_its_unit_is_understood(
    text: str, unit: Optional[str], number: Optional[str]
) -> None:
    assert number_in(text, unit) == (None if number is None else Decimal(number))


def test_plain_numbers_have_no_exponent() -> None:
    assert [plain(Decimal(text)) for text in ("1E+3", "87100.0", "0.50", "0")] == [
        "1000",
        "87100",
        "0.5",
        "0",
    ]


def test_the_unit_of_a_key() -> None:
    assert [unit_of(key) for key in ("validity_seconds", "pledge_hs06", "max_nodes")] == [
        "seconds",
        "hs06",
        None,
    ]
