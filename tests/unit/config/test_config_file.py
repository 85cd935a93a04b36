from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.config.load import load, parse
from sharectl.errors import ConfigError
from sharectl.files.yaml import MAX_BYTES, MAX_PROBLEMS
from sharectl.model import PlanLimits
from sharectl.plan.nodes import Controlled, ControlledConstraint, ControlledHosts, ControlledShare

LEAST = """\
groups:
  cms:   {pledge_hs06: 87100}
  atlas: {pledge_hs06: 105300}
nodes: {controlled: "*"}        # host patterns, a share such as 50%, or a ClassAd constraint
"""
GROUPS = "groups: {cms: {pledge_hs06: 1}}\n"

SYNTAX = [
    ("", "F:1: the file is empty; write at least groups:"),
    ("# nothing\n\n", "F:1: the file is empty;"),
    ("- cms\n", "F:1: the file is no mapping of keys to values;"),
    ("\n\ncms\n", "F:3: the file is no mapping of keys to values;"),
    (
        "a: 1\n---\nb: 2\n",
        (
            "F:2:1: not YAML: but found another document, expected a single document in the stream "
            "at line 1; remove"
        ),
    ),
    (
        "groups:\n\tcms: {}\n \tatlas: {}\n",
        "F:2:1: a tab in the indentation, which YAML forbids; write spaces",
    ),
    ("groups:\n\tcms: {}\n \tatlas: {}\n", "F:3:2: a tab in the indentation,"),
    (
        "groups: {cms: {pledge_hs06: 1}\nnodes:",
        (
            "F:2:1: not YAML: expected ',' or '}', but got '<scalar>', while parsing a flow mapping "
            "at line 1; close {"
        ),
    ),
    (
        "nodes: {controlled: *}\n",
        "F:1:22: not YAML: expected alphabetic or numeric character, but found '}', while scanning",
    ),
    ("nodes: {controlled: *}\n", 'begins with * in quotes: "*"'),
    (
        "pool: {collector: @x}\n",
        "F:1:19: not YAML: found character '@' that cannot start any token; put text",
    ),
    ("groups: cms: 5\n", "F:1:12: not YAML: mapping values are not allowed here; indent all keys"),
    (
        'groups: {"cms: 5}\n',
        (
            "F:1:18: not YAML: found unexpected end of stream, while scanning a quoted scalar at "
            "line 1; close the"
        ),
    ),
    ('state_directory: "/a\\UFFFFFFFFb"\n', "F:1:23: not YAML: "),
    ("a: \x07\n", "F:1:4: holds the character U+0007, which YAML forbids; remove it"),
    ("a: " + "[" * 50, "F:1:23: not YAML: too many levels within each other; write no more levels"),
    (
        f"a: [{'1,' * 20_000}]",
        "F:1:39999: not YAML: too many values; write at most 20000 keys and values, and many",
    ),
    ("%YAML 3.0\n---\na: 1\n", "F:1:1: not YAML: found incompatible YAML document"),
]

