from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from sharectl.cadence import asks
from sharectl.cadence.asks import parse
from sharectl.cadence.loads import expected_loading
from sharectl.condor.negotiator import Cycle, cycles_of
from sharectl.errors import InputError

HEADER = "; Version: 2.2\n; Computer: made up\n\n"


def _swf(
    seconds: object,
    allocated: object = 1,
    requested: object = -1,
    status: object = 1,
    group: object = 3,
) -> str:
    return (
        f"1 0 -1 {seconds} {allocated} -1 -1 {requested} 100 -1 {status} 1 {group} -1 -1 1 -1 -1\n"
    )


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _refused(path: Path) -> str:
    with pytest.raises(InputError) as refused:
        asks.swf_read(path)
    return str(refused.value)


def test_a_log_of_jobs_is_read_packed_or_not(tmp_path: Path) -> None:
    text = HEADER + _swf(60) * 2 + _swf(60.2, -1, 8) + _swf(70, -1, -1, group=-1)
    expected = {("group 3", 1, 60): 2, ("group 3", 8, 61): 1, ("no group", 1, 70): 1}
    plain = asks.swf_read(_written(tmp_path / "log.swf", text))
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert plain.counted == asks.swf_read(packed).counted == expected
    assert plain.limit is None


def test_jobs_that_never_ran_and_parts_are_left_out_and_said(tmp_path: Path) -> None:
    text = HEADER + _swf(60) + _swf(0) + _swf(-1) * 2 + _swf(30, status=2) + _swf(30, status=4)
    jobs = asks.swf_read(_written(tmp_path / "log.swf", text))
    assert jobs.jobs == 1
    assert jobs.left_out == {asks.SWF_NO_TIME: 3, asks.PART: 2}


def test_all_wrong_lines_are_named(tmp_path: Path) -> None:
    text = HEADER + _swf(60) + "1 2 3\n" + _swf("soon") + _swf(1e12) + _swf("nan") + _swf(5, 10**7)
    said = _refused(_written(tmp_path / "log.swf", text)).splitlines()
    name = tmp_path / "log.swf"
    assert said[0] == f"{name}:5: 3 fields; a job of the Standard Workload Format has 18 numbers"
    assert [line.partition(": ")[0] for line in said] == [
        f"{name}:{number}" for number in (5, 6, 7, 8, 9)
    ]
    assert "run time is 'soon'; write a number up to" in said[1]
    assert "allocated processors" in said[4]


def test_many_wrong_lines_are_counted(tmp_path: Path) -> None:
    said = _refused(_written(tmp_path / "log.swf", _swf(60) + "rubbish\n" * 50)).splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"{tmp_path / 'log.swf'}:2: 1 field; a job")
    assert said[0].endswith(" (also at 3, 4, 5, and 46 more like this)")


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        (
            "; a comment\n\nslot_type: 1\nstartd: {cpus: 2, memory: 3}\n",
            "3: 'slot_type: 1'",
            "or --history with what `condor_history",
        ),
        ("rubbish\n" * 50, "1: 'rubbish'", "write --swf with such a log"),
        (
            "It is a text of eighteen words that somebody took for a log of jobs, but is none.\n",
            "1: 'It is",
            "no log",
        ),
        (
            json.dumps([{"RemoteWallClockTime": 9}]),
            "1: '[{",
            "it looks like JSON: if condor_history printed it, write --history",
        ),
    ],
)
def test_a_file_that_is_no_log_is_told_as_such(
    tmp_path: Path, text: str, line: str, remedy: str
) -> None:
    path = _written(tmp_path / "my.yaml", text)
    said = _refused(path)
    assert said.startswith(f"{path}:{line}")
    assert (
        "this is no log in Standard Workload Format, in which a job is a line of 18 numbers" in said
    )
    assert remedy in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"; only\n; comments\n"])
def test_a_file_without_jobs_is_no_zero(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(content)
    assert "no job with a known run time" in _refused(path)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in _refused(tmp_path / "none")
    assert "cannot be read: Is a directory" in _refused(tmp_path)
    assert "neither a regular file nor a pipe" in _refused(Path("/dev/zero"))
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress((HEADER + _swf(60) * 1000).encode())[:-20])
    assert "packed by gzip, and broken" in _refused(broken)
    broken.write_bytes(b"\x1f\x8bnonsense that is no gzip")
    assert "packed by gzip, and broken" in _refused(broken)


def test_a_file_that_unpacks_without_end_is_given_up(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(b"; comment\n" * 10**6))
    assert bomb.stat().st_size < 10**5
    with (
        pytest.raises(InputError, match="longer than 1000000 bytes unpacked"),
        asks.opened(bomb, 10**6) as text,
    ):
        text.read()


def test_no_more_jobs_than_asked_for_are_looked_at(tmp_path: Path) -> None:
    jobs = asks.swf_read(_written(tmp_path / "log.swf", _swf(60) * 5 + "rubbish\n"), 5)
    assert (jobs.jobs, jobs.limit) == (5, 5)


