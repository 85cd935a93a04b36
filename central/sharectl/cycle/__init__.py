"""One cycle: measure, decide, publish, remember.

In: Ports: pool, pledges, publishers, history, state, switch, audit, clock.
Out: Publications, and the record of the cycle.
"""