BAD = [
    # keys
    (GROUPS + "contorl: {}\n", "F:2: contorl: unknown key; did you mean control?"),
    (
        GROUPS + "zebra: {}\n",
        "F:2: zebra: unknown key; write one of groups, pledges, nodes, control, pool,",
    ),
    (
        GROUPS + "control:\n  deadband: 5\n",
        "F:3: control.deadband: unknown key; write deadband_hs06, in HS06",
    ),
    (GROUPS + "multicore_cores: 8\n", "F:2: multicore_cores: unknown key; write it under control"),
    (GROUPS + "max_nodes: 8\n", "F:2: max_nodes: unknown key; write it under control"),
    (
        GROUPS + "pool: {validity_seconds: 60}\n",
        "F:2: pool.validity_seconds: unknown key; write it at the top level",
    ),
    (
        GROUPS + "validity_minutes: 51\n",
        "F:2: validity_minutes: unknown key; write validity_seconds: 3060",
    ),
    (GROUPS + "validity: 51m\n", "F:2: validity: unknown key; write validity_seconds: 3060"),
    (GROUPS + "validity: 51\n", "F:2: validity: unknown key; write validity_seconds, in seconds"),
    (
        GROUPS + "history: {errors_log_max_mib: 10}\n",
        "unknown key; write errors_log_max_bytes: 10485760",
    ),
    (
        "groups: {cms: {pledge: 5}}\n",
        "F:1: groups.cms.pledge: unknown key; write pledge_hs06, in HS06",
    ),
    (
        "groups: {cms: {pledge: 87.1 kHS06}}\n",
        "groups.cms.pledge: unknown key; write pledge_hs06: 87100",
    ),
    (
        "groups: {cms: {pledge_khs06: 87.1}}\n",
        "groups.cms.pledge_khs06: unknown key; write pledge_hs06: 87100",
    ),
    (
        "groups: {cms: {pledge_hepscore: 5}}\n",
        "F:1: groups.cms.pledge_hepscore: unknown key; write pledge_hs06: 5",
    ),
    (
        GROUPS + "nodes: {controlled: '*'}\nnodes: {}\n",
        "F:3: nodes: is here a second time, first at line 2; keep one",
    ),
    (
        GROUPS + "pool:\n  mode: jobs\n  mode: jobs\n",
        "F:4: pool.mode: is here a second time, first at line 3;",
    ),
    (GROUPS + "<<: {a: 1}\n", "F:2: <<: YAML merge keys are not read; write the keys out"),
    (GROUPS + "? [a]\n: 1\n", "F:2: ?: a key is a plain name; write it without brackets"),
    (GROUPS + '"po\\u200Bol": {}\n', "holds the character U+200B, which cannot be seen; remove it"),
    # groups
    (
        "nodes: {}\n",
        "F:1: groups: is missing; write groups, and below it such as cms: {pledge_hs06: 87100}",
    ),
    ("groups:\n", "F:1: groups: there is no value; write groups below it, such as cms:"),
    ("groups: {}\n", "F:1: groups: there is no group; write at least one,"),
    ("groups: [cms]\n", "F:1: groups: this is a list; write groups below it, such as cms:"),
    (
        "groups:\n  no: {pledge_hs06: 1}\n",
        "F:2: groups.no: YAML reads the key no as true or false, not as a name; quote",
    ),
    ("groups:\n  no: {pledge_hs06: 1}\n", 'quote it: "no"'),
    (
        "groups:\n  12: {pledge_hs06: 1}\n",
        "F:2: groups.12: YAML reads the key 12 as a number, not as a name; quote",
    ),
    (
        "groups:\n  ~: {pledge_hs06: 1}\n",
        "F:2: groups.~: YAML reads the key ~ as no value at all, not as a name;",
    ),
    (
        "groups:\n  CMS: {pledge_hs06: 1}\n  cms: {}\n",
        "F:3: groups.cms: is the same group as CMS at line 2, case does",
    ),
    (
        "groups:\n  other: {pledge_hs06: 1}\n",
        'F:2: groups.other: "other" is reserved, since jobs of groups',
    ),
    (
        "groups:\n  None: {pledge_hs06: 1}\n",
        'F:2: groups.None: "None" is reserved, since nodes publish it',
    ),
    (
        "groups:\n  a b: {pledge_hs06: 1}\n",
        'F:2: groups.a b: "a b" is no group name; write the first part of',
    ),
    (
        "groups:\n  cms.prod: {pledge_hs06: 1}\n",
        'F:2: groups.cms.prod: "cms.prod" is two names; write prod below groups of cms',
    ),
    (f"groups:\n  {'a' * 65}: {{pledge_hs06: 1}}\n", "at most 64"),
    (
        "groups:\n  cms: 87100\n",
        "F:2: groups.cms: a group is a mapping; write cms: {pledge_hs06: 87100}",
    ),
    (
        "groups:\n  cms: 87.1 kHS06\n",
        "F:2: groups.cms: a group is a mapping; write cms: {pledge_hs06: 87100}",
    ),
    (
        "groups:\n  cms:\n",
        "F:2: groups.cms: there is nothing in it; write its keys on the lines below",
    ),
    (
        "groups:\n  cms: {}\n",
        "F:2: groups.cms: a group has exactly one pledge; write either pledge_hs06 or",
    ),
    (
        "groups:\n  cms: {pledge_hs06: 1, pledge_hepscore23: 1}\n",
        "F:2: groups.cms: a group has exactly one pledge;",
    ),
    (
        "groups:\n  cms: {pledge_hs06: 0}\n  b: {pledge_hs06: 0.0}\n",
        "F:1: groups: all pledges are 0, so there is",
    ),
    # numbers
    (
        "groups:\n  cms: {pledge_hs06: -1}\n",
        "F:2: groups.cms.pledge_hs06: -1 is out of range; write a number, 0 to",
    ),
    (
        "groups:\n  cms: {pledge_hs06: .nan}\n",
        "F:2: groups.cms.pledge_hs06: .nan is out of range; write a number",
    ),
    ("groups:\n  cms: {pledge_hs06: .inf}\n", "F:2: groups.cms.pledge_hs06: .inf is out of range;"),
    (
        "groups:\n  cms: {pledge_hs06: 1.0e+999}\n",
        "F:2: groups.cms.pledge_hs06: 1.0e+999 is out of range;",
    ),
    (
        f"groups:\n  cms: {{pledge_hs06: {'9' * 301}}}\n",
        "has more digits than any number here; write a shorter one",
    ),
    (f"groups:\n  cms: {{pledge_hs06: {'9' * 300}}}\n", f"{'9' * 60}… is out of range;"),
    (
        "groups:\n  cms: {pledge_hs06: 87.1 kHS06}\n",
        '"87.1 kHS06" is text, not a number; write 87100, without quotes',
    ),
    (
        "groups:\n  cms: {pledge_hs06: '87,100'}\n",
        '"87,100" is text, not a number; write 87100, without quotes',
    ),
    ("groups:\n  cms: {pledge_hs06: '1'}\n", '"1" is text, not a number; write 1, without quotes'),
    (
        "groups:\n  cms: {pledge_hs06: 1e3}\n",
        '"1e3" is text, not a number; write 1000, without quotes',
    ),
    (
        "groups:\n  cms: {pledge_hs06: much}\n",
        '"much" will not do; write a number, 0 to 1000000000000 HS06',
    ),
    (
        "groups:\n  cms: {pledge_hs06: yes}\n",
        "YAML reads yes as true; write a number, 0 to 1000000000000 HS06",
    ),
    ("groups:\n  cms: {pledge_hs06: [1]}\n", "this is a list; write a number, 0 to"),
    (
        GROUPS + "validity_seconds: 17m\n",
        '"17m" is text, not a number; write 1020, without quotes or a unit',
    ),
    (GROUPS + "validity_seconds: 3060 s\n", '"3060 s" is text, not a number; write 3060,'),
    (GROUPS + "validity_seconds: 1h30m\n", '"1h30m" is text, not a number; write 5400,'),
    (GROUPS + "validity_seconds: 0:51:00\n", '"0:51:00" is text, not a number; write 3060,'),
    (GROUPS + "validity_seconds: 51:00\n", "YAML reads 51:00 as the number 3060; write 3060,"),
    (
        GROUPS + "control: {deadband_hs06: 1_000}\n",
        "YAML reads 1_000 as the number 1000; write 1000,",
    ),
    (
        GROUPS + "control: {deadband_hs06: 1_000.5}\n",
        "YAML reads 1_000.5 as the number 1000.5; write 1000.5,",
    ),
    (GROUPS + "control: {deadband_hs06: 1:30}\n", "YAML reads 1:30 as the number 90; write 90,"),
    (GROUPS + "control: {deadband_hs06: .inf}\n", ".inf is out of range; write a number, 0 to"),
    (GROUPS + "validity_seconds: 0x3C\n", "YAML reads 0x3C as the number 60; write 60,"),
    (GROUPS + "validity_seconds: 0644\n", "YAML reads 0644 as the number 420; write 420,"),
    (GROUPS + "validity_seconds: 0b_\n", "0b_ is no number; write one,"),
    (
        GROUPS + "validity_seconds: 3d\n",
        '"3d" is text, and means 259200; write a whole number, 60 to 86400 seconds',
    ),
    (
        GROUPS + "validity_seconds: 59\n",
        "F:2: validity_seconds: 59 is out of range; write a whole number, 60 to 86400",
    ),
    (
        GROUPS + "validity_seconds: 60.5\n",
        "60.5 will not do; write a whole number, 60 to 86400 seconds",
    ),
    (GROUPS + "validity_seconds: 3060.0\n", "3060.0 is no whole number; write 3060"),
    (
        GROUPS + "validity_seconds:\n",
        "F:2: validity_seconds: there is no value; write a whole number, 60 to 86400",
    ),
    (
        GROUPS + "lock_wait_seconds: -.5\n",
        '"-.5" is text, and means -0.5; write a number, 0 to 3600 seconds',
    ),
    (
        GROUPS + "lock_wait_seconds: no\n",
        "YAML reads no as false; write a number, 0 to 3600 seconds",
    ),
    (
        GROUPS + "control: {multicore_cores: 1}\n",
        "F:2: control.multicore_cores: 1 is out of range; write a whole number, 2",
    ),
    (GROUPS + "control: {multicore_cores: 8 cores}\n", '"8 cores" is text, not a number; write 8,'),
    (
        GROUPS + "control: {max_nodes: 0}\n",
        "F:2: control.max_nodes: 0 is out of range; write a whole number, 1 to",
    ),
    (
        GROUPS + "pool: {schedd_deadline_seconds: 0}\n",
        "0 is out of range; write a number, above 0 to 3600 seconds",
    ),
    (
        GROUPS + "history: {errors_log_max_bytes: 10 MiB}\n",
        '"10 MiB" is text, not a number; write 10485760,',
    ),
    # words, names, paths
    (GROUPS + "control: {max_target_share: 0.25}\n", 'for a share of the nodes write "25%"'),
    (
        GROUPS + "control: {max_target_share: 25}\n",
        "F:2: control.max_target_share: a bare number could mean",
    ),
    (
        GROUPS + "control: {max_target_share: 'wn-*'}\n",
        'a share is a percentage in quotes; write such as "50%"',
    ),
    (GROUPS + "control: {max_target_share: yes}\n", "a share is a percentage in quotes"),
    (GROUPS + "control: {dwell_seconds: 10m}\n", "write 600"),
    (GROUPS + "control: {max_changed_nodes: 0}\n", "0 is out of range; write a whole number, 1 to"),
    (
        GROUPS + "control: {incomplete: withdrawn}\n",
        'control.incomplete: "withdrawn" will not do; did you mean withdraw?',
    ),
    (
        GROUPS + "control: {incomplete: off}\n",
        "YAML reads off as false; write one of keep, withdraw",
    ),
    (GROUPS + "pool: {mode: 1}\n", "F:2: pool.mode: 1 will not do; write one of counted, jobs"),
    (
        GROUPS + "pool: {collector: 9618}\n",
        'YAML reads 9618 as 9618, not as text; quote it: "9618"',
    ),
    (
        GROUPS + "pool: {collector: ''}\n",
        '"" is no name or address; write such as ap-1.example.org',
    ),
    (GROUPS + "pool: {collector: a b}\n", '"a b" is no name or address;'),
    (
        GROUPS + "pool: {schedds: ap-1}\n",
        'pool.schedds: "ap-1" will not do; write a list, such as [ap-1]',
    ),
    (
        GROUPS + "pool: {schedds: [ap-1, no]}\n",
        'pool.schedds[1]: YAML reads no as false, not as text; quote it: "no"',
    ),
    (GROUPS + "state_directory: var\n", '"var" is no absolute path; write one that begins with /'),
    (GROUPS + "state_directory: /\n", '"/" is no absolute path;'),
    (GROUPS + 'state_directory: "/a\\nb"\n', "holds a character that cannot be seen; remove it"),
    (
        GROUPS + "publish: /s\n",
        'F:2: publish: "/s" will not do; write a list, such as [{file: /s}]',
    ),
    (
        GROUPS + "publish: {file: /s}\n",
        "F:2: publish: this is a mapping; write a list, such as [{file: /shared/",
    ),
    (
        GROUPS + "publish: []\n",
        "F:2: publish: the list is empty; write at least one entry, or remove publish",
    ),
    (GROUPS + "publish:\n  - /s\n", "F:3: publish[0]: an entry is a mapping; write - file: /s"),
    (
        GROUPS + "publish:\n  - {}\n",
        "F:3: publish[0]: an entry has exactly one way; write - file: /PATH",
    ),
    (
        GROUPS + "publish: [{file: /s}, {file: /s}]\n",
        "publish[1].file: /s is written by publish[0].file too; write",
    ),
    (
        GROUPS + "publish: [{file: /var/lib/sharectl/lock}]\n",
        "is written by state_directory.lock too; write a path of",
    ),
    (GROUPS + "nodes: wn-*\n", 'F:2: nodes: nodes is a mapping; write nodes: {controlled: "wn-*"}'),
    (
        GROUPS + "pool:\n",
        "F:2: pool: there is nothing in it; write its keys on the lines below, indented, or remove",
    ),
    (
        GROUPS + "pool: 5\n",
        "F:2: pool: this is 5, not a mapping; write one with keys such as name, collector, mode,",
    ),
    # nodes.controlled
    (
        GROUPS + "nodes: {controlled: 0.5}\n",
        "F:2: nodes.controlled: a bare number could mean anything; for a share of",
    ),
    (GROUPS + "nodes: {controlled: 0.5}\n", 'of the nodes write "50%"'),
    (GROUPS + "nodes: {controlled: '50'}\n", 'of the nodes write "50%"'),
    (
        GROUPS + "nodes: {controlled: 101%}\n",
        '101% is more nodes than there are; write at most "100%"',
    ),
    (
        GROUPS + "nodes: {controlled: yes}\n",
        'nodes.controlled: it selects no nodes; write "*", host patterns',
    ),
    (GROUPS + "nodes: {controlled: 'True'}\n", "True could be a host or an expression; write"),
    (GROUPS + "nodes: {controlled: }\n", "nodes.controlled: it selects no nodes; write"),
    (
        GROUPS + "nodes: {controlled: []}\n",
        'nodes.controlled: it names no host; write a list of host patterns, or "0%"',
    ),
    (
        GROUPS + "nodes: {controlled: [wn-1, 5]}\n",
        'nodes.controlled[1]: "5" is no host pattern; write host names',
    ),
    (
        GROUPS + "nodes: {controlled: 'wn-1, wn-2'}\n",
        "several hosts are a list, and braces are no pattern; write",
    ),
    (
        GROUPS + "nodes: {controlled: 'wn-{1,2}'}\n",
        "several hosts are a list, and braces are no pattern; write",
    ),
    (
        GROUPS + "nodes: {controlled: 'Cpus >'}\n",
        '"Cpus >" is neither host patterns nor a share, and no ClassAd expr',
    ),
    (GROUPS + "nodes: {controlled: 'a == 1 // why'}\n", "no ClassAd expression"),
    (GROUPS + "nodes: {controlled: '\"wn-1\"'}\n", "is true on no node; write"),
    (GROUPS + "nodes: {controlled: '[a = 1]'}\n", '"[a = 1]" is true on no node; write'),
    (
        GROUPS + f"nodes: {{controlled: '{'(' * 5000}'}}\n",
        "a constraint has at most 4096 characters; shorten it",
    ),
    (
        GROUPS + "nodes:\n  controlled:\n    host: [a]\n",
        'F:4: nodes.controlled.host: unknown key "host"; write one of',
    ),
    (
        GROUPS + "nodes: {controlled: {hosts: a, share: 5%}}\n",
        "a mapping has exactly one key here; write one of hosts",
    ),
    (GROUPS + "nodes: {controlled: {hosts: 5}}\n", "nodes.controlled.hosts: it names no host;"),
    (
        GROUPS + "nodes: {controlled: {share: 0.5}}\n",
        "nodes.controlled.share: a share is a percentage in quotes; write",
    ),
    (
        GROUPS + "nodes: {controlled: {constraint: ''}}\n",
        "nodes.controlled.constraint: a constraint is a ClassAd expr",
    ),
    # what YAML adds
    (
        GROUPS + "state_directory: &a /x\n",
        "F:2: state_directory: YAML anchors are not read; remove &a",
    ),
    (
        GROUPS + "nodes: {controlled: *a}\n",
        'YAML aliases are not read; write the value out, or "*a" in quotes',
    ),
    (GROUPS + "validity_seconds: !!int '3060'\n", "YAML tags are not read; remove !!int,"),
    (
        GROUPS + "pool: !!python/object/apply:os.system [id]\n",
        "YAML tags are not read; remove !!python/object/apply",
    ),
    ("!x {groups: {}}\n", "F:1: YAML tags are not read; remove !x,"),
]

