"""Verbs of the laboratory, entry points of the group `sharectl.verbs`.

In: Arguments.
Out: Output, exit codes.
"""
