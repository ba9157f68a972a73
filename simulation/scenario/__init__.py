"""Scenarios: their model, how they are read, and what happens in them."""
