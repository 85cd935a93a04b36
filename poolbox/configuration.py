"""The HTCondor configuration of every host of a box, as text. No I/O."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import PurePath
from typing import Union

from poolbox.spec import BoxSpec, ExecutePoint

POOL_USER = "pool"
DOMAIN = "example.org"
SIGNING_KEY = "POOL"
"""File of the box with the key of the pool's tokens."""


@dataclasses.dataclass(frozen=True)
class Installation:
    """Where HTCondor lies, as seen inside the box."""

    release: PurePath
    libexec: PurePath
    lib: PurePath
    sbin: PurePath


COMMON = """\
# Every daemon of this box. Paths: hosts have a folder each.
RELEASE_DIR = {installation.release}
LIBEXEC = {installation.libexec}
LIB = {installation.lib}
BIN = $(RELEASE_DIR)/bin
SBIN = {installation.sbin}
LOCAL_DIR = {local_directory}
LOG = $(LOCAL_DIR)/log
SPOOL = $(LOCAL_DIR)/spool
EXECUTE = $(LOCAL_DIR)/execute
LOCK = $(LOCAL_DIR)/lock
RUN = $(LOCAL_DIR)/run
LOCAL_CONFIG_DIR = $(LOCAL_DIR)/config.d
# Names: hosts of one machine, with the same users and files.
NETWORK_HOSTNAME = {host}
UID_DOMAIN = {domain}
FILESYSTEM_DOMAIN = {domain}
# Addresses: loopback and nothing else.
NETWORK_INTERFACE = {address}
BIND_ALL_INTERFACES = False
ENABLE_IPV6 = False
CONDOR_HOST = {central}
COLLECTOR_NAME = poolbox
COLLECTOR_HOST = 127.0.0.1:{port}
# Several masters on one machine are not one family: with it their first updates are refused.
SEC_USE_FAMILY_SESSION = False
# Within a user namespace nothing can be mounted.
MOUNT_UNDER_SCRATCH =
"""

SECURITY = """\
# As in the configuration of HTCondor's packages. The argument names the user of the daemons, which
# is condor there.
if version >= 23.10.0
  use security:recommended({user})
else
  use security:recommended_v9_0({user})
endif
"""

AS_SHIPPED = (
    SECURITY
    + """\
# Hosts have an address each, so that each has a shared_port. The port is not 9618, which another
# pool of this machine may use.
SHARED_PORT_PORT = {port}
# Clients outside share no /tmp with the box, which FS needs: every host accepts the pool's tokens.
SEC_TOKEN_POOL_SIGNING_KEY_FILE = {signing_key}
"""
)

HURRIED = """\
USE_SHARED_PORT = False
# Who reaches this loopback port is the pool's user: FS inside the box, CLAIMTOBE from outside.
SEC_DEFAULT_AUTHENTICATION = PREFERRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, CLAIMTOBE
SEC_DEFAULT_ENCRYPTION = OPTIONAL
SEC_DEFAULT_INTEGRITY = OPTIONAL
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_CLIENT = *
ALLOW_ADMINISTRATOR = *
ALLOW_NEGOTIATOR = *
ALLOW_CONFIG = *
STARTD_DETECT_GPUS =
# Short intervals, so that tests see what happened soon; HTCondor's own are 300 s and more.
UPDATE_INTERVAL = 3
MASTER_UPDATE_INTERVAL = 10
COLLECTOR_UPDATE_INTERVAL = 10
"""

CENTRAL = """\
DAEMON_LIST = MASTER, COLLECTOR, NEGOTIATOR
# The access point of condor_q and condor_submit without -name; no schedd runs on this host.
SCHEDD_HOST = {schedd}
"""

HURRIED_CENTRAL = """\
NEGOTIATOR_INTERVAL = 3
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_UPDATE_INTERVAL = 5
"""

ACCESS = """\
DAEMON_LIST = MASTER, SCHEDD
SCHEDD_NAME = {host}
"""

HURRIED_ACCESS = """\
SCHEDD_INTERVAL = 3
SCHEDD_MIN_INTERVAL = 1
# A new schedd's first call to the negotiator and a negotiation that begins in that moment wait for
# each other, for 20 s (one start in ten, both versions). The negotiator comes every 3 s anyway.
SCHEDD_SEND_RESCHEDULE = False
"""

EXECUTE = """\
DAEMON_LIST = MASTER, STARTD
NUM_CPUS = {node.cores}
MEMORY = {node.memory_mib}
"""

