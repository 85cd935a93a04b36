"""Pool in simulated seconds: slots, jobs, negotiator, accountant, START, and the sharectl loop."""
