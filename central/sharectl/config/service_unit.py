"""Folders that the systemd unit of cycles lets them write to, read from the unit file and its drop-ins."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

SERVICE = "sharectl.service"
FOLDERS = tuple(
    Path(folder)
    for folder in (
        "/etc/systemd/system",
        "/run/systemd/system",
        "/usr/local/lib/systemd/system",
        "/usr/lib/systemd/system",
        "/lib/systemd/system",
    )
)
"""Where systemd looks for units, in its order."""
SHIPPED = (
    Path(sys.prefix, "share", "sharectl", "systemd", SERVICE),
    Path(__file__).parents[3] / "systemd" / SERVICE,
)
"""The unit that came with this program: of a wheel, or of a checkout."""

_SPECIFIERS = {"%S": "/var/lib", "%C": "/var/cache", "%L": "/var/log", "%t": "/run", "%%": "%"}
_SYSTEM = {
    "strict": ("/",),
    "full": ("/usr", "/boot", "/efi", "/etc"),
    "yes": ("/usr", "/boot", "/efi"),
}
_NEVER_PROTECTED = ("/dev", "/proc", "/sys")
_HOMES = ("/home", "/root", "/run/user")
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - names of folders that PrivateTmp= replaces
_OWN_FOLDERS = {
    "StateDirectory": "/var/lib",
    "CacheDirectory": "/var/cache",
    "LogsDirectory": "/var/log",
    "RuntimeDirectory": "/run",
}
_YES = ("yes", "true", "on", "1")


@dataclass(frozen=True)
class Protection:
    """Why cycles cannot write to a folder as they should."""

    setting: str
    """Such as ``ProtectSystem=strict``."""
    by_path: bool
    """Whether ReadWritePaths= lifts it."""


@dataclass(frozen=True)
class Unit:
    """The unit and its drop-ins."""

    file: Path
    installed: bool
    """Whether systemd reads it; if not, it is the one that came with this program."""
    settings: dict[str, list[str]]
    """Values of the section Service by name, in order; an empty value has removed those before it."""

    @property
    def makes(self) -> frozenset[Path]:
        """Folders that systemd makes before a cycle, such as StateDirectory=."""
        return frozenset(
            Path(above, name.partition(":")[0])
            for setting, above in _OWN_FOLDERS.items()
            for name in self._words(setting)
        )

    def protection(self, folder: Path) -> Optional[Protection]:
        """Protection of a folder; None if cycles can write there."""
        real = Path(os.path.realpath(folder))
        rules = [
            (path, rule) for path, rule in self._rules() if path == real or path in real.parents
        ]
        return max(rules, key=lambda rule: len(rule[0].parts))[1] if rules else None

    def _rules(self) -> Iterator[tuple[Path, Optional[Protection]]]:
        """Paths and their protections; the longest path counts, of equal ones the first."""
        for path in self._words("ReadWritePaths"):
            yield Path(path.lstrip("-+")), None
        yield from ((path, None) for path in self.makes)
        for setting in ("InaccessiblePaths", "ReadOnlyPaths"):
            for path in self._words(setting):
                yield Path(path.lstrip("-+")), Protection(f"{setting}={path}", by_path=False)
        yield from ((Path(path), None) for path in _NEVER_PROTECTED)
        if self._last("PrivateTmp") in _YES:
            private = Protection("PrivateTmp=yes", by_path=False)
            yield from ((Path(path), private) for path in _TEMPORARY)
        homes = self._last("ProtectHome")
        if homes in (*_YES, "read-only", "tmpfs"):
            hidden = Protection(f"ProtectHome={homes}", by_path=homes == "read-only")
            yield from ((Path(path), hidden) for path in _HOMES)
        system = self._last("ProtectSystem")
        read_only = Protection(f"ProtectSystem={system}", by_path=True)
        for path in _SYSTEM.get("yes" if system in _YES else system, ()):
            yield Path(path), read_only

    def _words(self, setting: str) -> list[str]:
        return [
            _expanded(word) for value in self.settings.get(setting, ()) for word in value.split()
        ]

    def _last(self, setting: str) -> str:
        return self.settings.get(setting, [""])[-1].lower()


def unit_of(folders: Sequence[Path] = FOLDERS, shipped: Sequence[Path] = SHIPPED) -> Optional[Unit]:
    """Unit that is installed, or else the one that came with this program; None if neither can be read."""
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
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        _add(settings, text)
    return Unit(file, file in installed, settings)


def _add(settings: dict[str, list[str]], text: str) -> None:
    """Add the settings of the section Service of a unit file."""
    section = ""
    for line in text.replace("\\\n", " ").splitlines():
        stripped = line.strip()
        if stripped.startswith("["):
            section = stripped
        name, equals, value = stripped.partition("=")
        if section != "[Service]" or not equals or stripped[0] in "#;":
            continue
        if not value.strip():
            settings.pop(name.strip(), None)
        else:
            settings.setdefault(name.strip(), []).append(value.strip().strip('"'))


def _expanded(word: str) -> str:
    for specifier, value in _SPECIFIERS.items():
        word = word.replace(specifier, value)
    return word
