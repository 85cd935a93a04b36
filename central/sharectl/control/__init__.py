"""Control laws: how much of an error to correct now."""
