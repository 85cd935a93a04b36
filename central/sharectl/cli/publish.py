"""``sharectl publish``."""

from __future__ import annotations

import argparse
import time

from sharectl.cli import options, wiring
from sharectl.config.files import refuse_clashes
from sharectl.cycle.publication import Failures, Proposal, Publishing, load_state
from sharectl.errors import InputError, SharectlError
from sharectl.plan.plan import published
from sharectl.publish import text
from sharectl.report import as_json
from sharectl.report.pool import disabled_words


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plan",
        default="-",
        metavar="FILE",
        help="the plan, as `sharectl plan --json` printed it (default: standard input); a pipe may "
        "be silent for 60 s",
    )


def _run(arguments: argparse.Namespace) -> int:
    """Publish a plan that was looked at first, as it is; an old one is refused."""
    config, name = options.config_of(arguments), arguments.plan
    plan = text.parse_plan(options.content_of(name, text.PLAN_MAX_BYTES), name)
    if set(plan.groups) != set(config.tree.names):
        raise InputError([f"{name}: its groups are not those of {arguments.config}; plan again"])
    if plan.valid_until <= time.time():
        raise InputError([f"{name}: no longer valid since {plan.valid_until}; plan again"])
    if arguments.dry_run:
        lines = text.render(plan, wiring.seal_of(config)).splitlines()
        options.show(arguments, "plan", as_json.plan(plan), lines)
        return 0
    refuse_clashes(config, arguments.config)
    outlets = wiring.outlets_of(config, "publish")
    with wiring.lock_of(config):
        now = int(time.time())
        before, errors = load_state(outlets.state, now)
        if plan.sequence <= before.sequence:
            problem = f"{name}: a plan as new as this was published already; plan again"
            raise InputError([problem])
        law = wiring.plan_config(config, wiring.UNASKED)
        proposal = Proposal(plan, published(before, plan, now))
        done = Publishing(law, outlets, now).publish_unless_disabled(proposal, before)
    Failures([*errors, *done.errors]).raise_any()
    if done.disabled is not None:
        words = disabled_words(done.disabled)
        raise SharectlError(f"not published: disabled {words}; `sharectl enable` ends that")
    content = {"published": done.places, "sequence": plan.sequence}
    options.show(arguments, "published", content, done.places)
    options.say(
        f"no targets any more at {place}, which publish: names no more" for place in done.emptied
    )
    return 0


VERBS = {"publish": options.Verb(_run, _add, shared=(*options.COMMON, "--dry-run"))}
