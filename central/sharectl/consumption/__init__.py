"""Consumption policies: generate them, price jobs."""
