"""Pledges from the configuration, the negotiator's quotas or CRIC.

In: Configuration, answers of daemons and servers, the kept copy.
Out: Pledges of all groups in HS06, or of none with the problem.
"""
