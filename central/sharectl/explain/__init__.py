"""Reasons: why a group, node, cycle or job is treated as it is, and what would change it."""
