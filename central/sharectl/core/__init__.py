"""The law: records with units, errors and plans. No clock, no I/O, no bindings."""
