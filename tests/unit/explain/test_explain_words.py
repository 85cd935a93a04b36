"""Words of `sharectl explain` that new users stumbled over."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.explain.what_if import extent_of
from sharectl.model import Target
from tests.ledgers import busy, law, write


def test_one_node_is_not_nodes() -> None:
    targets = [Target(f"wn-{k}", "alice", 8, "cms", 8) for k in range(2)]
    assert extent_of(targets[:1], "alice") == "gives on 1 node"
    assert extent_of(targets, "cms") == "receives on 2 nodes"


def test_the_jobs_of_no_group_have_no_pledge(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "sharectl.yaml"
    config.write_text(
        f"groups: {{alice: {{pledge_hs06: 71400}}, atlas: {{pledge_hs06: 105300}}, cms: "
        f"{{pledge_hs06: 87100}}}}\n"
        f"control: {{strategy: pair, max_nodes: 4}}\nstate_directory: {tmp_path}\n",
        encoding="utf-8",
    )
    write(tmp_path, law(max_nodes=4), [busy(0)])
    assert main(["explain", "group", "Other", "--config", str(config)]) == 1
    said = capsys.readouterr().err
    assert "group 'other' has no pledge" in said
    assert "alice" in said
