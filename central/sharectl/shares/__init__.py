"""Error of every group: its pledge or quota against the power it uses.

In: Jobs and nodes of a snapshot, pledges and quotas.
Out: Errors in HS06, demand, waiting jobs, group tree.
"""
