"""Consumption policies: generate them, price jobs.

In: YAML of policies, ads of slots and jobs, knobs.
Out: HTCondor configuration, costs.
"""
