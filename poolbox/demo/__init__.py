"""The loop on a real pool: the scenario of the demo and of `tests/pool/test_loop.py`."""
