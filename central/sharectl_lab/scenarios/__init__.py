"""Files of scenarios and strategies, and a scenario from a site's ledger."""
