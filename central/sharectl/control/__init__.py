"""Control laws: how much of an error to correct now.

In: Errors and the setpoints of this cycle, state of the last one.
Out: Power to move between groups, HS06, with its components.
"""
