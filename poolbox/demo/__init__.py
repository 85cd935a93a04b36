"""The loop at work on a real pool: the scenario that the demo shows and `tests/pool/test_loop.py` measures."""
