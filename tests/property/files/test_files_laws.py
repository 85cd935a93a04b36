"""Laws of files that grow line by line."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sharectl.files import files

lengths = st.lists(st.integers(0, files.PAGE_BYTES - 20) | st.integers(0, 40), max_size=12)


@given(lengths, lengths)
def test_no_line_lies_across_two_pages_and_every_line_is_json(
    first: list[int], second: list[int]
) -> None:
    """Lines come back in order, with nothing but filler between them, and none crosses a page."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        for batch in (first, second):
            files.append_lines(
                path, [json.dumps({"x": "x" * length}) for length in batch], filler="{}"
            )
        content = path.read_bytes()
    position, found = 0, []
    for line in content.splitlines(keepends=True):
        assert position // files.PAGE_BYTES == (position + len(line) - 1) // files.PAGE_BYTES
        position += len(line)
        found.append(json.loads(line))
    assert [len(said["x"]) for said in found if said] == [*first, *second]
