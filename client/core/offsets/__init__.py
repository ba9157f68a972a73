"""Offsets: commits, what was committed, positions, and the ends of partitions."""
