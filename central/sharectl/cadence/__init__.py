"""Cost of the negotiation interval, and the choice of one."""
