"""Jobs over time: those of logs once more, and drawn from named laws.

In: Jobs that ran, or laws with a seed.
Out: Run times, arrivals and factories.
"""
