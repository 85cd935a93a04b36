"""Files of scenarios and strategies, and a scenario from a live pool.

In: YAML, answers of a pool, a ledger.
Out: A `Scenario`, strategies, notes on what is left out.
"""
