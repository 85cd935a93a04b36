"""Jobs over time: from job logs, from a pool's history, and drawn from named laws.

In: Files and answers of strangers, or laws with a seed.
Out: Run times, arrivals and factories.
"""
