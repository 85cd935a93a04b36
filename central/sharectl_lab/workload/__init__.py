"""Jobs over time: those of logs once more, and drawn from named laws."""
