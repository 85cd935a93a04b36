"""Strategies side by side: one list of jobs on real pools, each steered in another way.

In: a `scenario.Comparison` (nodes, pledges, jobs) and the name of a strategy.
Out: a `recording.Record`: every start and end of a job by its event log, and the figures from it.
"""
