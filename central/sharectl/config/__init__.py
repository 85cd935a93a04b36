"""The operator's YAML."""
