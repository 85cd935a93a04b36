"""One file for each family of verbs, and `wiring.py`.

In: Arguments.
Out: Output, exit codes.
"""
