from __future__ import annotations

import pytest

from sharectl.config.load import parse
from sharectl.errors import ConfigError

GROUPS = "groups: {cms: {pledge_hs06: 1}}\n"
SOUND = """\
groups: {cms: {pledge_hs06: 1}}
pool: {name: "pool-1:x"}
signing_key_file: /etc/sharectl/keys
publish:
  - file: /shared/sharectl.txt
  - https: {file: /srv/www/sharectl.txt, url: "https://cm.example.org:8443/a/sharectl.txt"}
  - collector: {identity: sharectl@example.org, deadline_seconds: 5}
"""


def test_every_way_is_read() -> None:
    config = parse(SOUND, "F")
    shared, served, collector = config.publish
    assert str(shared.file) == "/shared/sharectl.txt"
    assert served.https is not None
    assert (str(served.https.file), served.https.ca_file) == ("/srv/www/sharectl.txt", None)
    assert collector.collector is not None
    assert collector.collector.identity == "sharectl@example.org"
    assert (str(config.signing_key_file), config.pool.name) == ("/etc/sharectl/keys", "pool-1:x")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("publish: [{}]", "publish[0]: an entry has exactly one way; write - file: /PATH"),
        ("publish: [{collector: }]", "publish[0]: an entry has exactly one way"),
        ("publish: [{file: /a, collector: {}}]", "publish[0]: an entry has exactly one way"),
        ('publish: [{https: {url: "https://cm/x"}}]', "publish[0].https.file: is missing"),
        (
            'publish: [{https: {file: /a, url: "http://cm/x"}}]',
            'publish[0].https.url: "http://cm/x" will not',
        ),
        (
            'publish: [{https: {file: /a, url: "https://u:p@cm/x"}}]',
            "write https://HOST[:PORT]/PATH",
        ),
        (
            'publish: [{https: {file: /a, url: "https://cm/x,y"}}]',
            "without user, query, comma or blank",
        ),
        ('publish: [{https: {file: /a, url: "https://cm/"}}]', "publish[0].https.url"),
        (
            "publish: [{collector: {identity: sharectl}}]",
            'publish[0].collector.identity: "sharectl" is no ident',
        ),
        (
            "publish: [{collector: {identity: unauthenticated@unmapped}}]",
            "what everybody has whom HTCondor",
        ),
        (
            "publish: [{collector: {ident: a@b}}]",
            "publish[0].collector.ident: unknown key; did you mean identity?",
        ),
        (
            "publish: [{collector: {}}, {collector: {}}]",
            "publish[1].collector: is the same as publish[0]",
        ),
        (
            'publish: [{file: /a}, {https: {file: /a, url: "https://cm/x"}}]',
            "/a is written by publish[0].file",
        ),
        ('pool: {name: "a b"}', 'pool.name: "a b" is no pool name; write letters, digits'),
        ("signing_key_file: keys", 'signing_key_file: "keys" is no absolute path'),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_its_remedy(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"{GROUPS}{text}\n", "F")
    assert any(problem in line for line in caught.value.problems), caught.value.problems
