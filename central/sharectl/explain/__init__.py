"""Reasons: why a group, node, cycle or job is treated as it is, and what would change it.

In: Records of a cycle, ads of a job.
Out: Explanations as records.
"""