CONTROLLED: list[tuple[str, Controlled]] = [
    ('"*"', ControlledHosts(("*",))),
    ("wn-1.example.org", ControlledHosts(("wn-1.example.org",))),
    ("[wn-0*, 'wn-1[0-4]?']", ControlledHosts(("wn-0*", "wn-1[0-4]?"))),
    ("50%", ControlledShare(0.5)),
    ("'29 %'", ControlledShare(0.29)),
    ("0%", ControlledShare(0.0)),
    ("33.3%", ControlledShare(0.333)),
    ("t1_room == 3", ControlledConstraint("t1_room == 3")),
    ("'regexp(\"^wn-\", Machine)'", ControlledConstraint('regexp("^wn-", Machine)')),
    ("Cpus > 8 &&\n    Memory > 5", ControlledConstraint("Cpus > 8 && Memory > 5")),
    ("{constraint: GPU}", ControlledConstraint("GPU")),
    ("{hosts: GPU}", ControlledHosts(("GPU",))),
    ("{hosts: [a, b]}", ControlledHosts(("a", "b"))),
    ("{share: 5%}", ControlledShare(0.05)),
]


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, "F")
    return list(caught.value.problems)


@pytest.mark.parametrize(("text", "fragment"), SYNTAX + BAD)
def test_what_is_wrong_is_said_with_its_line_and_its_remedy(text: str, fragment: str) -> None:
    problems = problems_of(text)
    assert any(fragment in problem for problem in problems), problems


