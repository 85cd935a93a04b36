"""Runs of the twin, many of them: comparison, search for settings, training, the bound.

In: A scenario, strategies, seeds.
Out: Outcomes, scores, policies.
"""
