"""Snapshot of a live pool: nodes, jobs of all schedds, and trial of the pending ones on its slots.

In: Ads of slots and jobs, as `condor` reads them; groups, deadlines.
Out: A `Snapshot` of the model; a problem for each daemon that failed.
"""
