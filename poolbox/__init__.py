r"""A real HTCondor pool of N nodes on this machine, for the demo, the tests and the benches.

How to use it::

    from poolbox import Box, BoxSpec, ExecutePoint

    spec = BoxSpec.of_equal_nodes(6, cores=8, groups={"cms": 0.5, "atlas": 0.5})
    with Box(spec) as box:                                      # up when this line is through, gone
    after it
        cluster = box.submit("executable = /bin/sleep\narguments = 60\nrequest_cpus = 8\n"
                             "accounting_group = cms\naccounting_group_user = alice\nqueue 4\n")
        box.wait_until(lambda: len(box.jobs("JobStatus == 2")) == 4, 30, "four jobs run")
        print(box.run(["condor_status", "-compact"]).stdout)   # any command, inside, as the pool's
        user os.environ.update(box.client_environment)              # htcondor2 and sharectl here
        now see this pool

A central manager (``cm-1.example.org``), two access points (``ap-1``, ``ap-2``) whose names are
their schedds', and the execute points (``wn-001.example.org`` …), each a condor_master with its own
LOCAL_DIR, all on 127.0.0.1. The checkout is seen inside under its own path, read-only, and
``box.shared_directory`` under its own, writable: a STARTD_CRON job may be ``/usr/bin/python3
CHECKOUT/startd_cron/job_ctl.py`` and read ``SHARED/sharectl.txt``. Configuration goes in by
`BoxSpec` (``config``, ``central_config``, ``access_config``, ``execute_config``, `ExecutePoint`
``.config``), later by ``box.write_config(host, text)`` and ``box.reconfig(host)``. The intervals
are short (`poolbox.configuration`) unless the spec says ``as_shipped``; everything else, such as
CLAIM_WORKLIFE, is HTCondor's default.

`Pool` (``poolbox/pool.py``) lists everything a running box can do: ``stop_host``, ``daemon_pid``
for signals, ``remove_jobs``, ``log_text``, ``processes``, … Tests take the session's small pool
from the fixture ``box``, or open their own with ``open_box(spec)``, a context manager for fixtures
of any scope (``tests/pool/conftest.py``). Two things to know of HTCondor: ``condor_q -global``
passes over a schedd whose last ad (3 s old at most) told of no job, and an ad advertised is taken
up a moment after the sender is done.

The first box of a suite builds a root with HTCondor in the user's cache, which takes about half a
minute. The pool ends with the process that started it, however that ends. ``python -m poolbox
--help`` runs one in the background.
"""

from __future__ import annotations

from poolbox.box import Box
from poolbox.errors import (
    BoxFailedError,
    CannotBuildError,
    CommandError,
    DeadlineError,
    PoolboxError,
    SpecError,
)
from poolbox.spec import BoxSpec, ExecutePoint, equal_nodes

__all__ = [
    "Box",
    "BoxFailedError",
    "BoxSpec",
    "CannotBuildError",
    "CommandError",
    "DeadlineError",
    "ExecutePoint",
    "PoolboxError",
    "SpecError",
    "equal_nodes",
]
