from __future__ import annotations

import pytest

from sharectl.condor.expressions import MY, TARGET, UNSCOPED, Reference, references


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MY.Cpus >= 8", [(MY, "Cpus")]),
        ("TARGET.RequestCpus == RequestCpus", [(TARGET, "RequestCpus"), (UNSCOPED, "RequestCpus")]),
        ("my.a && Target.b", [(MY, "a"), (TARGET, "b")]),
        ("MY.a isnt true || error", [(MY, "a")]),
        ('strcat("MY.x \\" y", MY.z)', [(MY, "z")]),
        ("ifThenElse(isString(TARGET.AcctGroup),1,2)", [(TARGET, "AcctGroup")]),
        ("MY.list[0] + 5.000000000000000E-01", [(MY, "list")]),
        ("MY.'odd name' + 'other one'", [(MY, "odd name"), (UNSCOPED, "other one")]),
        ("a.b.c", [(UNSCOPED, "a")]),
        ("time() < MY.until", [(MY, "until")]),
        ("MY.a + MY.a", [(MY, "a")]),
        ("8", []),
    ],
)
def test_references(expression: str, expected: list[tuple[str, str]]) -> None:
    assert references(expression) == tuple(Reference(scope, name) for scope, name in expected)
