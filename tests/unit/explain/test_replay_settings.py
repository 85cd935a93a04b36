"""Keys of the configuration that a replay takes with ``--set``, and those that it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.cli.main import main
from tests.ledgers import busy, law, write

CONFIG = """
groups: {{alice: {{pledge_hs06: 71400}}, atlas: {{pledge_hs06: 105300}}, cms: {{pledge_hs06: 87100}}}}
control: {{strategy: pair, max_nodes: 4}}
state_directory: {folder}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sharectl.yaml"
    path.write_text(CONFIG.format(folder=tmp_path), encoding="utf-8")
    write(tmp_path, law(max_nodes=4), [busy(0)])
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = main([str(argument) for argument in ("replay", *arguments)])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "groups.cms.pledge_hs06=1000"), "has no effect here"),
        (("--set", "groups.cms.pledge_hs06=1000"), "write --pledges configured"),
        (
            (
                "--set",
                "groups.cms.groups={prod: {share: 1}}",
                "--set",
                "groups.cms.groups.prod.share=0.5",
            ),
            "write --pl",
        ),
        (("--set", "pledges.from=yaml"), "write --pledges configured"),
        (
            ("--set", "state_directory=/tmp/x"),
            "a replay takes control, validity_seconds, groups.NAME.control,",
        ),
        (("--pledges", "configured", "--set", "pool.mode=jobs"), "pool.mode has no effect here"),
    ],
)
def test_a_key_without_effect_is_refused(
    capsys: pytest.CaptureFixture[str], config: Path, arguments: tuple[str, ...], said: str
) -> None:
    code, err = run(capsys, "--config", config, *arguments)
    assert (code, said in err) == (2, True), err


def test_all_that_a_replay_takes_is_accepted(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    settings = [
        "control.law=ewma",
        "validity_seconds=600",
        "groups.cms.max_lent_hs06=5",
        "groups.cms.control.law=pid",
    ]
    sets = [part for setting in settings for part in ("--set", setting)]
    assert run(capsys, "--config", config, *sets)[0] == 0
    sets += ["--pledges", "configured", "--set", "groups.cms.pledge_hs06=1000"]
    assert run(capsys, "--config", config, *sets)[0] == 0


def test_all_settings_that_are_wrong_are_named_at_once_as_a_wrong_usage(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    code, err = run(
        *(
            capsys,
            "--config",
            config,
            "--set",
            "foo",
            "--set",
            "contrl.x=3",
            "--set",
            "control.law=pdi",
        )
    )
    assert code == 2
    for said in ('--set "foo": write KEY=VALUE', "contrl", "pdi"):
        assert said in err, said


def test_a_wrong_configuration_is_no_wrong_usage(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("groups: {}\n", encoding="utf-8")
    assert run(capsys, "--config", config, "--with", other, "--set", "control.law=pid")[0] == 78
