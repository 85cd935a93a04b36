"""config.d/examples/overheat.py: t1_overheat by the temperatures of a made-up /sys."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import classad2
import pytest

from poolbox.waiting import HANG_SECONDS

PROGRAM = Path(__file__).parents[3] / "config.d" / "examples" / "overheat.py"
NAMES = ("t1_overheat", "t1_HottestCelsius")
UNDEFINED = classad2.Value.Undefined


class Sys:
    """A processor with one core at 50 degrees, and a disk at 95."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sensor("coretemp", 50, "hwmon0")
        self.sensor("nvme", 95, "hwmon1")

    def write(self, path: str, text: str) -> None:
        place = self.folder / "class" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n")

    def sensor(self, driver: str, celsius: float, name: str = "hwmon0") -> None:
        self.write(f"hwmon/{name}/name", driver)
        self.write(f"hwmon/{name}/temp1_input", str(int(celsius * 1000)))

    def look(self, *options: str) -> tuple[int, object, object, str]:
        """Exit status, t1_overheat, t1_HottestCelsius and errors of a run."""
        paths = ["--sys", str(self.folder), "--state", str(self.folder / "state")]
        argv = [sys.executable, "-I", str(PROGRAM), *paths, *options]
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
        )
        ad = classad2.parseOne(done.stdout or "[]")
        overheat, hottest = (ad.eval(n) if n in ad else None for n in NAMES)
        return done.returncode, overheat, hottest, done.stderr


@pytest.fixture
def node(tmp_path: Path) -> Sys:
    return Sys(tmp_path / "sys")


def test_only_processors_count(node: Sys) -> None:
    assert node.look() == (0, False, 50.0, "")
    for kind, hottest in (("x86_pkg_temp", 61.0), ("acpitz", 50.0)):
        node.write("thermal/thermal_zone3/type", kind)
        node.write("thermal/thermal_zone3/temp", "61000")
        assert node.look()[2] == hottest


def test_a_hot_node_is_hot_until_it_has_cooled_down_or_the_ad_is_old(node: Sys) -> None:
    seen = []
    for celsius in (89.9, 90, 85, 80, 79.9, 85, 90):
        node.sensor("coretemp", celsius)
        seen.append(node.look()[1])
    assert seen == [False, True, True, True, False, False, True]
    assert [node.look("--valid-seconds", n)[1] for n in ("0", "180")] == [False, True]


@pytest.mark.parametrize("text", ["", "x", "-", "1e5", "999999999", "-300000", "\u00e9"])
def test_without_a_sensor_it_is_undefined(node: Sys, text: str) -> None:
    node.write("hwmon/hwmon0/temp1_input", text)
    status, overheat, hottest, errors = node.look()
    assert (status, overheat, hottest, "no sensor" in errors) == (1, UNDEFINED, UNDEFINED, True)
