"""Scenario of the demo and of the loop's test: a saturated pool far from its shares.

Six nodes of 16 cores, half of them half as strong again, and two access points. Group alice has an
endless supply of one-core jobs of 20 to 80 s, which hold every core; cms has jobs of 8 cores, which
wait. The pledges make alice over and cms under. HTCondor has the pledges as group quotas, as
classic fair share would.
"""

from __future__ import annotations

from pathlib import Path

from poolbox import BoxSpec, ExecutePoint, equal_nodes

CHECKOUT = Path(__file__).resolve().parents[2]
SNIPPET = CHECKOUT / "config.d" / "60-sharectl-execute-point.conf"

HELD_BACK = "alice"
HELPED = "cms"
PLEDGE_HS06 = {HELD_BACK: 560.0, HELPED: 640.0}
MULTICORE_CORES = 8
NODE_CORES = 16
NODE_POWERS_HS06 = (160.0, 240.0) * 3
POOL_CORES = NODE_CORES * len(NODE_POWERS_HS06)
# Half of a block on a node of the weaker kind: a smaller error cannot be mended by whole jobs.
DEADBAND_HS06 = 40.0
HALF_BLOCK_HS06 = MULTICORE_CORES * sum(NODE_POWERS_HS06) / POOL_CORES / 2

CYCLE_SECONDS = 10.0
VALIDITY_SECONDS = 60
GRACE_SECONDS = 20

# Within the box every host sees this file by the same path: LOCAL_DIR is BOX/hosts/HOST.
TARGETS_FILE = "sharectl.txt"
TARGETS_FILE_ON_NODE = f"$(LOCAL_DIR)/../../shared/{TARGETS_FILE}"

# After the quotas, all groups compete for what is left. With GROUP_ACCEPT_SURPLUS alone cores would
# stay idle beside
# a group at its quota, as long as another is below its own and has jobs that fit nowhere.
QUOTAS_WITHOUT_IDLE_CORES = """\
GROUP_AUTOREGROUP = True
GROUP_ACCEPT_SURPLUS = False
"""

NODE_CONFIG = """\
# The snippet as it is deployed, hurried: minutes have become seconds.
SHARECTL_ENABLED = {enabled}
SHARECTL_SOURCE = file:{file}
SHARECTL_GRACE_SECONDS = {grace_seconds}
SHARECTL_JOB_CTL_PERIOD_SECONDS = 5
SHARECTL_MC_GRACE_PERIOD_SECONDS = 5
# Six nodes share this machine: a run may be late.
SHARECTL_JOB_CTL_STALE_SECONDS = 40
SHARECTL_MC_GRACE_STALE_SECONDS = 40
STARTD_CRON_JOB_CTL_EXECUTABLE = {checkout}/startd_cron/job_ctl.py
STARTD_CRON_MC_GRACE_EXECUTABLE = {checkout}/startd_cron/mc_grace.py
"""

SHARECTL_YAML = """\
groups:
{groups}
nodes: {{controlled: "{controlled}"}}
control: {{multicore_cores: {multicore_cores}, deadband_hs06: {deadband_hs06}}}
publish:
  - file: {file}
validity_seconds: {validity_seconds}
history:
  jobs_file: {directory}/AcctGroup_hs06.txt
  errors_log: {directory}/shares_Error.log
state_directory: {directory}
"""

JOBS = """\
executable = /bin/sleep
transfer_executable = False
arguments = {arguments}
request_cpus = {cores}
request_memory = 32
request_disk = 1024
accounting_group = {group}
accounting_group_user = {group}
{extra}
queue {count}
"""

SHORT_SLEEP = "$RANDOM_INTEGER(20,80)"
LONG_SLEEP = "$RANDOM_INTEGER(150,300)"


def nodes() -> tuple[ExecutePoint, ...]:
    """The six execute points, weak and strong in turn."""
    return tuple(
        ExecutePoint(node.name, NODE_CORES, node.memory_mib, power_hs06)
        for node, power_hs06 in zip(equal_nodes(len(NODE_POWERS_HS06)), NODE_POWERS_HS06)
    )


def pool_spec(suite: str) -> BoxSpec:
    """The pool: sharectl's snippet on every node, switched off; quotas by pledge."""
    whole = sum(PLEDGE_HS06.values())
    return BoxSpec(
        execute_points=nodes(),
        suite=suite,
        groups={group: round(pledge / whole, 4) for group, pledge in PLEDGE_HS06.items()},
        central_config=QUOTAS_WITHOUT_IDLE_CORES,
        execute_config=SNIPPET.read_text() + node_config(enabled=False),
    )


def node_config(
    *, enabled: bool, file: str = TARGETS_FILE_ON_NODE, grace_seconds: int = GRACE_SECONDS
) -> str:
    """Configuration of a node, which an admin writes in a file after the snippet."""
    return NODE_CONFIG.format(
        enabled=enabled, file=file, grace_seconds=grace_seconds, checkout=CHECKOUT
    )


def sharectl_yaml(directory: Path, file: Path, controlled: str) -> str:
    """Configuration of sharectl that keeps everything in ``directory`` and publishes to ``file``.

    ``controlled`` is ``"0%"`` to measure only, ``"*"`` to steer every node.
    """
    groups = "\n".join(
        f"  {group}: {{pledge_hs06: {pledge}}}" for group, pledge in PLEDGE_HS06.items()
    )
    return SHARECTL_YAML.format(
        groups=groups,
        controlled=controlled,
        multicore_cores=MULTICORE_CORES,
        deadband_hs06=DEADBAND_HS06,
        file=file,
        validity_seconds=VALIDITY_SECONDS,
        directory=directory,
    )


def jobs(group: str, cores: int, count: int, arguments: str, extra: str = "") -> str:
    """Submit description of ``count`` jobs that sleep for ``arguments`` seconds."""
    return JOBS.format(group=group, cores=cores, count=count, arguments=arguments, extra=extra)
