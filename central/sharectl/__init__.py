"""Keeps the groups of an HTCondor pool at their promised shares, by steering and not by killing."""

__version__ = "0.1.0"
