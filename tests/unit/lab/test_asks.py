from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sharectl.condor.ad_rows import row_of
from sharectl.condor.ads import ad_of_long
from sharectl_lab.scenarios.asks import values_of_slots


class FakeCollector:
    """Ads of slots, with no more of them than is asked for."""

    def __init__(self, *ads: str) -> None:
        self._ads = [ad_of_long(ad) for ad in ads]

    def query(self, *_: Any, projection: Sequence[str], **__: Any) -> list[Any]:
        wanted = {name.lower() for name in projection}
        return [
            ad_of_long(
                "\n".join(
                    f"{name} = {text}"
                    for name, text in row_of(ad).items()
                    if name in wanted or not wanted
                )
            )
            for ad in self._ads
        ]


@pytest.mark.parametrize(
    ("ads", "values"),
    [
        (("A = true", "A = true"), [("true",)]),
        (('A = Machine == "x"\nMachine = "x"', 'A = Machine == "y"\nMachine = "y"'), [("true",)]),
        (('A = Machine == "x"\nMachine = "x"', "A = Load < 5\nLoad = 7"), [("false",), ("true",)]),
        (("A = true", "A = 1 < Lacking"), [("",), ("true",)]),
        (("A = undefined", "B = 1"), [("",)]),
        (('A = "a"', "A = 2.5"), [('"a"',), ("2.5",)]),
        (("A = 1 / 0", "A = { 1 }"), [("",)]),
    ],
)
def test_expressions_are_compared_by_their_values(
    ads: tuple[str, ...], values: list[tuple[str]]
) -> None:
    assert values_of_slots(FakeCollector(*ads), ["A"]) == values
