"""Consumption policies: generate them, price requests."""
