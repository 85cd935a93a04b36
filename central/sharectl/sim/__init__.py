"""Digital twin of a pool: jobs, slots, negotiator and the sharectl loop in simulated seconds.

In: A scenario, a workload and a strategy.
Out: Outcomes of each group and of the pool.
"""
