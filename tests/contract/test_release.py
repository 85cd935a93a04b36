"""`make release` on clones of this tree, each with another mistake."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS

CHECKOUT = Path(__file__).parents[2]
GIT = ("git", "-c", "user.name=ops", "-c", "user.email=ops@example.org", "-c", "core.hooksPath=")
PARTS = (".ci/release", "CHANGELOG.md", "startd_cron/job_ctl.py", "central/sharectl/__init__.py")
MAKE = '#!/bin/sh\necho "made $*"\nmkdir -p dist\ntouch dist/sharectl_0.1.0_all.deb\n'
SECTION = "## 0.1.0 - 2026-12-01\n"


def git(tree: Path, *words: str) -> None:
    subprocess.run([*GIT, *words], cwd=tree, check=True, capture_output=True, timeout=HANG_SECONDS)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Repository with the parts of this one that the script reads, ready for 0.1.0."""
    place = tmp_path / "tree"
    for part in PARTS:
        (place / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / part, place / part)
    change(place, "startd_cron/job_ctl.py", '\nVERSION = "', '\nVERSION = "0.1.0"\nWAS = "')
    change(
        place, "central/sharectl/__init__.py", '__version__ = "', '__version__ = "0.1.0"\nWAS = "'
    )
    change(place, "CHANGELOG.md", "## ", f"{SECTION}\n### Before\n\n### ")
    (place / ".gitignore").write_text("/dist/\n")
    git(place, "init", "--quiet")
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message", "Change")
    return place


def change(tree: Path, name: str, old: str, new: str) -> None:
    """Write another text in the place of the first one of this kind."""
    text = (tree / name).read_text(encoding="utf-8")
    assert old in text
    (tree / name).write_text(text.replace(old, new, 1), encoding="utf-8")


def release(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run the script, with a make that builds an empty package."""
    program = tree.parent / "make"
    program.write_text(MAKE)
    program.chmod(0o755)
    return subprocess.run(
        [tree / ".ci/release"],
        check=False,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        env={"PATH": "/usr/bin:/bin", "MAKE": str(program)},
    )


def test_a_tree_without_a_mistake_is_built_and_the_commands_are_printed(tree: Path) -> None:
    done = release(tree)
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        "made docs packages\n",
        "0.1.0 can be released. Nothing is published yet.",
        "git tag --sign v0.1.0 ",
        "dist/sharectl_0.1.0_all.deb\n",
    ):
        assert words in done.stdout
    assert not [*(tree / ".git" / "refs" / "tags").iterdir()]


def test_all_mistakes_are_named_at_once(tree: Path) -> None:
    git(tree, "tag", "v0.1.0")
    (tree / "new").touch()
    change(tree, "CHANGELOG.md", SECTION, "## 0.1.0\n")
    lines = release(tree).stderr.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["CHANGELOG.md", "git", "git"]
    assert lines[1].endswith("commit or remove them: git status")
    assert "there is a tag v0.1.0 already" in lines[2]
