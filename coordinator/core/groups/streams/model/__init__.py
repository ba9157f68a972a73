"""The state of streams groups, made of their records."""
