"""Findings about HTCondor configuration before it is used.

In: Snippets, consumption policies, ads.
Out: Findings: place, fault, remedy.
"""
