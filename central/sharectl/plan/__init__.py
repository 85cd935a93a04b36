"""Choice of the nodes that get a target, and of the group each one helps."""
