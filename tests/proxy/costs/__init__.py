"""Prices of what passes a proxy: calls, and memory of what is recorded."""
