"""Snapshot of a live pool: nodes, jobs of all schedds, and trial of pending ones on slots."""