HURRIED_EXECUTE = """\
NUM_SLOTS = 1
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
START = True
# Benchmarks keep a node busy for its first minute and hold back its STARTD_CRON jobs.
RunBenchmarks = False
# A startd that starts or reads its configuration runs every plugin: those in Python, for clouds
# that no job here uses, take half a second of processor time.
FILETRANSFER_PLUGINS = $(LIBEXEC)/curl_plugin
"""

CLIENT = """\
# For HTCondor tools and bindings outside the box.
LOG = {directory}
LOCK = {directory}
SPOOL = {directory}
UID_DOMAIN = {domain}
NETWORK_INTERFACE = 127.0.0.1
BIND_ALL_INTERFACES = False
ENABLE_IPV6 = False
NO_DNS = True
DEFAULT_DOMAIN_NAME = {domain}
COLLECTOR_HOST = 127.0.0.1:{port}
"""

HURRIED_CLIENT = """\
SEC_CLIENT_AUTHENTICATION = PREFERRED
SEC_CLIENT_AUTHENTICATION_METHODS = CLAIMTOBE
SEC_CLAIMTOBE_USER = {user}
"""

AS_SHIPPED_CLIENT = (
    SECURITY
    + """\
TRUST_DOMAIN = {domain}
SEC_TOKEN_DIRECTORY = {directory}/tokens.d
"""
)


def addresses(spec: BoxSpec) -> dict[str, str]:
    """Host → its address on the loopback: one for all, or as shipped one for each."""
    return {
        host: f"127.0.{number // 254}.{number % 254 + 1}" if spec.as_shipped else "127.0.0.1"
        for number, host in enumerate(spec.hosts)
    }


def host_configurations(
    spec: BoxSpec, host: str, local_directory: PurePath, port: int, installation: Installation
) -> dict[str, str]:
    """File name → text of a host's configuration; ``config.d/…`` in the order of reading."""
    common = COMMON.format(
        installation=installation,
        local_directory=local_directory,
        host=host,
        domain=DOMAIN,
        address=addresses(spec)[host],
        central=spec.central_point,
        port=port,
    )
    shipped = AS_SHIPPED.format(
        user=POOL_USER, port=port, signing_key=local_directory.parents[1] / SIGNING_KEY
    )
    role, hurried_role, role_extra, host_extra = _role(spec, host)
    return {
        "condor_config": common
        + (shipped + role if spec.as_shipped else HURRIED + role + hurried_role),
        "config.d/10-box.config": spec.config,
        "config.d/20-role.config": role_extra,
        "config.d/30-host.config": host_extra,
    }


def client_configuration(spec: BoxSpec, directory: PurePath, port: int) -> str:
    """The configuration for tools outside the box, which may write to ``directory``."""
    own = AS_SHIPPED_CLIENT if spec.as_shipped else HURRIED_CLIENT
    return (CLIENT + own).format(directory=directory, domain=DOMAIN, port=port, user=POOL_USER)


def _role(spec: BoxSpec, host: str) -> tuple[str, str, str, str]:
    """Configuration by role: HTCondor's own, hurried, the spec's for the role and for the host."""
    if host == spec.central_point:
        central = CENTRAL.format(schedd=spec.access_points[0]) + _groups(spec.groups)
        return central, HURRIED_CENTRAL, spec.central_config, ""
    if host in spec.access_points:
        return ACCESS.format(host=host), HURRIED_ACCESS, spec.access_config, ""
    node = next(node for node in spec.execute_points if node.name == host)
    execute = EXECUTE.format(node=node) + _power(node)
    return execute, HURRIED_EXECUTE, spec.execute_config, node.config


def _power(node: ExecutePoint) -> str:
    if node.power_hs06 is None:
        return ""
    return f"t1_wn_hs06 = {node.power_hs06!r}\nSTARTD_ATTRS = $(STARTD_ATTRS) t1_wn_hs06\n"


def _groups(groups: Mapping[str, Union[int, float]]) -> str:
    if not groups:
        return ""
    quotas = [
        f"GROUP_QUOTA_DYNAMIC_{name} = {quota!r}"
        if isinstance(quota, float)
        else f"GROUP_QUOTA_{name} = {quota}"
        for name, quota in groups.items()
    ]
    # As at a site that never leaves cores idle: a group may run past its quota while others have
    # nothing to run.
    return "\n".join(
        [f"GROUP_NAMES = {', '.join(groups)}", *quotas, "GROUP_ACCEPT_SURPLUS = True", ""]
    )
