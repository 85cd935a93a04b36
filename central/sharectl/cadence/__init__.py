"""Cost of the negotiation interval, and the choice of one.

In: Run times from history, files or the ledger.
Out: Loading factor and idle cores for each interval.
"""
