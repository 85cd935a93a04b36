"""Record of every cycle in SQLite, and its exports.

In: Records of cycles, files of earlier logs.
Out: Series, known run times, exports, checks.
"""
