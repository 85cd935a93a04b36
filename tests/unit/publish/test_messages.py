"""Wording of all messages of the room, in one listing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from sharectl.errors import SharectlError, UnsignedError
from sharectl.model import Disabled, Plan, Target
from sharectl.plan.plan import State
from sharectl.publish import collector, signing, text
from sharectl.publish.audit import AuditFile, Who
from sharectl.publish.collector import held_ads
from sharectl.publish.disabled_file import DisabledFile
from sharectl.publish.former_places import FormerPlacesFile
from sharectl.publish.signing import SigningKey
from sharectl.publish.state import StateFile
from sharectl.publish.text import FilePublisher, Seal
from sharectl.report import as_json
from tests.fakes import NOW, FakePublisher

PLAN = Plan(7, NOW, NOW + 60, ("a", "b"), (Target("wn-1", "a", 8, "b", 8),), "targets")
OURS, OTHER = "sharectl@example.org", "mallory@example.org"


def message(action: Callable[[], object]) -> str:
    """Message of the error that ends an action."""
    try:
        action()
    except SharectlError as error:
        return str(error)
    return "no error"


def of_files(folder: Path) -> Iterator[str]:
    state = StateFile(folder / "state.json", clock=lambda: NOW)
    for content in ("{", '{"schema_version": 1, "sequence": "x"}'):
        state.path.write_text(content)
        yield message(state.load)
    yield message(lambda: state.save(State(7)))
    places = FormerPlacesFile(folder / "places.json", (), lambda _: FakePublisher(), lambda: NOW)
    places.path.write_text("{")
    yield message(places.publishers)
    places.path.unlink()
    replace(places, names=(f"file:{folder}/old.txt",)).remember(PLAN)
    (folder / "old.txt").write_text("foreign\n")
    (leaving,) = places.publishers()
    yield message(lambda: leaving.publish(replace(PLAN, targets=())))
    (folder / "disabled").mkdir()
    yield message(DisabledFile(folder).enable)
    (folder / "ledger").touch()
    audit = AuditFile(folder, Who("u", None, "cm", "cycle"), 10**6, 2)
    yield message(lambda: audit.switched(Disabled("r", "u@cm", NOW), NOW, on=False))


def of_keys(folder: Path) -> Iterator[str]:
    path = folder / "keys"
    yield message(lambda: signing.read_keys(path))
    secret = "0f" * 32
    for content in ("", f"A {secret}\n", f"a {secret}\na {secret}\n", "x" * 70_000):
        path.write_text(content)
        path.chmod(0o640)
        yield message(lambda: signing.read_keys(path))
    path.write_text(f"# \xe9\n\na {secret} b\n" + "".join(f"k{n} {secret}\n" for n in range(3)))
    path.chmod(0o644)
    yield message(lambda: signing.read_keys(path))


def of_signatures() -> Iterator[str]:
    key = SigningKey("a", b"s" * 32)
    signed = text.render(PLAN, Seal(key=key)).encode()
    for content, keys in (
        (text.render(PLAN).encode(), [key]),
        (signed, [replace(key, key_id="b")]),
        (signed, []),
        (signed, [replace(key, secret=b"t" * 32)]),
    ):
        yield str(signing.problem_of(content, keys))


def of_texts(folder: Path) -> Iterator[str]:
    valid = text.render(PLAN)
    for content in (
        b"x" * (text.TEXT_MAX_BYTES + 1),
        b"# sharectl: 2\n# targets: 3\nwn-1 a 8 b\nrest",
        b"# sequence: seven\n",
        valid.encode().replace(b"wn-1", b"\xff"),
    ):
        yield message(lambda content=content: text.parse_text(content, "sharectl.txt"))  # type: ignore[misc]
    publisher = FilePublisher(folder / "sharectl.txt", Seal(key_problem="no key"))
    yield message(lambda: publisher.publish(PLAN))
    yield str(UnsignedError("/srv/sharectl.txt", "no key"))
    one = PLAN.targets[0]
    many = replace(PLAN, targets=tuple(replace(one, node=f"wn-{n}") for n in range(100_000)))
    yield message(lambda: FilePublisher(folder / "sharectl.txt").publish(many))


def of_plans() -> Iterator[str]:
    plan = json.loads(as_json.dumps("plan", as_json.plan(PLAN)))
    target = plan["targets"][0]
    for change in (
        {"kind": "errors"},
        {"valid_until": "soon", "extra": 1},
        {"valid_until": 1, "reason": "because", "limits": [{"code": "x", "nodes": 1}]},
        {"groups": ["a", "a.x", "b"], "targets": [{**target, "node": "a b"}, target, target]},
        {"targets": [{**target, "helped": "A b", "request_cores": 0, "cap_cores": -1}]},
        {"targets": [{**target, "helped": "a"}]},
    ):
        changed = json.dumps({**plan, **change}).encode()
        yield message(lambda changed=changed: text.parse_plan(changed, "plan.json"))  # type: ignore[misc]
    yield message(lambda: text.parse_plan(b"{", "plan.json"))


def of_collectors() -> Iterator[str]:
    for sender in (None, (OTHER, "FS"), (OURS, "IDTOKENS")):
        yield f"took the ads and does not show them{collector.why_not_shown(sender, OURS)}"
    for identity in ("unauthenticated@unmapped", OTHER):
        yield str(collector.why_unexpected(identity, OURS))
    ad = {"MyType": "SharectlTarget", "AuthenticatedIdentity": OURS, "t1_TargetSequence": 6}
    held = held_ads([{**ad, "Name": f"x{number}"} for number in range(7)])
    yield str(collector.why_not_whole(held, PLAN, OURS))


def test_every_message_is_as_it_was(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    parts = {
        "files": of_files(tmp_path),
        "keys": of_keys(tmp_path),
        "signatures": of_signatures(),
        "texts": of_texts(tmp_path),
        "plans": of_plans(),
        "collectors": of_collectors(),
    }
    lines = [
        line
        for name, messages in parts.items()
        for line in (f"# {name}", *(part for each in messages for part in each.splitlines()))
    ]
    golden("publish/messages.txt", "\n".join(lines).replace(str(tmp_path), "FOLDER") + "\n")
