"""Tables, JSON and the page: everything that a person reads."""
