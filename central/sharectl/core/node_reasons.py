"""The codes that nodes publish in ``t1_JobCtlReason``, and what to do about those that keep targets away."""

from __future__ import annotations

from collections.abc import Mapping

NOT_PUBLISHED = "not-published"
"""Of a node that publishes no code."""

NEVER_RAN = "never-ran"
"""Of a node that publishes no code, and has the snippet that should run job_ctl."""

STALE = "stale"
"""Of a node whose code is older than what START goes by."""

UNKNOWN_CODE = "unknown-code"
"""Of a node whose code is none of these."""

QUIET = ("ok", "no-line")
"""What nodes say when all is well."""

NO_FILE, NO_AD, EXPIRED = "no-file", "no-ad", "expired"
"""What they say when all is well too, unless there is something for them."""

_INSTALL = "install all files of startd_cron anew, of one version"
_BUG = "a fault of sharectl's node job: StartLog there has it; please report it"
_PERIOD = "StartLog there has what it waited for"
_WHO = "somebody else publishes too, or the file was edited: find out who writes there; `sharectl cycle`"

REMEDIES: Mapping[str, str] = {
    NOT_PUBLISHED: "never ran job_ctl: install config.d/60-sharectl-execute-point.conf there, and condor_reconfig",
    NEVER_RAN: "has the snippet, and job_ctl said nothing yet: are its files in /usr/libexec/sharectl? StartLog there has why",
    STALE: "job_ctl ran too long ago for START to go by it: StartLog there has why",
    UNKNOWN_CODE: "not a code that this sharectl knows: have one version on the central manager and on nodes",
    # job_ctl.py
    "internal-error": _BUG,
    "bad-arguments": "an option is wrong: StartLog there names it; mend SHARECTL_SOURCE or SHARECTL_SOURCE_OPTIONS",
    "timeout": f"the startd, a source or a file system hangs: {_PERIOD}",
    "no-startd": "condor_status gets no answer from the startd: try `condor_status -direct NODE`, as its user",
    "startd-garbled": f"condor_status prints something else there: is it HTCondor's own? {_INSTALL}",
    "backwards": "took a newer plan before: an old copy stands there, or two centres publish; `sharectl cycle`",
    "disagree": "its sources have different targets of one sequence: let one sharectl publish; `sharectl cycle`",
    "no-state": "cannot write its state file: mend the folder of --state (LOG), or its disk is full",
    "target-garbled": f"target.py cannot be run, or does not fit: {_INSTALL}",
    # target.py
    NO_FILE: "targets are published, and it sees no such file: compare SHARECTL_SOURCE with publish:, and its mounts",
    EXPIRED: "what is published is valid, and what it reads is not: it reads an old copy, or its clock is ahead",
    "unreadable": "cannot read the file: give its user (condor) the right, and mend the file system",
    "unsafe": "no regular file, or everybody may write to it: chmod o-w, and name a file in SHARECTL_SOURCE",
    "too-big": "larger than 1 MiB: it is not sharectl's, or the pool needs collector:",
    "truncated": f"the end is missing: copy by rename, is there room? {_WHO}",
    "malformed": f"not a document of targets, or of another version: {_WHO}",
    "unknown-group": "a group that it was not told: mend --groups in its configuration, or leave it out",
    "duplicate-node": f"more than one line for one node: {_WHO}",
    "future": "made or numbered in the future, or valid for more than a day: compare the clocks of both",
    "other-pool": "is for another pool: compare pool.name with its --pool, and what it reads with publish:",
    "unsigned": "wants a signature, and there is none: set signing_key_file, then `sharectl cycle`",
    "bad-signature": "signed with a key that it has not, or altered since: compare its --key-file with signing_key_file",
    "no-key": "cannot read its --key-file: install the key there, for its user (condor)",
    "unsafe-key": "its --key-file is another user's, or others have rights on it: chown, chmod 0640",
    "bad-key": "its --key-file has not one or two lines KEYID HEX: install the key anew",
    "source-garbled": f"the program for a source cannot be run, or does not fit: {_INSTALL}",
    # target_https.py
    "no-host": "cannot resolve the name of the server: mend its DNS, or the URL in SHARECTL_SOURCE",
    "no-connection": "cannot reach the web server: is it up, and does a firewall stand between?",
    "http-status": "the web server answers neither 200 nor 304: compare the URL in SHARECTL_SOURCE with publish:",
    "http-garbled": "the answer is not HTTP, or not complete: look at the server, or at a proxy between",
    "tls-failed": "no TLS that both accept: look at the server's TLS versions",
    "bad-certificate": "the server's certificate is not valid, or not for its name: renew it, or mend --ca-file",
    "redirected": "the server sends elsewhere: write that address in SHARECTL_SOURCE, if it is right",
    "bad-ca-file": "its --ca-file has no certificates, or cannot be read: install it anew",
    # target_collector.py
    NO_AD: "has a target, and the collector that it asks has none for it: compare that one with pool.collector",
    "no-collector": "gets no answer from the collector: try `condor_status -any` there, as the user of its startd",
    "collector-garbled": f"condor_status prints something else there: is it HTCondor's own? {_INSTALL}",
    "bad-ad": "an ad of its target is not as it should be: have one version on both sides; `sharectl cycle`",
    "forged": "only others advertise a target for it: compare its --identity with that of `sharectl status`, "
    "and restrict who may advertise (docs/transports.md)",
}
"""Code of a problem -> what to do."""


def known(code: str) -> str:
    """``code``, or `UNKNOWN_CODE` for one that no program of sharectl writes: anything may stand in an ad."""
    return code if code in REMEDIES or code in QUIET else UNKNOWN_CODE


def problems(refusing: Mapping[str, int], slots: int) -> list[str]:
    """A line for each code that keeps targets from nodes: how many slots have it, and what to do."""
    return [
        f"{count} of {slots} partitionable slots: {code}: {REMEDIES[code]}"
        for code, count in refusing.items()
    ]
