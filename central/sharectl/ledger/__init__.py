"""Record of every cycle in SQLite, and its exports."""
