"""Transactions of producers: their tables, what must never happen to them, and what to set where they cost time."""