@pytest.mark.parametrize("text", [text for text, _ in BAD if "second time" not in _])
def test_one_fault_is_one_problem(text: str) -> None:
    assert len({problem.split(": ")[0] for problem in problems_of(text)}) == 1


def test_the_least_form_has_the_defaults_of_the_issue() -> None:
    config = parse(LEAST, "F")
    assert {name: group.pledge_hs06 for name, group in config.groups.items()} == {
        "cms": 87100,
        "atlas": 105300,
    }
    assert config.control.limits == PlanLimits(multicore_cores=8, deadband_hs06=0.0, max_nodes=None)
    assert config.control.incomplete == "keep"
    assert (config.pool.mode, config.pool.collector, config.pool.schedds) == ("counted", None, ())
    assert (config.pool.collector_deadline_seconds, config.pool.schedd_deadline_seconds) == (20, 60)
    assert (config.pool.default_node_hs06, config.pool.default_node_cores) == (400, 40)
    assert [publisher.file for publisher in config.publish] == [
        Path("/var/lib/sharectl/sharectl.txt")
    ]
    assert (config.validity_seconds, config.lock_wait_seconds) == (3060, 60)
    assert config.state_directory == Path("/var/lib/sharectl")
    assert (config.history.errors_log_max_bytes, config.history.errors_log_keep) == (
        10 * 1024 * 1024,
        10,
    )


