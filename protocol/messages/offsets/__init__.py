"""Committed offsets: commit, fetch, delete."""
