"""Streams groups (KIP-1071): tasks, their moves and restores as tables, and what keeps an application from running."""
