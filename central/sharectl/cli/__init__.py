"""One file for each family of verbs, and `wiring.py`."""
