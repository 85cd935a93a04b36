"""One cycle: measure, decide, publish, remember."""