def test_groups_are_folded_and_either_pledge_counts() -> None:
    config = parse('groups: {CMS: {pledge_hepscore23: 5}, "no": {pledge_hs06: 1}}', "F")
    assert {name: group.pledge_hs06 for name, group in config.groups.items()} == {"cms": 5, "no": 1}


@pytest.mark.parametrize(("value", "controlled"), CONTROLLED)
def test_controlled_nodes_are_hosts_a_share_or_a_constraint(
    value: str, controlled: Controlled
) -> None:
    assert parse(f"{GROUPS}nodes:\n  controlled: {value}\n", "F").nodes.controlled == controlled


def test_all_problems_come_at_once_in_the_order_of_the_lines() -> None:
    text = """\
validity_seconds: 17m
groups:
  no: {pledge: 5}
  cms: &x {pledge_hs06: 1}
nodes: {controlled: 5}
publish: [{file: /s}, {file: /s}]
pool: {mode: jobs, mode: jobs}
state_directory: *x
"""
    places = [problem.split(": ")[:2] for problem in problems_of(text)]
    assert places == [
        ["F:1", "validity_seconds"],
        ["F:3", "groups.no"],
        ["F:3", "groups.no.pledge"],
        ["F:4", "groups.cms"],
        ["F:5", "nodes.controlled"],
        ["F:6", "publish[1].file"],
        ["F:7", "pool.mode"],
        ["F:8", "state_directory"],
    ]


