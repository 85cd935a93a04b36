"""Files of scenarios and strategies, and a scenario from a site's ledger.

In: YAML, a ledger.
Out: A `Scenario`, strategies, notes on what is left out.
"""
