"""Histories recovered from logs, compared with the actions that were logged."""
