"""Strategies side by side: one list of jobs on real pools and in the twin, each steered otherwise.

In: a `scenario.Comparison` (nodes, pledges, jobs) and a strategy, which is switched on in the
second in which the demand for multicore cores comes: nothing is prepared.
Out: a `recording.Record`, a line of the results; `results` makes the table and the picture of them.
"""
