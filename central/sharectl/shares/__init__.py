"""Error of every group: its pledge or quota against the power it uses."""
