"""Choice of the nodes that get a target, and of the group each one helps.

In: Power to move, nodes, waiting jobs, limits.
Out: A `Plan`: targets, reasons, records.
"""
