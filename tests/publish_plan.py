"""Publish a plan that a test made, as a cycle does; as a program: PLAN --config FILE."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from sharectl.cli import options, wiring
from sharectl.condor.service import asking_as_service
from sharectl.config.load import load
from sharectl.cycle.publication import Failures, Proposal, Publishing, load_state
from sharectl.errors import SharectlError
from sharectl.files.documents import record
from sharectl.model import Plan
from sharectl.plan.plan import published


def publish(plan: Plan, path: Path) -> Sequence[str]:
    """Places that hold the plan now, by the configuration at ``path``; none while disabled."""
    config, now = load(path), int(time.time())
    outlets = wiring.outlets_of(config, "cycle")
    with wiring.lock_of(config):
        before, errors = load_state(outlets.state, now)
        law = wiring.plan_config(config, wiring.UNASKED, withdraws=True)
        proposal = Proposal(plan, published(before, plan, now))
        done = Publishing(law, outlets, now).publish_unless_disabled(proposal, before)
    failures = Failures([*errors, *done.errors])
    if failures.errors:
        raise failures.kind(*failures.messages)
    return done.places


if __name__ == "__main__":
    made = record(Plan, json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    path = Path(sys.argv[3])
    try:
        with asking_as_service(path) if os.geteuid() == 0 else nullcontext():
            print(*publish(made, path), sep="\n")
    except SharectlError as error:
        options.say(error.problems)
        sys.exit(error.exit_code)
