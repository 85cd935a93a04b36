"""Pool in simulated seconds: slots, jobs, negotiator, accountant, START, and the sharectl loop.

In: Nodes, a workload, settings of daemons.
Out: Figures of groups and of idle cores.
"""
