"""Runs of the twin, many of them: comparison, search for settings, training, the bound."""
