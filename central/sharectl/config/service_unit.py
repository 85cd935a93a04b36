"""Folders that the systemd unit of cycles lets them write to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

SERVICE = "sharectl.service"
FOLDERS = tuple(
    Path(folder, "systemd/system")
    for folder in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
)
"""Folders of units, in systemd's order."""
SHIPPED = (
    Path(sys.prefix, "share", "sharectl", "systemd", SERVICE),
    Path(__file__).parents[3] / "systemd" / SERVICE,
)
"""The unit that came with this program: of a wheel, or of a checkout."""

_YES = ("yes", "true", "on", "1")
_HOMES = ("/home", "/root", "/run/user")
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - names of folders that PrivateTmp= replaces


@dataclass(frozen=True)
class Unit:
    """The unit and its drop-ins."""

    file: Path
    installed: bool
    """Whether systemd reads it; if not, it is the one that came with this program."""
    settings: dict[str, list[str]]
    """Values of the section Service by name, in order, without those that an empty one removed."""

    @property
    def makes(self) -> frozenset[Path]:
        """Folders that systemd makes before a cycle: StateDirectory=."""
        return frozenset(Path("/var/lib", name) for name in self._words("StateDirectory"))

    def protection(self, folder: Path) -> Optional[str]:
        """Setting that keeps cycles from writing to a folder; None if they can."""
        real = Path(os.path.realpath(folder))
        own = (*self.makes, *(Path(path.lstrip("-+")) for path in self._words("ReadWritePaths")))
        if _is_within(real, own):
            return None
        hidden = {"ProtectHome": _HOMES, "PrivateTmp": _TEMPORARY}
        for setting, folders in hidden.items():
            if self._last(setting) in _YES and _is_within(real, map(Path, folders)):
                return f"{setting}=yes"
        read_only = {"strict": ("/",), "full": ("/usr", "/boot", "/etc")}
        system = self._last("ProtectSystem")
        if _is_within(real, map(Path, read_only.get(system, ()))):
            return f"ProtectSystem={system}"
        return None

    def _words(self, setting: str) -> list[str]:
        return [word for value in self.settings.get(setting, ()) for word in value.split()]

    def _last(self, setting: str) -> str:
        return self.settings.get(setting, [""])[-1].lower()


def _is_within(path: Path, folders: Iterable[Path]) -> bool:
    return any(folder == path or folder in path.parents for folder in folders)


def unit_of(folders: Sequence[Path] = FOLDERS, shipped: Sequence[Path] = SHIPPED) -> Optional[Unit]:
    """Unit that is installed, or else the shipped one; None if neither is there."""
    installed = [folder / SERVICE for folder in folders]
    file = next((path for path in (*installed, *shipped) if os.path.isfile(path)), None)  # noqa: PTH113
    if file is None:
        return None
    # Of drop-ins of one name the first folder's counts; all are read in the order of their names.
    more: dict[str, Path] = {}
    for folder in reversed(folders if file in installed else ()):
        more.update({path.name: path for path in (folder / f"{SERVICE}.d").glob("*.conf")})
    settings: dict[str, list[str]] = {}
    for path in (file, *(more[name] for name in sorted(more))):
        try:
            _add(settings, path.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
    return Unit(file, file in installed, settings)


def _add(settings: dict[str, list[str]], text: str) -> None:
    """Add the settings of the section Service of a unit file."""
    section = ""
    for line in map(str.strip, text.replace("\\\n", " ").splitlines()):
        name, equals, value = (part.strip() for part in line.partition("="))
        if line.startswith("["):
            section = line
        elif section == "[Service]" and equals and line[0] not in "#;":
            settings[name] = [*settings.get(name, ()), value] if value else []
