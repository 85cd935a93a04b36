"""Findings about HTCondor configuration before it is used, and about a running pool.

In: Snippets, consumption policies, ads, answers of daemons.
Out: Findings: place, fault, remedy.
"""
