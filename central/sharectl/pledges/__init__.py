"""Pledges from the configuration, the negotiator's quotas or CRIC."""
