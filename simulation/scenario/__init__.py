"""Scenarios: their model, how they are read, and how their actions are carried out."""
