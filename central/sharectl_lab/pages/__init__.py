"""Tables and pages of what runs of the twin have shown."""
