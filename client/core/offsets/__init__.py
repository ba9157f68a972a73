"""Offsets: commits, positions, records, questions."""
