"""Record of every cycle in SQLite, and its exports.

In: Records of cycles.
Out: Series, known run times, exports, checks.
"""
