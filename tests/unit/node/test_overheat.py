"""config.d/examples/overheat.py: what it publishes of the temperatures of a made-up /sys."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Union

import classad2
import pytest

PROGRAM = Path(__file__).parents[3] / "config.d" / "examples" / "overheat.py"
Celsius = Union[float, str]


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """A processor with one core at 50 degrees, and a disk at 95."""
    folder = tmp_path / "sys"
    sensor(folder, "coretemp", 50, "hwmon0")
    sensor(folder, "nvme", 95, "hwmon1")
    return folder


def sensor(folder: Path, driver: str, celsius: Celsius, name: str) -> None:
    place = folder / "class" / "hwmon" / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "name").write_text(f"{driver}\n")
    text = celsius if isinstance(celsius, str) else f"{int(celsius * 1000)}\n"
    (place / "temp1_input").write_text(text)


def look(sysfs: Path, *options: str) -> tuple[int, object, object, str]:
    """Exit status, t1_overheat, t1_HottestCelsius and errors of a run."""
    paths = ["--sys", str(sysfs), "--state", str(sysfs / "state")]
    argv = [sys.executable, "-I", str(PROGRAM), *paths, *options]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    if not done.stdout:
        return done.returncode, None, None, done.stderr
    ad = classad2.parseOne(done.stdout)
    return done.returncode, ad.eval("t1_overheat"), ad.eval("t1_HottestCelsius"), done.stderr


def test_only_processors_count(sysfs: Path) -> None:
    assert look(sysfs) == (0, False, 50.0, "")
    zone = sysfs / "class" / "thermal" / "thermal_zone3"
    zone.mkdir(parents=True)
    (zone / "type").write_text("x86_pkg_temp\n")
    (zone / "temp").write_text("61000\n")
    assert look(sysfs)[2] == 61.0
    (zone / "type").write_text("acpitz\n")
    assert look(sysfs)[2] == 50.0


def test_a_hot_node_is_hot_until_it_has_cooled_down(sysfs: Path) -> None:
    seen = []
    for celsius in (89.9, 90, 85, 80, 79.9, 85, 90):
        sensor(sysfs, "coretemp", celsius, "hwmon0")
        seen.append(look(sysfs)[1])
    assert seen == [False, True, True, True, False, False, True]


def test_what_it_says_of_heat_ends_by_itself(sysfs: Path) -> None:
    sensor(sysfs, "k10temp", 99, "hwmon2")
    assert look(sysfs, "--valid-seconds", "0")[1] is False
    assert look(sysfs, "--valid-seconds", "180")[1] is True


@pytest.mark.parametrize("text", ["", "x", "-", "1e5", "999999999", "-300000", "\u00e9"])
def test_without_a_sensor_it_is_undefined(sysfs: Path, text: str) -> None:
    sensor(sysfs, "coretemp", text, "hwmon0")
    status, overheat, hottest, errors = look(sysfs)
    assert (status, "no sensor" in errors) == (1, True)
    assert overheat is hottest is classad2.Value.Undefined


@pytest.mark.parametrize("name", ["state", "state.new"])
def test_a_fifo_in_the_place_of_the_state_is_replaced(sysfs: Path, name: str) -> None:
    os.mkfifo(sysfs / name)
    sensor(sysfs, "coretemp", 95, "hwmon0")
    assert look(sysfs)[1] is True
    sensor(sysfs, "coretemp", 85, "hwmon0")
    assert look(sysfs)[1] is True


def test_without_a_place_to_remember_it_goes_by_the_upper_limit(sysfs: Path) -> None:
    sensor(sysfs, "coretemp", 95, "hwmon0")
    status, overheat, _, errors = look(sysfs, "--state", str(sysfs / "none" / "state"))
    assert (status, overheat, "none/state" in errors) == (0, True, True)


def test_limits_the_wrong_way_round(sysfs: Path) -> None:
    assert look(sysfs, "--cool-celsius", "95")[0] == 2
