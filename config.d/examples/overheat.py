#!/usr/bin/python3 -IS
"""OVERHEAT: tells HTCondor whether this node's processors are too hot for more jobs.

A STARTD_CRON job of HTCondor, which 70-overheat.conf runs. It reads every processor's sensors from
the kernel (/sys/class/hwmon with coretemp, k10temp or zenpower; /sys/class/thermal with
x86_pkg_temp or cpu-thermal) and publishes
  t1_overheat        True from --hot-celsius on until it is below --cool-celsius, as an expression
  that ends by itself
                     --valid-seconds after the last run; False when it is cool; undefined without a
                     sensor.
  t1_HottestCelsius  Highest temperature, degrees Celsius; undefined without a sensor.
While t1_overheat is True no job starts; running jobs go on.
"""

import argparse
import glob
import os
import sys
import time

DRIVERS = ("coretemp", "k10temp", "zenpower")
ZONES = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal")
PLAUSIBLE_CELSIUS = (-40.0, 150.0)
MAX_BYTES = 100


def read(path: str) -> str:
    """First line of a small file; empty if it cannot be read or is no regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as stream:
            content = stream.read(MAX_BYTES) if os.path.isfile(descriptor) else b""
    except OSError:
        return ""
    return content.decode("ascii", "replace").partition("\n")[0].strip()


def temperatures(sys_folder: str) -> "list[float]":
    """Plausible temperatures of all processors, degrees Celsius."""
    files = []
    for folder in glob.glob(os.path.join(sys_folder, "class/hwmon/hwmon*")):
        if read(os.path.join(folder, "name")) in DRIVERS:
            files += glob.glob(os.path.join(folder, "temp*_input"))
    for folder in glob.glob(os.path.join(sys_folder, "class/thermal/thermal_zone*")):
        if read(os.path.join(folder, "type")) in ZONES:
            files.append(os.path.join(folder, "temp"))
    found = []
    for text in map(read, files):
        if text.lstrip("-").isdigit():
            celsius = int(text) / 1000  # the kernel counts in thousandths
            if PLAUSIBLE_CELSIUS[0] < celsius < PLAUSIBLE_CELSIUS[1]:
                found.append(celsius)
    return found


def remember(path: str, text: str) -> None:
    """Write the state file anew, or say why that is impossible."""
    try:
        if os.path.lexists(path + ".new"):
            os.unlink(path + ".new")
        descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with open(descriptor, "w") as stream:
            stream.write(text + "\n")
        os.replace(path + ".new", path)
    except OSError as error:
        print("overheat: %s; the node counts as cool below --hot-celsius" % error, file=sys.stderr)


def main(argv: "list[str]") -> int:
    """Exit status: 0, or 1 without a sensor."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--hot-celsius", type=float, default=90, help="no job starts from here on (%(default)s)"
    )
    parser.add_argument(
        "--cool-celsius", type=float, default=80, help="jobs start again below (%(default)s)"
    )
    parser.add_argument("--valid-seconds", type=int, default=180, help="life of True (%(default)s)")
    parser.add_argument(
        "--state", default="/var/lib/condor/overheat.state", help="what the last run published"
    )
    parser.add_argument("--sys", default="/sys", help="where the kernel's files are")
    options = parser.parse_args(argv)
    if options.cool_celsius > options.hot_celsius:
        parser.error("--cool-celsius is above --hot-celsius: write a lower one")
    found = temperatures(options.sys)
    if not found:
        print("t1_overheat = undefined\nt1_HottestCelsius = undefined")
        print("overheat: no sensor of a processor in %s" % options.sys, file=sys.stderr)
        return 1
    hottest, now = max(found), int(time.time())
    was_hot = read(options.state) == "hot"
    hot = hottest >= (options.cool_celsius if was_hot else options.hot_celsius)
    if hot != was_hot:
        remember(options.state, "hot" if hot else "cool")
    ends = "time() < %d && time() > %d" % (now + options.valid_seconds, now - options.valid_seconds)
    print("t1_overheat = %s\nt1_HottestCelsius = %.1f" % (ends if hot else "False", hottest))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
