"""Ways of a plan to the nodes, and what stands beside them: switch, state, audit.

In: A `Plan`, keys and places of the configuration.
Out: `sharectl.txt`, HTTPS documents, collector ads, state and audit files.
"""
