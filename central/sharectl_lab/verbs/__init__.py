"""Verbs of the laboratory, entry points of the group `sharectl.verbs`."""
