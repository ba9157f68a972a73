"""Committed offsets: commits, fetches, expiry, and what transactions hold back."""