def _job(**attributes: object) -> dict[str, object]:
    return {
        "RemoteWallClockTime": 60.0,
        "NumShadowStarts": 1,
        "CpusProvisioned": 1,
        "AccountingGroup": "cms.prod",
        **attributes,
    }


ADS = [
    _job(),
    _job(RemoteWallClockTime=61.5, CpusProvisioned=None, RequestCpus=8, AccountingGroup="Atlas"),
    _job(RemoteWallClockTime=90, NumShadowStarts=3),
    _job(RemoteWallClockTime=0),
    _job(RemoteWallClockTime="\\/Expr(time())\\/"),
    _job(RemoteWallClockTime=float("inf")),
    _job(JobUniverse=7),
    _job(CpusProvisioned=-4, RequestCpus="all"),
    _job(AccountingGroup="a b;\u202e"),
    _job(NumShadowStarts=10**30, AccountingGroup=["x"]),
]
COUNTED = {("cms", 1, 60): 1, ("atlas", 8, 62): 1, ("cms", 1, 30): 3, ("other", 1, 60): 2}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ADS, indent=2),
        "[\n" + "\n,\n".join(json.dumps(ad, indent=2) for ad in ADS) + "\n]\n",
        "\n".join(map(json.dumps, ADS)),
    ],
    ids=["json", "condor_history", "jsonl"],
)
def test_a_history_is_read(tmp_path: Path, text: str) -> None:
    jobs = asks.history_read(_written(tmp_path / "jobs.json", text))
    assert jobs.counted == COUNTED
    assert jobs.left_out == {
        asks.HISTORY_NO_TIME: 3,
        asks.NO_SLOT: 1,
        asks.NO_CORES: 1,
    }


def test_a_history_longer_than_a_piece_is_read(tmp_path: Path) -> None:
    jobs = asks.history_read(
        _written(tmp_path / "jobs.json", json.dumps([_job(Cmd="x" * 999)] * 5000))
    )
    assert jobs.counted == {("cms", 1, 60): 5000}


def test_configured_groups_are_matched(tmp_path: Path) -> None:
    path = _written(tmp_path / "jobs.json", json.dumps(ADS[:2]))
    assert set(asks.history_read(path, ("atlas",)).counted) == {
        ("other", 1, 60),
        ("atlas", 8, 62),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[\n{"RemoteWallClockTime": 5,\n', ":2: the object that begins here does not end"),
        (
            '[\n{"RemoteWallClockTime": five, "Cmd": "long enough"}\n]',
            ":2: the object that begins here is no JSON",
        ),
        (
            "ID OWNER\n1.0 alice\n",
            ":1: 'ID OWNER\\n1.0 alice\\n' is no job; make the file with condor_history",
        ),
        ("[1, 2]", ":1: '1, 2]' is no job"),
        ('{"a": ' * 100_000, ":1: the object that begins here is nested too deeply"),
        ('[{"Cmd": "' + "x" * 2**24, ":1: the object that begins here is too long"),
        ("[\n]\n", ": no job with a known run time"),
    ],
)
def test_what_is_no_history_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = _written(tmp_path / "jobs.json", text)
    with pytest.raises(InputError) as refused:
        asks.history_read(path)
    assert f"{path}{said}" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("constant:255", 255),
        ("exponential:255", 255),
        ("normal:255,10", 255),
        ("log-normal:255,400", 255),
    ],
)
def test_laws_by_their_names(text: str, mean: float) -> None:
    law = parse(text)
    assert law.mean_seconds == pytest.approx(mean)
    assert 0 < expected_loading(law, 60) <= 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("uniform:1,2", "is no law of run times; write one of constant:SECONDS"),
        ("constant", "is no law"),
        ("normal:255", "write normal:MEAN,SD"),
        ("constant:0", "'0' is no time; write seconds above 0"),
        ("exponential:1e400", "'1e400' is too long; write at most 1000000000 seconds"),
        ("exponential:nan", "is no time"),
        ("normal:255,-1", "'-1' is no time"),
    ],
)
def test_what_is_no_law_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"law|write|time") as refused:
        parse(text)
    assert said in str(refused.value)


def test_cycles_of_a_negotiator_that_says_little_or_nonsense() -> None:
    assert cycles_of({}) == []
    ad = {
        "LastNegotiationCycleDuration0": 3,
        "LastNegotiationCyclePeriod0": 63,
        "LastNegotiationCycleNumIdleJobs0": 5,
        "LastNegotiationCycleDuration1": 2,
        "LastNegotiationCyclePeriod1": 0,
        "LastNegotiationCycleDuration2": "long",
        "LastNegotiationCycleDuration3": -5,
    }
    assert cycles_of(ad) == [Cycle(3, 63, 5), Cycle(2, None, None)]
