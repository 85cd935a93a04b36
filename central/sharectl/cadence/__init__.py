"""Cost of the negotiation interval, and the choice of one.

In: Run times of named laws, of jobs of the pool or of files.
Out: Loading factor and idle cores for each interval.
"""
