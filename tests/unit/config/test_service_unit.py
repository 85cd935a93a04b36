from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest

from sharectl.config.advice import absent, protected
from sharectl.config.load import parse
from sharectl.config.model import Config
from sharectl.config.service_unit import SERVICE, SHIPPED, Unit, unit_of

CHECKOUT = Path(__file__).parents[3]


def config(more: str) -> Config:
    return parse(f"groups: {{cms: {{pledge_hs06: 1}}}}\n{more}\n", "F")


def installed(folder: Path, *drop_ins: str, unit: Optional[str] = None) -> Unit:
    """Unit that ``folder`` has, which is the shipped one unless ``unit`` is another."""
    text = (CHECKOUT / "systemd" / SERVICE).read_text() if unit is None else unit
    (folder / SERVICE).write_text(text)
    (folder / f"{SERVICE}.d").mkdir(exist_ok=True)
    for number, lines in enumerate(drop_ins):
        (folder / f"{SERVICE}.d" / f"{number}.conf").write_text(lines)
    found = unit_of([folder], [])
    assert found is not None
    return found


def test_the_unit_lets_cycles_write_where_they_do_by_default(tmp_path: Path) -> None:
    unit = installed(tmp_path)
    assert unit.installed
    assert protected(config(""), unit) == []
    assert absent(config(""), unit) == [], "systemd makes its StateDirectory"


def test_what_it_protects_is_named_with_the_line_to_write(tmp_path: Path) -> None:
    shared = config("publish: [{file: /shared/a/sharectl.txt}]")
    (line,) = protected(shared, installed(tmp_path))
    assert line.startswith(
        f"publish[0].file: {tmp_path}/{SERVICE} lets cycles write nothing to /shared/a "
    )
    assert "(ProtectSystem=strict); `systemctl edit sharectl.service`" in line
    assert line.endswith("ReadWritePaths=/shared/a")
    assert (
        protected(shared, installed(tmp_path, "[Service]\nReadWritePaths=-/srv \\\n  /shared\n"))
        == []
    )
    (line,) = protected(
        shared, installed(tmp_path, "[Service]\nReadWritePaths=/shared\nReadWritePaths=\n")
    )
    assert "ProtectSystem=strict" in line


@pytest.mark.parametrize(
    ("path", "setting", "remedy"),
    [
        ("/home/x/t", "ProtectHome=yes", "name a folder elsewhere"),
        ("/var/tmp/x/t", "PrivateTmp=yes", "name a folder elsewhere"),  # noqa: S108 - a name
        ("/var/lib/other/t", "ProtectSystem=strict", "ReadWritePaths=/var/lib/other"),
    ],
)
def test_each_protection_has_its_remedy(
    tmp_path: Path, path: str, setting: str, remedy: str
) -> None:
    unit = installed(tmp_path)
    (line,) = protected(config(f"history: {{jobs_file: {path}}}"), unit)
    assert line.startswith("history.jobs_file: ")
    assert f"({setting}); " in line
    assert line.endswith(remedy)


def test_a_unit_without_protections_allows_all(tmp_path: Path) -> None:
    text = "[Unit]\nProtectSystem=strict\n[Service]\n# ProtectSystem=strict\nProtectSystem=full\n"
    unit = installed(tmp_path, unit=text)
    assert protected(config("publish: [{file: /shared/t}]"), unit) == []
    (line,) = protected(config("publish: [{file: /etc/t}]"), unit)
    assert "ProtectSystem=full" in line


def test_the_first_folder_of_systemd_counts_and_without_a_unit_the_shipped_one(
    tmp_path: Path,
) -> None:
    for name, value in (("etc", "no"), ("usr", "strict")):
        (tmp_path / name).mkdir()
        installed(tmp_path / name, unit=f"[Service]\nProtectSystem={value}\n")
    unit = unit_of([tmp_path / "etc", tmp_path / "usr"], [])
    assert unit is not None
    assert unit.file == tmp_path / "etc" / SERVICE
    shipped = unit_of([tmp_path / "none"])
    assert shipped is not None
    assert not shipped.installed
    assert shipped.file in SHIPPED
    assert unit_of([tmp_path / "none"], []) is None
    assert protected(config(""), None) == []