def test_a_flood_of_problems_is_counted() -> None:
    problems = problems_of(
        GROUPS + "".join(f"x{number}: 1\n" for number in range(MAX_PROBLEMS + 5))
    )
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1] == f"F:{MAX_PROBLEMS + 2}: 5 more problems from here on; mend these first"


def test_what_a_file_says_cannot_steer_a_terminal() -> None:
    long = "x" * 900
    text = (
        f'"\\e[31m{long}": "\\a"\n{long}: 1\npool: !%1b%5b31m{long} {{}}\nstate_directory: '
        f'"{long}"\n' + GROUPS
    )
    problems = problems_of(text)
    assert [problem[:16] for problem in problems] == [
        "F:1: ?[31mxxxxxx",
        "F:2: xxxxxxxxxxx",
        "F:3: pool: YAML ",
        "F:4: state_direc",
    ]
    assert all(problem.isprintable() and len(problem) < 250 for problem in problems)


@pytest.mark.parametrize(
    ("content", "fragment"),
    [
        (
            b"groups: {cms: {pledge_hs06: 1}}\n# caf\xe9\n",
            ":2: byte 0xE9 is not UTF-8; save the file as UTF-8",
        ),
        ("groups: {}\n".encode("utf-16"), ":1: byte 0xFF is not UTF-8;"),
        (
            b"#" * (MAX_BYTES + 1),
            ": has more than 1048576 bytes, so it is no configuration; name another file",
        ),
        (b"a: 1\x00\n", ":1:5: holds the character U+0000, which YAML forbids; remove it"),
    ],
)
def test_bytes_that_are_no_text(tmp_path: Path, content: bytes, fragment: str) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith(f"{path}{fragment}")


