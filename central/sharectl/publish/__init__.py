"""Ways of a plan to the nodes, and what stands beside them: switch, state, audit."""
