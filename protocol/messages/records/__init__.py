"""Topic partitions and their records."""