def test_a_byte_order_mark_and_dos_lines_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + LEAST.replace("\n", "\r\n").encode())
    assert load(path) == parse(LEAST, "F")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path, fragment in (
        (tmp_path / "none.yaml", "there is no such file; write at least"),
        (tmp_path / "none.yaml", "or name another file with --config"),
        (
            Path("/dev/null/sharectl.yaml"),
            "cannot be read: Not a directory; check its owner and mode",
        ),
        (tmp_path, "is a directory; name a file in it"),
        (Path(f"{tmp_path}/a\0b"), "cannot be read: "),
        (Path("/dev/zero"), "cannot be read: it is neither a regular file nor a pipe"),
    ):
        with pytest.raises(ConfigError, match=fragment) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}: ")


NESTED = "groups: {cms: {pledge_hs06: 100, groups: {prod: {share: 0.9}, user: {share: 0.2}}}"
CRIC = "federations: [IT-INFN-CNAF]"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (
            GROUPS + f"pledges: {{from: cric, cric: {{{CRIC}, url: 'http://x/'}}}}",
            ["pledges.cric.url"],
        ),
        (
            GROUPS + f"pledges: {{from: cric, cric: {{{CRIC}, refresh_seconds: 5}}}}",
            ["pledges.cric.refresh_seconds"],
        ),
        (GROUPS + "pledges: {from: cric, cric: 5}", ["pledges.cric"]),
        (
            GROUPS
            + f"pledges: {{from: cric, cric: {{{CRIC}, url: x, ca_file: /a, ca_directory: /b}}}}",
            ["pledges.cric", "pledges.cric.url"],
        ),
        (NESTED + "}\nvalidity_seconds: 1", ["groups.cms.groups", "validity_seconds"]),
        (NESTED + ", b: {pledge: 5}}", ["groups.cms.groups", "groups.b.pledge"]),
        (NESTED + ", b: {pledge_hs06: -5}}", ["groups.cms.groups", "groups.b.pledge_hs06"]),
        (
            (
                "groups: {cms: {pledge_hs06: 1, groups: {a: {share: 1, max_lent_hs06: 1, groups: "
                "{b: {share: 2}}}}}}"
            ),
            ["groups.cms.groups.a", "groups.cms.groups.a.groups.b.share"],
        ),
        (
            "groups: {cms: {pledge_hs06: 1, x: 5}, b: {share: 1}, c: {pledge_hs06: 0}}",
            ["groups.cms.x", "groups.b.share"],
        ),
        (
            GROUPS + "publish: [{file: /tmp/x, https: {}}]",
            ["publish[0]", "publish[0].https.file", "publish[0].https.url"],
        ),
        (
            GROUPS + "publish: [{fiel: /x}, {file: /x}, {file: /x}, 5, {file: /x}]",
            ["publish[0].fiel", "publish[2].file", "publish[3]", "publish[4].file"],
        ),
        (
            GROUPS + "publish: [{collector: {}}, {collector: {identity: x}}]",
            ["publish[1].collector", "publish[1].collector.identity"],
        ),
        (
            GROUPS + "state_directory: x\npublish: [{file: /var/lib/sharectl/lock}]",
            ["state_directory"],
        ),
        (
            GROUPS + "control: {deadband_hs06: 1_000}\npublish: [{file: /x, collector: {}}]",
            ["control.deadband_hs06", "publish[0]"],
        ),
    ],
)
def test_everything_that_is_wrong_is_said_at_once_and_nothing_that_follows_from_it(
    text: str, places: list[str]
) -> None:
    assert sorted(problem.split(": ")[1] for problem in problems_of(text)) == sorted(places)
