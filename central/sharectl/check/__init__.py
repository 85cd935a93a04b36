"""Findings about HTCondor configuration before it is used, and about a running pool."""
