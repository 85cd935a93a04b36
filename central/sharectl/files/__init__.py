"""Files that are replaced whole, documents, YAML with positions."""
