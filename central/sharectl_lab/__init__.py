"""Laboratory of sharectl: the digital twin of a pool, and what is tried in it.

The service, `sharectl`, imports nothing of it.
"""
