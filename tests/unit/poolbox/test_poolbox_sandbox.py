from __future__ import annotations

from pathlib import Path

import pytest

from poolbox.configuration import Installation
from poolbox.root import Root
from poolbox.sandbox import command, expose, system_files
from poolbox.spec import BoxSpec


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("usr/bin", "usr/src", "etc", "home", "dev", "proc", "tmp"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/hosts").touch()
    (tmp_path / "bin").symlink_to("usr/bin")
    return tmp_path


def shown(tree: Path, *guests: str) -> dict[str, str]:
    """Target → option, or what a link points to."""
    entries = expose(tree, Path("/"), [Path(guest) for guest in guests])
    return {
        target: source if option == "--symlink" else option for option, source, target in entries
    }


def test_folders_are_shown_whole_links_stay_links_and_the_kernels_own_are_left_out(
    tree: Path,
) -> None:
    assert shown(tree) == {
        "/bin": "usr/bin",
        "/etc": "--ro-bind",
        "/home": "--ro-bind",
        "/usr": "--ro-bind",
    }


def test_a_guest_that_is_there_needs_no_room(tree: Path) -> None:
    assert shown(tree, "/etc/hosts", "/usr/src") == shown(tree)


def test_a_folder_that_lacks_a_guest_is_shown_entry_by_entry(tree: Path) -> None:
    assert shown(tree, "/usr/src/app/checkout") == {
        "/bin": "usr/bin",
        "/etc": "--ro-bind",
        "/home": "--ro-bind",
        "/usr/bin": "--ro-bind",
    }


def test_a_guest_in_a_folder_of_its_own_needs_nothing(tree: Path) -> None:
    assert shown(tree, "/srv/checkout") == shown(tree)


def test_the_box_is_the_only_thing_that_can_be_written(tree: Path) -> None:
    installation = Installation(
        *(Path(part) for part in ("/usr", "/usr/libexec", "/usr/lib", "/usr/sbin"))
    )
    argv = command(Root(tree, installation, Path("/usr/bin/python3")), Path("/tmp/box"))  # noqa: S108
    writable = [argv[place + 2] for place, option in enumerate(argv) if option == "--bind"]
    assert writable == ["/tmp/box"]  # noqa: S108


def test_every_host_has_a_name_and_one_ordinary_user_lives_there() -> None:
    spec = BoxSpec()
    files = system_files(spec, Path("/box/home"))
    names = [line.split()[1] for line in files["hosts"].splitlines()]
    assert names == ["localhost", *spec.hosts]
    assert [line.split(":")[2] for line in files["passwd"].splitlines()] == ["0", "1000"]
